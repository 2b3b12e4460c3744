package httpapi

import (
	"context"
	"sync/atomic"
	"time"

	"oddsgraph/resolvers"
)

// eventTime is how long what is read beside an event may hold it up.
const eventTime = 3 * time.Second

// eventContext is what one event of a subscription is executed under. Its time begins with the event and not with the wait
// for it.
type eventContext struct {
	context.Context
	// deadline is in nanoseconds of Unix time, 0 before the event.
	deadline atomic.Int64
}

// Deadline implements context.Context.
func (c *eventContext) Deadline() (time.Time, bool) {
	if at := c.deadline.Load(); at != 0 {
		return time.Unix(0, at), true
	}
	return c.Context.Deadline()
}

// Err implements context.Context.
func (c *eventContext) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}

// forEvent returns the context of the next event. done must be called when its response is made.
func forEvent(ctx context.Context, limit time.Duration) (_ context.Context, done func()) {
	inner, cancel := context.WithCancelCause(ctx)
	c := &eventContext{Context: inner}
	var late atomic.Pointer[time.Timer]
	resolvers.WhenSent(ctx, func() {
		c.deadline.Store(time.Now().Add(limit).UnixNano())
		late.Store(time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) }))
	})
	return c, func() {
		if t := late.Load(); t != nil {
			t.Stop()
		}
		cancel(nil)
	}
}
