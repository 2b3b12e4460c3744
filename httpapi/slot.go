package httpapi

import (
	"context"
	"sync"
	"time"

	"oddsgraph/httpapi/quota"
)

// limiters bound the number of operations. Operations that execute and operations that wait for the venue have separate limits,
// so a slow endpoint of the venue does not block operations that need no call.
type limiters struct{ executing, waiting *limiter }

func newLimiters(client func(context.Context) quota.Client, operations, queue int, timeout time.Duration) limiters {
	return limiters{newLimiter(client, operations, queue, timeout), newLimiter(client, operations, queue, timeout)}
}

// slot is the context of an operation that one of the limiters counts.
type slot struct {
	context.Context
	limiters limiters

	mu sync.Mutex
	// release makes the limiter stop counting the operation. It is nil if no limiter counts the operation.
	release func()
	// moved is true after the first call of awaitVenue. ended is true after the call of end.
	moved, ended bool
}

type slotKey struct{}

func (s *slot) Value(key any) any {
	if key == (slotKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// acquire waits until an operation of the client in ctx may execute, and fills s. The calling function must call s.end. The error
// is an httpError, or the cause of ctx.
func (l limiters) acquire(ctx context.Context, s *slot) error {
	release, err := l.executing.acquire(ctx)
	if err != nil {
		return err
	}
	*s = slot{Context: ctx, limiters: l, release: release}
	return nil
}

// end makes the limiter stop counting the operation.
func (s *slot) end() {
	s.mu.Lock()
	release := s.release
	s.release, s.ended = nil, true
	s.mu.Unlock()
	if release != nil {
		release()
	}
}

// awaitVenue must be called before the operation in ctx waits for the venue. The first call moves the operation from the executing
// limiter to the waiting limiter, which counts the operation until it ends. awaitVenue returns the same errors as limiters.acquire.
// It does nothing if ctx contains no slot.
func awaitVenue(ctx context.Context) error {
	s, _ := ctx.Value(slotKey{}).(*slot)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	if s.moved || s.ended {
		s.mu.Unlock()
		return nil
	}
	release := s.release
	s.moved, s.release = true, nil
	s.mu.Unlock()
	release()
	release, err := s.limiters.waiting.acquire(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // the request that started the operation has ended, but another request still waits for the response
		release()
		return nil
	}
	s.release = release
	return nil
}

// stats returns the number of running operations and the number of queued operations of both limiters together. An operation that
// waits for the venue counts as running.
func (l limiters) stats() (running, queued int) {
	running, queued = l.executing.stats()
	away, more := l.waiting.stats()
	return running + away, queued + more
}
