package feed

import (
	"sync"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// shares counts the public topics of each caller. If readers of several callers watch a topic, the topic counts for only one
// caller. When the reader of this caller closes its watch, the topic counts for the caller of another reader, if there is one.
type shares struct {
	// mu is the last lock in the lock order.
	mu     sync.Mutex
	counts map[string]int // the number of topics of each caller; callers without topics have no entry
}

// move subtracts one topic from the count of from.caller and adds it to the count of to.caller. Either reader may be nil.
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

func (s *shares) count(caller string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[caller]
}

// withinShare reports whether the caller of reader r has at most f.share() topics if r also watches the topic t. t is nil if the
// topic is not open. If t already counts for a caller, another watch of t adds nothing, so withinShare returns true. user means that
// the topic is an account. For an account, withinShare also returns true. f.mu must be locked.
func (f *Feed) withinShare(r *Reader, t *topic, user bool) bool {
	return user || t != nil && t.counted() || f.shares.count(r.caller) < f.share()
}

// halfFree reports whether the number of open public topics is less than half of Config.Topics. f.mu must be locked.
func (f *Feed) halfFree() bool { return f.public < f.cfg.Topics/2 }

// share returns the number of public topics that each caller may always watch.
func (f *Feed) share() int { return max(f.cfg.Topics/4, 1) }

// reclaimable reports whether the feed may end the watches of a topic to make room for topics of other callers. Prices and books
// are reclaimable, because clients can poll them instead. Trades and market changes are not, because a client that polls misses
// some of them.
func reclaimable(key messages.Topic) bool {
	return key.Channel == messages.ChannelPrices || key.Channel == messages.ChannelOrderbook
}

// reclaim ends a reclaimable topic of a caller that watches more than f.share() topics, and reports whether there was such a topic.
// Among several such topics, reclaim chooses a topic of the caller with the most topics. It never ends a topic that another caller,
// or this service itself, also watches. f.mu must be locked.
func (f *Feed) reclaim() bool {
	var last *topic
	most := f.share()
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

// giveUp ends a reclaimable topic that only this caller watches, and reports whether there was such a topic. f.mu must be locked.
func (f *Feed) giveUp(caller string) bool {
	for key, t := range f.topics {
		if !reclaimable(key) {
			continue
		}
		if only, sole := t.soleCaller(); sole && only == caller {
			f.fail(t, errReclaimed)
			return true
		}
	}
	return false
}

var errReclaimed error = market.Errorf(market.CodeRateLimited, "other subscriptions need the space on the stream")

// soleCaller returns the caller for which the topic counts. sole is false if the topic counts for no caller, or if another caller or
// this service itself also watches the topic.
func (t *topic) soleCaller() (caller string, sole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil {
		return "", false
	}
	for _, w := range t.watches {
		if w.owner == nil || w.owner.caller != t.holder.caller {
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

// recount makes the topic count for the caller of one of the topic's readers, or for no caller if the topic has ended or has no
// reader. It does nothing for an account. t.mu must be locked.
func (t *topic) recount() {
	var next *Reader
	if !t.ended {
		for _, w := range t.watches {
			if w.owner != nil {
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

// makeRoom closes one topic and reports whether it could close one. If user is true, it closes the topic of an account that
// no reader watches. If user is false, it closes a public topic, in this order of preference:
//   - a topic without watches
//   - a topic of a caller that watches more than f.share() topics
//   - a topic that no subscription uses
//   - a topic that only KeepLive holds
//
// f.mu must be locked.
func (f *Feed) makeRoom(user bool) bool {
	if f.closeLingering(user) || !user && f.reclaim() {
		return true
	}
	hasOwner, hasReader := func(w *Watch) bool { return w.owner != nil }, func(w *Watch) bool { return w.reader != nil }
	for _, isUsed := range []func(*Watch) bool{hasOwner, hasReader} {
		for key, t := range f.topics {
			if (key.Channel == messages.ChannelUser) == user && !t.hasWatch(isUsed) {
				f.fail(t, market.Errorf(market.CodeRateLimited, "subscriptions need the space on the stream"))
				return true
			}
		}
	}
	return false
}

// closeLingering closes one topic without watches and reports whether there was such a topic. f.mu must be locked.
func (f *Feed) closeLingering(user bool) bool {
	for key, t := range f.topics {
		if (key.Channel == messages.ChannelUser) == user && f.closeIdle(t) {
			return true
		}
	}
	return false
}
