package respcache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// Outcome says where a response came from.
type Outcome uint8

// The outcomes of Do.
const (
	// Executed means that the caller's own execution made the response.
	Executed Outcome = iota
	// Hit means that the response came from the cache.
	Hit
	// Shared means that another caller's concurrent execution made the response.
	Shared
)

// flight is an execution that equal requests wait for.
type flight struct {
	key Key
	// began is Cache.sequence, and flushes is Cache.flushes, when the flight started.
	began, flushes uint64
	ctx            context.Context
	cancel         context.CancelCauseFunc
	done           chan struct{}
	// response or err is set when done is closed. current says that the response was valid then. interrupted says that ctx had ended.
	response             *Response
	err                  error
	current, interrupted bool

	// waiters is guarded by the cache's lock.
	waiters int
}

// Do returns the response for a key: a valid one from the cache, that of an equal request under way, or that of run,
// which is stored if it is still valid when run returns.
//
// run gets a context with the values and the deadline of the first caller. That context does not end when the first
// caller leaves. It is cancelled when all waiting callers have left, and the last of them waits for run to return.
//
// A caller that joins later may share a response that is still valid when run returns: nothing that it was made of has
// changed since the caller arrived. If the response is not valid (a change, an error, stale values), the callers that
// arrived after run had started execute again, once for all of them, and share that response in any case.
//
// A response that another caller's deadline has cut short is not shared. There is one exception: a caller that has less
// time left than it has waited gets that response, because its own execution would be cut short too. So does a caller
// whose time ends while it waits again.
//
// run returns nil if ctx ended before it could start. The error is the cause of the end of ctx, or reports a panic in run.
func (c *Cache) Do(ctx context.Context, key Key, run func(ctx context.Context) *Response) (*Response, Outcome, error) {
	var arrived uint64
	var previous *flight // the last flight that has ended and was not shared
	var came time.Time
	for {
		if r := c.find(key); r != nil {
			return r, Hit, nil
		}
		c.mu.Lock()
		c.sequence++
		if arrived == 0 {
			arrived, came = c.sequence, time.Now()
		}
		f, outcome := c.flights[key], Shared
		if f == nil {
			f, outcome = c.begin(ctx, key), Executed
			go c.fly(f, run)
		}
		f.waiters++
		c.mu.Unlock()
		reqctx.LogFrom(f.ctx).Serve(reqctx.LogFrom(ctx))
		own, err := c.join(ctx, f, outcome)
		if err == nil && outcome == Executed {
			c.sweep()
		}
		if err == nil && (own || outcome == Executed) {
			err = f.err
		}
		switch {
		case err != nil:
			if previous != nil && errors.Is(err, context.DeadlineExceeded) && c.reusable(previous) {
				return previous.response, Shared, nil
			}
			return nil, outcome, err
		case outcome == Executed:
			return f.response, outcome, nil
		case own, !f.interrupted && (f.current || f.err != nil || f.began > arrived):
			c.coalesced.Add(1)
			return f.response, outcome, f.err
		case late(ctx, came) && c.reusable(f):
			return f.response, outcome, nil
		}
		previous = f
	}
}

// late reports whether less time is left until ctx ends than has passed since came.
func late(ctx context.Context, came time.Time) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < time.Since(came)
}

// reusable reports whether a flight has a response and the cache was not flushed since the flight began.
func (c *Cache) reusable(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.response != nil && f.flushes == c.flushes
}

// begin starts a flight for its first caller. The caller holds the lock.
func (c *Cache) begin(first context.Context, key Key) *flight {
	f := &flight{key: key, began: c.sequence, flushes: c.flushes, done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(first))
	c.flights[key] = f
	if deadline, ok := first.Deadline(); ok {
		cancel := f.cancel
		var expire context.CancelFunc
		f.ctx, expire = context.WithDeadline(f.ctx, deadline)
		f.cancel = func(cause error) { cancel(cause); expire() }
	}
	return f
}

// deadlineSlack is how much later than the caller's own deadline a flight's deadline may be and still count as the same.
// Concurrent requests overtake each other.
const deadlineSlack = 50 * time.Millisecond

// join waits for a flight. A caller that shares the flight first asks Config.Wait.
func (c *Cache) join(ctx context.Context, f *flight, outcome Outcome) (own bool, err error) {
	select {
	case <-f.done:
	default:
		if outcome != Shared || c.beforeWait == nil {
			break
		}
		if err := c.beforeWait(ctx); err != nil {
			if c.leave(f, err) {
				<-f.done
			}
			return false, err
		}
	}
	return c.wait(ctx, f)
}

// wait waits until a flight has ended. If ctx ends first, only two kinds of callers go on waiting: the last waiter, and
// a caller whose deadline is the flight's. The flight's response is then their own, and own is true. All others get the
// cause of the end of ctx.
func (c *Cache) wait(ctx context.Context, f *flight) (own bool, err error) {
	select {
	case <-f.done:
		return false, nil
	case <-ctx.Done():
	}
	end, ends := f.ctx.Deadline()
	if ends && errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Until(end) < deadlineSlack || c.leave(f, context.Cause(ctx)) {
		<-f.done
		return true, nil
	}
	return false, context.Cause(ctx)
}

// leave removes a waiter from a flight and reports whether it was the last. Then the flight is cancelled.
func (c *Cache) leave(f *flight, cause error) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return false
	}
	c.unlist(f)
	f.cancel(cause)
	return true
}

// unlist keeps new callers from joining a flight. The caller holds the lock.
func (c *Cache) unlist(f *flight) {
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// fly executes run, stores the response if it is valid, and wakes the waiters. It checks the response after the flight
// is unlisted. So no caller shares values that changed before the caller arrived.
func (c *Cache) fly(f *flight, run func(ctx context.Context) *Response) {
	c.misses.Add(1)
	defer f.cancel(nil)
	defer close(f.done)
	f.response, f.err = execute(f.ctx, run)
	if f.interrupted = f.ctx.Err() != nil; f.response == nil && f.err == nil {
		f.err = context.Cause(f.ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unlist(f)
	if f.err != nil {
		return
	}
	f.response.cache = c
	now := c.clock.Now()
	f.current = !f.interrupted && f.response.valid(now)
	if f.current && f.flushes == c.flushes {
		c.store(f.key, f.response, now)
	}
}

// execute calls run and returns a panic as an error.
func execute(ctx context.Context, run func(ctx context.Context) *Response) (r *Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("executing: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return run(ctx), nil
}
