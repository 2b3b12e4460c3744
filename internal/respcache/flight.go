package respcache

import (
	"context"
	"errors"
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
	// ctx is the execution's, without its deadline.
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	// response is there when done is closed, unless run has panicked. current tells that it stood then, cut that the
	// execution's own time was over first.
	response     *Response
	current, cut bool

	// wanted counts those who wait, who executes included, under the cache's lock.
	wanted int
}

// Do returns the response to a question: one that is kept and stands, that of an equal request under way, or that of run,
// which is kept if it stands when run is over.
//
// run executes on the goroutine of the first who asks, under a context with the values and the deadline of his that does not
// end when he leaves: it is cancelled when all who wait have left. Whoever comes later may share what run returns if it stands
// when run is over, since nothing that it was made of has changed since he asked. If it does not stand, be it for a change,
// for an error or because it is made of what is stale, those who came after run had begun execute again, once for all of them:
// by then they all came before it began, and share what it gives in any case. What the deadline of another has cut is nobody
// else's.
//
// The error is the cause of the end of ctx, when others still wait.
func (c *Cache) Do(ctx context.Context, key Key, run func(ctx context.Context) *Response) (*Response, Outcome, error) {
	var arrived uint64
	for {
		if r := c.find(key); r != nil {
			return r, Hit, nil
		}
		c.mu.Lock()
		c.turn++
		if arrived == 0 {
			arrived = c.turn
		}
		f := c.flights[key]
		if f == nil {
			f = c.begin(ctx, key)
			c.mu.Unlock()
			return c.execute(ctx, f, run)
		}
		f.wanted++
		c.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			c.leave(f, context.Cause(ctx))
			return nil, Shared, context.Cause(ctx)
		}
		if f.response != nil && !f.cut && (f.current || f.began > arrived) {
			c.coalesced.Add(1)
			return f.response, Shared, nil
		}
	}
}

// begin starts a flight for the first who asks. The caller holds the lock.
func (c *Cache) begin(first context.Context, key Key) *flight {
	f := &flight{key: key, began: c.turn, forgotten: c.forgotten, done: make(chan struct{}), wanted: 1}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(first))
	c.flights[key] = f
	return f
}

// execute runs a flight for the first who asked, and for those who have joined by its end.
func (c *Cache) execute(first context.Context, f *flight, run func(ctx context.Context) *Response) (*Response, Outcome, error) {
	defer f.cancel(nil)
	ctx := f.ctx
	if deadline, ok := first.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	stop := context.AfterFunc(first, func() {
		if !errors.Is(first.Err(), context.DeadlineExceeded) { // which is the execution's own
			c.leave(f, context.Cause(first))
		}
	})
	defer stop()
	func() {
		defer c.land(f) // also after a panic
		r := run(ctx)
		r.cache = c
		f.response, f.cut = r, ctx.Err() != nil
	}()
	if errors.Is(first.Err(), context.Canceled) && !f.cut {
		return nil, Executed, context.Cause(first)
	}
	return f.response, Executed, nil
}

// leave takes one who waits away from a flight, which is cancelled when he was the last.
func (c *Cache) leave(f *flight, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.wanted--; f.wanted == 0 {
		c.end(f)
		f.cancel(cause)
	}
}

// end lets nobody join a flight any more. The caller holds the lock.
func (c *Cache) end(f *flight) {
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// land keeps what a flight has brought, if it stands, and tells those who wait. It judges when nobody can join any more, so
// that nobody shares what had changed when he came.
func (c *Cache) land(f *flight) {
	c.misses.Add(1)
	c.mu.Lock()
	c.end(f)
	now := c.clock.Now()
	f.current = f.response != nil && !f.cut && f.response.stands(now)
	if f.current && f.forgotten == c.forgotten {
		c.keep(f.key, f.response, now)
	}
	c.mu.Unlock()
	close(f.done)
	if f.current {
		c.sweep(now)
	}
}
