package admission

import (
	"context"
	"sync"
)

// MaxVenues is the greatest number of venues of a Limiter.
const MaxVenues = 16

// Venues is a set of venues. The bit i is that of the venue at index i.
type Venues uint32

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
	joined      []*Slot // see Join
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
		return s.await(ctx, 1, 1)
	}
	err := s.await(ctx, at, 1)
	s.move(at)
	return err
}

// Join is like Await, for an operation that waits for an equal one, whose *Slot is first, and so for the same venues at any time. It
// leaves room for that operation, which may need a place later. Otherwise each would wait for the other.
func (s *Slot) Join(ctx context.Context, first any) error {
	if s == nil || s.limiter == nil {
		return nil
	}
	leader, ok := first.(*Slot)
	if s.limiter.venues == 1 || !ok {
		return s.await(ctx, 1, 2)
	}
	leader.mu.Lock()
	leader.joined = append(leader.joined, s)
	at := leader.at
	leader.mu.Unlock()
	return s.await(ctx, at, 2)
}

// move makes an operation that waits, and those that have joined it, wait for other venues.
func (s *Slot) move(at Venues) {
	s.mu.Lock()
	if s.away {
		if s.share != nil {
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
	if s.at != at { // the operation that this one has joined now waits for other venues
		s.limiter.move(share, at, s.at)
	}
	return nil
}
