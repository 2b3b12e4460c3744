package feed

import (
	"sync"

	"oddsgraph/internal/market"
)

// shares counts the public topics that callers hold. A topic counts for one of the callers whose readers watch it or keep
// it live. When that caller leaves, the topic counts for another one.
type shares struct {
	// mu is taken inside all other locks.
	mu     sync.Mutex
	counts map[string]int // by caller; never 0
}

// move takes a topic from the count of one reader's caller and adds it to another's. A nil reader has no count.
func (s *shares) move(from, to *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from != nil {
		if s.counts[from.caller]--; s.counts[from.caller] == 0 {
			delete(s.counts, from.caller)
		}
	}
	if to != nil {
		s.counts[to.caller]++
	}
}

// exceeded reports whether a caller holds more topics than share.
func (s *shares) exceeded(share int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.counts {
		if n > share {
			return true
		}
	}
	return false
}

func (s *shares) count(caller string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[caller]
}

// withinShare reports whether a reader may watch a topic on its caller's share. t is nil for a topic that is not open. A
// topic that already counts for a caller is free for other callers. The caller holds the feed's lock.
func (f *Feed) withinShare(r *Reader, t *topic, user bool) bool {
	return r == nil || !r.limited || user || t != nil && t.counted() || f.shares.count(r.caller) < f.share()
}

// halfFree reports whether less than half of the room is taken. The caller holds the feed's lock.
func (f *Feed) halfFree() bool { return f.public < f.cfg.Topics/2 }

// share is the number of topics that a caller holds without the feed reclaiming them.
func (f *Feed) share() int { return max(f.cfg.Topics/4, 1) }

// reclaimable reports whether a caller may hold a topic beyond its share until others need the room. This applies to
// states, because a client can poll them afterwards. Trades and market changes would be lost.
func reclaimable(key market.Topic) bool {
	return key.Channel == market.ChannelPrices || key.Channel == market.ChannelOrderbook
}

// reclaim ends a topic that a caller holds beyond its share. It chooses the caller with the most topics, and leaves topics
// that others watch too. It reports whether it ended a topic. The caller holds the feed's lock.
func (f *Feed) reclaim() bool {
	var last *topic
	most := f.share()
	if !f.shares.exceeded(most) {
		return false
	}
	for key, t := range f.topics {
		if !reclaimable(key) {
			continue
		}
		if caller, sole := t.soleCaller(); sole {
			if n := f.shares.count(caller); n > most {
				last, most = t, n
			}
		}
	}
	if last == nil {
		return false
	}
	f.fail(last, errReclaimed)
	return true
}

// errReclaimed ends the watches of a topic whose room others need.
var errReclaimed error = market.Errorf(market.CodeRateLimited, "others need the room on the stream")

// soleCaller returns the caller that the topic counts for. sole is false if anybody else watches the topic.
func (t *topic) soleCaller() (caller string, sole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil {
		return "", false
	}
	for _, w := range t.watches {
		if w.owner == nil || !w.owner.limited || w.owner.caller != t.holder.caller {
			return "", false
		}
	}
	return t.holder.caller, true
}

// counted reports whether the topic counts for a caller.
func (t *topic) counted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holder != nil
}

// recount makes the topic count for one of its remaining readers. The caller holds the lock.
func (t *topic) recount() {
	var next *Reader
	if !t.ended {
		for _, w := range t.watches {
			if w.owner != nil && w.owner.limited {
				next = w.owner
				break
			}
		}
	}
	if t.key.Channel != market.ChannelUser && t.holder != next {
		t.feed.shares.move(t.holder, next)
		t.holder = next
	}
}

// makeRoom closes one topic: a lingering one, else one beyond a caller's share, else one that is live only for queries.
// Accounts have room of their own. It reports whether it closed a topic. The caller holds the lock.
func (f *Feed) makeRoom(user bool) bool {
	if f.closeLingering(user) || !user && f.reclaim() {
		return true
	}
	for key, t := range f.topics {
		if (key.Channel == market.ChannelUser) != user {
			continue
		}
		if readers, _ := t.watchers(); readers == 0 {
			if !f.auto.giveWay() {
				f.fail(t, market.Errorf(market.CodeRateLimited, "subscribers need the room"))
			}
			return true
		}
	}
	return false
}

// closeLingering closes one topic without watches and reports whether it found one. The caller holds the lock.
func (f *Feed) closeLingering(user bool) bool {
	for key, t := range f.topics {
		if (key.Channel == market.ChannelUser) != user {
			continue
		}
		if readers, keepers := t.watchers(); readers == 0 && keepers == 0 {
			f.closeIdle(t)
			return true
		}
	}
	return false
}
