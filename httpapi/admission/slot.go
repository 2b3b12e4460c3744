package admission

import (
	"context"
	"sync"
)

// Slot is the place of an operation in a Limiter. The zero slot has no place, and neither has a nil slot.
type Slot struct {
	limiter *Limiter

	mu sync.Mutex
	// share counts the operation. It is nil if the operation has no place.
	share *share
	// away is true after the first call of Await or Join. ended is true after the call of End.
	away, ended bool
}

// Begin waits until an operation of the client in ctx may execute, and fills s. The calling function must call s.End. The error is
// the one that New was given, or the cause of ctx.
func (l *Limiter) Begin(ctx context.Context, s *Slot) error {
	share, err := l.enter(ctx, 0)
	if err == nil {
		*s = Slot{limiter: l, share: share}
	}
	return err
}

// End gives up the operation's place.
func (s *Slot) End() {
	s.mu.Lock()
	share, away := s.share, s.away
	s.share, s.ended = nil, true
	s.mu.Unlock()
	if share != nil {
		s.limiter.leave(share, away)
	}
}

// Await must be called before the operation waits for the venue. From the first call of Await or Join on, the limiter counts the
// operation among those that wait for the venue, until it ends. If it has no room for another one, the operation gives up its place
// and joins the queue. Await returns the same errors as Begin.
func (s *Slot) Await(ctx context.Context) error { return s.await(ctx, 1) }

// Join is like Await, for an operation that waits for an equal one. It leaves room for that operation, which may need a place later.
// Otherwise each would wait for the other.
func (s *Slot) Join(ctx context.Context) error { return s.await(ctx, 2) }

// await implements Await and Join. It takes one place if free places are free.
func (s *Slot) await(ctx context.Context, free int) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	if s.away || s.share == nil {
		s.mu.Unlock()
		return nil
	}
	s.away = true
	if s.limiter.depart(s.share, free) {
		s.mu.Unlock()
		return nil
	}
	share := s.share
	s.share = nil
	s.mu.Unlock()
	s.limiter.leave(share, false)
	share, err := s.limiter.enter(ctx, free)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // the request that started the operation has ended, but another request still waits for the response
		s.limiter.leave(share, true)
		return nil
	}
	s.share = share
	return nil
}
