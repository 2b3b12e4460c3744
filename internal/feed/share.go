package feed

import (
	"sync"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// shares counts the public topics of each caller. A topic counts against the share of only one caller, even if readers of several
// callers watch it. When the reader of that caller closes its watch, the topic counts against the share of another reader's caller.
type shares struct {
	// mu is always the last lock that is taken.
	mu     sync.Mutex
	counts map[string]int // the number of topics by caller; never 0
}

// move subtracts a topic from the count of one reader's caller and adds it to the count of another reader's caller. A nil
// reader has no count.
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

// exceeded reports whether the count of any caller is greater than share.
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

// withinShare reports whether a reader may watch a topic within its caller's share. t is nil if the topic is not open. A topic that
// already counts against one caller's share does not count against another caller's. The caller holds the feed's lock.
func (f *Feed) withinShare(r *Reader, t *topic, user bool) bool {
	return r == nil || !r.limited || user || t != nil && t.counted() || f.shares.count(r.caller) < f.share()
}

// halfFree reports whether less than half of the room is used. The caller holds the feed's lock.
func (f *Feed) halfFree() bool { return f.public < f.cfg.Topics/2 }

// share returns the number of topics that a caller may always watch. The feed never reclaims them.
func (f *Feed) share() int { return max(f.cfg.Topics/4, 1) }

// reclaimable reports whether a topic may be watched beyond a share until other callers need the room. Prices and books may,
// because a client can poll them afterwards. Trades and market changes would be lost.
func reclaimable(key messages.Topic) bool {
	return key.Channel == messages.ChannelPrices || key.Channel == messages.ChannelOrderbook
}

// reclaim ends a topic that a caller watches beyond its share, and reports whether there was such a topic. It chooses a topic of
// the caller with the most topics. It never ends a topic that another caller watches as well. The caller holds the feed's lock.
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

// errReclaimed is the error of watches that end because other callers need their room.
var errReclaimed error = market.Errorf(market.CodeRateLimited, "other subscriptions need the space on the stream")

// soleCaller returns the caller against whose share the topic counts. sole is false if another caller, or the service itself,
// watches the topic.
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

// counted reports whether the topic counts against a caller's share.
func (t *topic) counted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holder != nil
}

// recount makes the topic count against the share of the caller of one remaining reader. The caller holds the lock.
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
	if t.key.Channel != messages.ChannelUser && t.holder != next {
		t.feed.shares.move(t.holder, next)
		t.holder = next
	}
}

// makeRoom closes one topic and reports whether it could close one. It first looks for a topic that lingers, then for a topic
// beyond a caller's share, then for a topic that is watched only for queries. If user is true, makeRoom looks for the topic of an
// account. If user is false, it looks for a public topic. The caller holds the lock.
func (f *Feed) makeRoom(user bool) bool {
	if f.closeLingering(user) || !user && f.reclaim() {
		return true
	}
	for key, t := range f.topics {
		if (key.Channel == messages.ChannelUser) != user {
			continue
		}
		if readers, _ := t.watchers(); readers == 0 {
			if !f.auto.giveWay() {
				f.fail(t, market.Errorf(market.CodeRateLimited, "subscriptions need the space on the stream"))
			}
			return true
		}
	}
	return false
}

// closeLingering closes one topic without watches and reports whether there was such a topic. The caller holds the lock.
func (f *Feed) closeLingering(user bool) bool {
	for key, t := range f.topics {
		if (key.Channel == messages.ChannelUser) != user {
			continue
		}
		if readers, keepers := t.watchers(); readers == 0 && keepers == 0 {
			f.closeIdle(t)
			return true
		}
	}
	return false
}
