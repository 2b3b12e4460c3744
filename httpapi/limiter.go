package httpapi

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// limiter bounds the number of running operations, and the number of operations that wait in its queue. quota.Fair decides whether
// another operation of a client may run or wait. When an operation ends, the next operation comes from the waiting client with the
// fewest running operations.
type limiter struct {
	// client returns the client in a context.
	client            func(context.Context) quota.Client
	operations, queue int
	timeout           time.Duration

	// mu guards the fields below. share, forget and admit are called with it held.
	mu               sync.Mutex
	running, waiting int
	// clients contains the clients that have running or waiting operations.
	clients map[quota.Client]*share
	spare   []*share // unused values, for reuse
}

type share struct {
	client  quota.Client
	running int
	// waiting contains a channel for each waiting operation, oldest first. The limiter closes the channel when the operation may
	// run.
	waiting []chan struct{}
	release func()
}

func newLimiter(client func(context.Context) quota.Client, operations, queue int, timeout time.Duration) *limiter {
	return &limiter{client: client, operations: operations, queue: queue, timeout: timeout, clients: make(map[quota.Client]*share)}
}

// retryAfter is how long a refused client should wait before its next attempt.
const retryAfter = time.Second

// acquire waits until an operation of the client in ctx may run, but at most for l.timeout. The calling function must call the
// function release once, when the operation has ended. The error is an httpError, or the cause of ctx.
func (l *limiter) acquire(ctx context.Context) (release func(), err error) {
	client := l.client(ctx)
	l.mu.Lock()
	s := l.share(client)
	if quota.Fair(s.running, 1, l.operations-l.running) {
		l.admit(s)
		l.mu.Unlock()
		return s.release, nil
	}
	if !quota.Fair(len(s.waiting), 1, l.queue-l.waiting) {
		l.forget(s)
		l.mu.Unlock()
		return nil, busy()
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	l.waiting++
	l.mu.Unlock()

	late := time.NewTimer(l.timeout)
	defer late.Stop()
	select {
	case <-turn:
		return s.release, nil
	case <-late.C:
		err = busy()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if !l.giveUp(s, turn) {
		return s.release, nil
	}
	return nil, err
}

// share returns the client's entry in clients, and adds the entry if necessary.
func (l *limiter) share(client quota.Client) *share {
	s := l.clients[client]
	if s != nil {
		return s
	}
	if last := len(l.spare) - 1; last >= 0 {
		s, l.spare = l.spare[last], l.spare[:last]
	} else {
		s = &share{}
		s.release = func() { l.release(s) }
	}
	s.client = client
	l.clients[client] = s
	return s
}

// forget moves a share without operations from clients to spare. It does nothing if the share has running or waiting operations.
func (l *limiter) forget(s *share) {
	if s.running == 0 && len(s.waiting) == 0 {
		delete(l.clients, s.client)
		l.spare = append(l.spare, s)
	}
}

func (l *limiter) admit(s *share) {
	s.running++
	l.running++
}

// release stops counting an operation as running, and admits the waiting operations that may run now.
func (l *limiter) release(s *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.running--
	l.running--
	for l.waiting > 0 {
		var next *share
		for _, c := range l.clients {
			if len(c.waiting) > 0 && (next == nil || c.running < next.running) {
				next = c
			}
		}
		if !quota.Fair(next.running, 1, l.operations-l.running) {
			break
		}
		close(next.waiting[0])
		next.waiting = slices.Delete(next.waiting, 0, 1)
		l.waiting--
		l.admit(next)
	}
	l.forget(s)
}

// giveUp removes an operation from the queue. It returns false if the operation was already admitted.
func (l *limiter) giveUp(s *share, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(s.waiting, turn)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	l.waiting--
	l.forget(s)
	return true
}

func (l *limiter) stats() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running, l.waiting
}

func busy() error {
	err := market.Errorf(market.CodeRateLimited, "the service has too much to do; try again in a moment")
	err.RetryAfter = retryAfter
	return &httpError{http.StatusServiceUnavailable, err}
}
