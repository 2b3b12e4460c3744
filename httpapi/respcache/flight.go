package respcache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"oddsgraph/internal/reqctx"
)

// Outcome is where a response came from.
type Outcome uint8

// The outcomes.
const (
	// Executed says that the caller's own execution made the response.
	Executed Outcome = iota
	// Hit says that it was kept.
	Hit
	// Shared says that the execution of an equal request at the same time made it.
	Shared
)

// flight is an execution that equal requests wait for.
type flight struct {
	key Key
	// began is its turn, forgotten how often Forget had been called by then.
	began, forgotten uint64
	ctx              context.Context
	cancel           context.CancelCauseFunc
	done             chan struct{}
	// response or err is there when done is closed. current tells that the response stood then, cut that the time of the
	// execution was over before it was made.
	response     *Response
	err          error
	current, cut bool

	// wanted counts those who wait, under the cache's lock.
	wanted int
}

// Do returns the response to a question: one that is kept and stands, that of an equal request under way, or that of run,
// which is kept if it stands when run is over.
//
// run executes under a context with the values and the deadline of the first who asks, which does not end when he leaves: it
// is cancelled when all who wait have left, and the last of them waits for that. Whoever comes later may share what run
// returns if it stands when run is over, since nothing that it was made of has changed since he asked. If it does not stand,
// be it for a change, for an error or because it is made of what is stale, those who came after run had begun execute again,
// once for all of them: by then they all came before it began, and share what it gives in any case. What the deadline of
// another has cut is nobody else's. But nobody executes again who has less time left than he has waited, since that would be
// cut too: he gets what he has waited for, as does who is out of time when he waits again.
//
// run returns nil where ctx ended before it could begin. The error is the cause of the end of ctx, then and when others still
// wait, or tells of a panic in run.
func (c *Cache) Do(ctx context.Context, key Key, run func(ctx context.Context) *Response) (*Response, Outcome, error) {
	var arrived uint64
	var last *flight // that of another which has landed and was not shared
	var came time.Time
	for {
		if r := c.find(key); r != nil {
			return r, Hit, nil
		}
		c.mu.Lock()
		c.turn++
		if arrived == 0 {
			arrived, came = c.turn, time.Now()
		}
		f, outcome := c.flights[key], Shared
		if f == nil {
			f, outcome = c.begin(ctx, key), Executed
			go c.fly(f, run)
		}
		f.wanted++
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
			if last != nil && errors.Is(err, context.DeadlineExceeded) && c.remembers(last) {
				return last.response, Shared, nil
			}
			return nil, outcome, err
		case outcome == Executed:
			return f.response, outcome, nil
		case own, !f.cut && (f.current || f.err != nil || f.began > arrived):
			c.coalesced.Add(1)
			return f.response, outcome, f.err
		case late(ctx, came) && c.remembers(f):
			return f.response, outcome, nil
		}
		last = f
	}
}

// late reports whether less time is left until the end of ctx than has passed since a time.
func late(ctx context.Context, came time.Time) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < time.Since(came)
}

// remembers reports whether a flight has brought a response, and nothing was forgotten since it began.
func (c *Cache) remembers(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.response != nil && f.forgotten == c.forgotten
}

// begin makes a flight for the first who asks. The caller holds the lock.
func (c *Cache) begin(first context.Context, key Key) *flight {
	f := &flight{key: key, began: c.turn, forgotten: c.forgotten, done: make(chan struct{})}
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

// besides is how much later than one's own the deadline of an execution may be to count as the same: requests that come at one
// time overtake each other.
const besides = 50 * time.Millisecond

// join is wait for a caller whose own execution it is, or who shares that of another.
func (c *Cache) join(ctx context.Context, f *flight, outcome Outcome) (own bool, err error) {
	select {
	case <-f.done:
	default:
		if outcome != Shared || c.before == nil {
			break
		}
		if err := c.before(ctx); err != nil {
			if c.leave(f, err) {
				<-f.done
			}
			return false, err
		}
	}
	return c.wait(ctx, f)
}

// wait waits until a flight has landed. If ctx ends before, that is only for who was the last to wait, or whose deadline is that
// of the flight, first of all who began it: what it brings is theirs then, whatever it is. The error is the cause of the end of
// ctx, for all others.
func (c *Cache) wait(ctx context.Context, f *flight) (own bool, err error) {
	select {
	case <-f.done:
		return false, nil
	case <-ctx.Done():
	}
	end, ends := f.ctx.Deadline()
	if ends && errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Until(end) < besides || c.leave(f, context.Cause(ctx)) {
		<-f.done
		return true, nil
	}
	return false, context.Cause(ctx)
}

// leave takes one who waits away from a flight and reports whether he was the last, so that it is cancelled.
func (c *Cache) leave(f *flight, cause error) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.wanted--; f.wanted > 0 {
		return false
	}
	c.end(f)
	f.cancel(cause)
	return true
}

// end lets nobody join a flight any more. The caller holds the lock.
func (c *Cache) end(f *flight) {
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// fly executes, keeps what that has brought, if it stands, and tells those who wait. It judges when nobody can join any more,
// so that nobody shares what had changed when he came.
func (c *Cache) fly(f *flight, run func(ctx context.Context) *Response) {
	c.misses.Add(1)
	defer f.cancel(nil)
	defer close(f.done)
	f.response, f.err = execute(f.ctx, run)
	if f.cut = f.ctx.Err() != nil; f.response == nil && f.err == nil {
		f.err = context.Cause(f.ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(f)
	if f.err != nil {
		return
	}
	f.response.cache = c
	now := c.clock.Now()
	f.current = !f.cut && f.response.stands(now)
	if f.current && f.forgotten == c.forgotten {
		c.keep(f.key, f.response, now)
	}
}

// execute is run, with its panics as errors.
func execute(ctx context.Context, run func(ctx context.Context) *Response) (r *Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("executing: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return run(ctx), nil
}
