package feed

import (
	"sync"

	"oddsgraph/internal/market"
)

// shares count the public topics that callers hold. Every topic that readers of callers watch, or keep live beside what
// they watch, counts for one of those callers, whichever came first of those that are left.
type shares struct {
	// mu is taken inside all other locks.
	mu   sync.Mutex
	held map[string]int // by caller; never 0
}

// move takes a topic from the account of a reader's caller to another's. Nil is nobody.
func (s *shares) move(from, to *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from != nil {
		if s.held[from.caller]--; s.held[from.caller] == 0 {
			delete(s.held, from.caller)
		}
	}
	if to != nil {
		s.held[to.caller]++
	}
}

// exceeded reports whether a caller holds more than a share.
func (s *shares) exceeded(share int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.held {
		if n > share {
			return true
		}
	}
	return false
}

func (s *shares) of(caller string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[caller]
}

// sure reports whether a reader watches a topic, nil being one that is not open, on its caller's share. What another caller
// holds costs nothing. The feed's lock is held.
func (f *Feed) sure(r *Reader, t *topic, user bool) bool {
	return r == nil || !r.shared || user || t != nil && t.held() || f.shares.of(r.caller) < f.share()
}

// ample reports whether less than half of the room is taken. The feed's lock is held.
func (f *Feed) ample() bool { return f.public < f.cfg.Topics/2 }

// share is how many topics a caller may hold that nobody takes back.
func (f *Feed) share() int { return max(f.cfg.Topics/4, 1) }

// lends reports whether a topic may be held past the share of its caller, in room that nobody else needs: one of a state,
// which may be polled when it is taken back. What is told only once is not lent.
func lends(key market.Topic) bool {
	return key.Channel == market.ChannelPrices || key.Channel == market.ChannelOrderbook
}

// reclaim ends a topic that a caller holds past its share, of the caller who holds most. Topics that others watch too stay.
// It reports whether there was one. The feed's lock is held.
func (f *Feed) reclaim() bool {
	var last *topic
	most := f.share()
	if !f.shares.exceeded(most) {
		return false
	}
	for key, t := range f.topics {
		if !lends(key) {
			continue
		}
		if caller, sole := t.borrower(); sole {
			if n := f.shares.of(caller); n > most {
				last, most = t, n
			}
		}
	}
	if last == nil {
		return false
	}
	f.forget(last, errReclaimed)
	return true
}

// errReclaimed ends watches of a topic that others need the room of.
var errReclaimed error = market.Errorf(market.CodeRateLimited, "others need the room on the stream")

// borrower returns the caller that the topic counts for, and whether nobody else watches it.
func (t *topic) borrower() (caller string, sole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil {
		return "", false
	}
	for _, w := range t.watches {
		if w.owner == nil || !w.owner.shared || w.owner.caller != t.holder.caller {
			return "", false
		}
	}
	return t.holder.caller, true
}

// held reports whether the topic counts for a caller.
func (t *topic) held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holder != nil
}

// settle makes the topic count for one of those who are left. The lock is held.
func (t *topic) settle() {
	var next *Reader
	if !t.ended {
		for _, w := range t.watches {
			if w.owner != nil && w.owner.shared {
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
