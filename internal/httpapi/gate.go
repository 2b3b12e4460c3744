package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// gate bounds how many operations are under way at once, and how many wait for that and for how long.
type gate struct {
	slots    chan struct{}
	queue    int64
	patience time.Duration
	waiting  atomic.Int64
}

func newGate(operations, queue int, patience time.Duration) *gate {
	return &gate{slots: make(chan struct{}, operations), queue: int64(queue), patience: patience}
}

// retryAfter is when a client that was turned away had better come again.
const retryAfter = time.Second

// enter waits until an operation may go on. leave must be called when it is done. The error is a refusal, or the cause of
// ctx's end.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-g.slots }
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.queue {
		return nil, busy()
	}
	late := time.NewTimer(g.patience)
	defer late.Stop()
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-late.C:
		return nil, busy()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func busy() error {
	err := market.Errorf(market.CodeRateLimited, "the service has too much to do; try again in a moment")
	err.RetryAfter = retryAfter
	return &refusal{http.StatusServiceUnavailable, err}
}
