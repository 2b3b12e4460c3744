package admission

import (
	"cmp"
	"context"
	"math/bits"
	"sync"
)

// MaxVenues is the greatest number of venues of a Limiter.
const MaxVenues = 16

// Venues is a set of venues. The bit i is that of the venue at index i.
type Venues uint32

// all calls yield with the index of each venue until yield returns false.
func (v Venues) all(yield func(int) bool) {
	for ; v != 0; v &= v - 1 {
		if !yield(bits.TrailingZeros32(uint32(v))) {
			return
		}
	}
}

// Slot is the place of an operation in a Limiter. The zero slot has no place, and neither has a nil slot.
type Slot struct {
	limiter *Limiter

	mu sync.Mutex
	// share counts the operation. It is nil if the operation has no place.
	share *share
	// away is true after the first call of Await or Join, and at are the venues that the operation then waits for. ended is true after
	// the call of End.
	away, ended bool
	at          Venues
	// joined contains the slots that wait for this one; see Join.
	joined []*Slot
}

// Begin waits until an operation of the client in ctx may execute, and fills s. The calling function must call s.End. The error is
// the one that New was given, or the cause of ctx.
func (l *Limiter) Begin(ctx context.Context, s *Slot) error {
	share, err := l.enter(ctx, 0, 0)
	if err == nil {
		*s = Slot{limiter: l, share: share}
	}
	return err
}

// End gives up the operation's place.
func (s *Slot) End() {
	s.mu.Lock()
	share, at := s.share, s.at
	s.share, s.ended = nil, true
	s.mu.Unlock()
	if share != nil {
		s.limiter.leave(share, at)
	}
}

// Await must be called each time before the operation waits for venues. From the first call of Await or Join on, the limiter counts
// the operation among those that wait for these venues, until the next call or until the operation ends. If the first call finds no room
// for another one, the operation gives up its place and joins the queue. Await returns the same errors as Begin.
func (s *Slot) Await(ctx context.Context, at Venues) error {
	if s == nil || s.limiter == nil {
		return nil
	}
	if s.limiter.venues == 1 {
		at = 1
	} else {
		s.move(at)
	}
	return s.await(ctx, at, 1)
}

// Join is like Await, for an operation that waits for an equal one: as long as both wait, for the venues of the slot first, which is a
// *Slot. It leaves room for that operation, which may need a place later. Otherwise each would wait for the other.
func (s *Slot) Join(ctx context.Context, first any) error {
	switch leader, ok := first.(*Slot); {
	case s == nil || s.limiter == nil:
		return nil
	case s.limiter.venues == 1 || !ok || leader == nil:
		return s.await(ctx, s.limiter.every(), 2)
	default:
		err := s.await(ctx, cmp.Or(leader.waits(nil), s.limiter.every()), 2)
		if err == nil {
			s.move(cmp.Or(leader.waits(s), s.limiter.every()))
		}
		return err
	}
}

// waits returns the venues that the operation waits for. If other is not nil, other waits for the same venues from now on.
func (s *Slot) waits(other *Slot) Venues {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other != nil {
		s.joined = append(s.joined, other)
	}
	return s.at
}

// move makes the operation, and those that have joined it, wait for other venues from now on.
func (s *Slot) move(at Venues) {
	s.mu.Lock()
	if s.away {
		if s.share != nil && s.at != at {
			s.limiter.move(s.share, s.at, at)
		}
		s.at = at
	}
	joined := s.joined
	s.mu.Unlock()
	for _, other := range joined {
		other.move(at)
	}
}

// await implements the first call of Await or Join. It takes one place for each venue if free places are free.
func (s *Slot) await(ctx context.Context, at Venues, free int) error {
	s.mu.Lock()
	if s.away || s.share == nil {
		s.mu.Unlock()
		return nil
	}
	s.away, s.at = true, at
	if s.limiter.depart(s.share, at, free) {
		s.mu.Unlock()
		return nil
	}
	share := s.share
	s.share = nil
	s.mu.Unlock()
	s.limiter.leave(share, 0)
	share, err := s.limiter.enter(ctx, at, free)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // the request that started the operation has ended, but another request still waits for the response
		s.limiter.leave(share, at)
		return nil
	}
	s.share = share
	if s.at != at {
		s.limiter.move(share, at, s.at)
	}
	return nil
}
