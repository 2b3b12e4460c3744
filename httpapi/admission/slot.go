package admission

import (
	"context"
	"sync"
)

// Venues is a set of venues. The bit i is that of the venue at index i.
type Venues uint32

// Slot is the place of an operation in a Limiter. The zero slot has no place, and neither has a nil slot.
type Slot struct {
	limiter *Limiter

	mu sync.Mutex
	// share counts the operation. It is nil if the operation has no place.
	share *share
	// away is true after the first call of Await or Join, and part is then that of the operation. ended is true after the call of End.
	away, ended bool
	part        int
}

// Begin waits until an operation of the client in ctx may execute, and fills s. The calling function must call s.End. The error is
// the one that New was given, or the cause of ctx.
func (l *Limiter) Begin(ctx context.Context, s *Slot) error {
	share, err := l.enter(ctx, nowhere, 0)
	if err == nil {
		*s = Slot{limiter: l, share: share, part: nowhere}
	}
	return err
}

// End gives up the operation's place.
func (s *Slot) End() {
	s.mu.Lock()
	share, part := s.share, s.part
	s.share, s.ended = nil, true
	s.mu.Unlock()
	if share != nil {
		s.limiter.leave(share, part)
	}
}

// Await must be called before the operation waits for venues. From the first call of Await or Join on, the limiter counts the operation
// in the part of these venues, until it ends. If the part has no room for another one, the operation gives up its place and joins the
// queue. Await returns the same errors as Begin.
func (s *Slot) Await(ctx context.Context, at Venues) error {
	if s == nil || s.limiter == nil {
		return nil
	}
	return s.await(ctx, s.limiter.partOf(at), 1)
}

// Join is like Await, for an operation that waits for an equal one, whose *Slot is first. It leaves room for that operation, which may
// need a place later. Otherwise each would wait for the other. With several venues, it does nothing if that operation waits for none yet.
func (s *Slot) Join(ctx context.Context, first any) error {
	if s == nil || s.limiter == nil {
		return nil
	}
	part := 0
	if leader, ok := first.(*Slot); ok && s.limiter.parts > 1 {
		leader.mu.Lock()
		part = leader.part
		leader.mu.Unlock()
	}
	if part == nowhere {
		return nil
	}
	return s.await(ctx, part, 2)
}

// await implements Await and Join. It takes one place of a part if free places are free.
func (s *Slot) await(ctx context.Context, part, free int) error {
	s.mu.Lock()
	if s.away || s.share == nil {
		s.mu.Unlock()
		return nil
	}
	s.away, s.part = true, part
	if s.limiter.depart(s.share, part, free) {
		s.mu.Unlock()
		return nil
	}
	share := s.share
	s.share = nil
	s.mu.Unlock()
	s.limiter.leave(share, nowhere)
	share, err := s.limiter.enter(ctx, part, free)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // the request that started the operation has ended, but another request still waits for the response
		s.limiter.leave(share, part)
		return nil
	}
	s.share = share
	return nil
}
