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

func (s *shares) of(caller string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[caller]
}

// admits reports whether a reader may watch a topic, nil being one that is not open: its caller may hold a quarter of the
// room, and more only while less than half of the room is taken. What another caller holds costs nothing. The feed's lock is
// held.
func (f *Feed) admits(r *Reader, t *topic, user bool) bool {
	if r == nil || !r.shared || user || t != nil && t.held() {
		return true
	}
	return f.public < f.cfg.Topics/2 || f.shares.of(r.caller) < max(f.cfg.Topics/4, 1)
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
		for w := range t.watches {
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
