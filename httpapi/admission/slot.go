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
	// share counts the operation in a part. It is nil if the operation has no place.
	share *share
	part  int
	// at are the venues that the operation waits for. changed, if any, is closed when they change. ended is true after the call of End.
	at      Venues
	changed chan struct{}
	ended   bool
}

// Begin waits until an operation of the client in ctx may execute, and fills s. The calling function must call s.End. The error is
// the one that New was given, or the cause of ctx.
func (l *Limiter) Begin(ctx context.Context, s *Slot) error {
	share, part, err := l.enter(ctx, 0, 0)
	if err == nil {
		*s = Slot{limiter: l, share: share, part: part}
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

// Await must be called before the operation waits for venues, and again when it waits for others. From the first call of Await or Join
// on, the limiter counts the operation in the part of one of these venues, until it waits only for others or ends. If none of the parts
// has room for another one, the operation gives up its place and joins the queue. Await returns the same errors as Begin.
func (s *Slot) Await(ctx context.Context, at Venues) error {
	return s.await(ctx, at, 1)
}

// Join is like Await, for an operation that waits for an equal one, whose *Slot is first. It leaves room for that operation, which may
// need a place later. Otherwise each would wait for the other. With several venues, Join returns when ctx ends: until then, the operation
// waits for the same venues as the other one.
func (s *Slot) Join(ctx context.Context, first any) error {
	leader, ok := first.(*Slot)
	if !ok || s == nil || s.limiter == nil || s.limiter.Venues == 1 {
		return s.await(ctx, 1, 2)
	}
	for ctx.Err() == nil {
		at, changed := leader.watch()
		if err := s.await(ctx, at, 2); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// watch returns the venues that the operation waits for, and a channel that is closed when they change.
func (s *Slot) watch() (Venues, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.at, s.changed
}

// await implements Await and Join. It takes one place of a part if free places are free.
func (s *Slot) await(ctx context.Context, at Venues, free int) error {
	if s == nil || s.limiter == nil {
		return nil
	}
	s.mu.Lock()
	if s.at != at && s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	s.at = at
	if s.share == nil || at&(1<<s.part) != 0 {
		s.mu.Unlock()
		return nil
	}
	share, from := s.share, s.part
	if part, ok := s.limiter.move(share, from, at, free); ok {
		s.part = part
		s.mu.Unlock()
		return nil
	}
	s.share, s.part = nil, nowhere
	s.mu.Unlock()
	s.limiter.leave(share, from)
	share, part, err := s.limiter.enter(ctx, at, free)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // the request that started the operation has ended, but another request still waits for the response
		s.limiter.leave(share, part)
		return nil
	}
	s.share, s.part = share, part
	return nil
}
