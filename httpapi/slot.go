package httpapi

import (
	"context"
	"sync"
)

// slot is the place of an operation in a limiter. The zero slot has no place, and neither has a nil slot.
type slot struct {
	limiter *limiter

	mu sync.Mutex
	// share counts the operation. It is nil if the operation has no place.
	share *share
	// away is true after the first call of Await. ended is true after the call of end.
	away, ended bool
}

// begin waits until an operation of the client in ctx may execute, and fills s. The calling function must call s.end. The error is
// an httpError, or the cause of ctx.
func (l *limiter) begin(ctx context.Context, s *slot) error {
	share, err := l.enter(ctx, false)
	if err == nil {
		*s = slot{limiter: l, share: share}
	}
	return err
}

// end gives up the operation's place.
func (s *slot) end() {
	s.mu.Lock()
	share, away := s.share, s.away
	s.share, s.ended = nil, true
	s.mu.Unlock()
	if share != nil {
		s.limiter.leave(share, away)
	}
}

// Await must be called before the operation waits for the venue, or for an equal operation that may wait for the venue. From the
// first call on, the limiter counts the operation among those that wait for the venue, until it ends. If it has no room for another
// one, the operation gives up its place and joins the queue. Await returns the same errors as limiter.begin.
func (s *slot) Await(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	if s.away || s.share == nil {
		s.mu.Unlock()
		return nil
	}
	s.away = true
	if s.limiter.depart(s.share) {
		s.mu.Unlock()
		return nil
	}
	share := s.share
	s.share = nil
	s.mu.Unlock()
	s.limiter.leave(share, false)
	share, err := s.limiter.enter(ctx, true)
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
