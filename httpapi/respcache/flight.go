package respcache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"oddsgraph/internal/request"
)

// Outcome says where a response came from.
type Outcome uint8

const (
	// Executed means that the caller's own execution made the response.
	Executed Outcome = iota
	// Hit means that the response came from the cache.
	Hit
	// Shared means that another caller's concurrent execution made the response.
	Shared
)

// Place is the place of a request in the service. It may be nil.
type Place interface {
	// Join is called before the request waits for an execution that another call of Do has started, with the Place of that call. If it
	// returns an error, the request does not wait.
	Join(ctx context.Context, first any) error
}

// flight is an execution that equal requests wait for.
type flight struct {
	key   Key
	place Place // of the first caller
	// sequence and flushes are the values of Cache.sequence and Cache.flushes at the start of the flight.
	sequence, flushes uint64
	ctx               context.Context
	cancel            context.CancelCauseFunc
	done              chan struct{}
	// response or err is set before done is closed. current reports that the response was valid at the end of the flight.
	// interrupted reports that ctx ended before run returned.
	response             *Response
	err                  error
	current, interrupted bool

	// The cache's lock guards waiters.
	waiters int
}

// Do returns the response for a key: a valid response from the cache, the response of an equal running request, or the response of
// run. Do stores the response of run only if it is still valid when run returns.
//
// run gets a context with the values and the deadline of the first caller. That context does not end when the first caller gives
// up. It ends at its deadline, or when all waiting callers have given up. The last caller that gives up waits until run returns.
//
// A caller that joins a running execution gets the response of that execution if the response is still valid when run returns. A
// response is not valid if a value has changed, a read has failed, or a value was stale. So a valid response contains no value that
// has changed since the caller arrived. If the response is not valid, the callers that joined after the start of run share a second
// execution. They use the response of the second execution even if that response is not valid.
//
// If the response is not valid, or if the deadline of the first caller ended run early, another caller gets the response of run in
// only two cases:
//
//   - The caller has less time left than it has waited, so another execution would probably end early, too.
//   - The caller's deadline passes while the caller waits for the second execution.
//
// run returns nil if its context ended before the execution could start. The error of Do is the cause of ctx, an error of place, or
// an error that reports a panic in run.
func (c *Cache) Do(ctx context.Context, key Key, place Place, run func(ctx context.Context) *Response) (*Response, Outcome, error) {
	var arrivalSequence uint64
	var previous *flight // the last flight that ended without a response for this caller
	var arrival time.Time
	for {
		if r := c.find(ctx, key); r != nil {
			return r, Hit, nil
		}
		c.mu.Lock()
		c.sequence++
		if arrivalSequence == 0 {
			arrivalSequence, arrival = c.sequence, time.Now()
		}
		f, outcome := c.flights[key], Shared
		if f == nil {
			f, outcome = c.begin(ctx, key, place), Executed
			go c.fly(f, run)
		}
		f.waiters++
		c.mu.Unlock()
		request.From(f.ctx).Log.Serve(request.From(ctx).Log)
		mustUse, err := c.join(ctx, f, place, outcome)
		if err == nil && outcome == Executed {
			c.sweep()
		}
		if err == nil && (mustUse || outcome == Executed) {
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
		case mustUse, !f.interrupted && (f.current || f.err != nil || f.sequence > arrivalSequence):
			c.coalesced.Add(1)
			return f.response, outcome, f.err
		case late(ctx, arrival) && c.reusable(f):
			return f.response, outcome, nil
		}
		previous = f
	}
}

// late reports whether the time until the deadline of ctx is less than the time that a caller has waited since its arrival.
func late(ctx context.Context, arrival time.Time) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < time.Since(arrival)
}

// reusable reports whether a flight has a response, and whether neither Forget nor Flush was called since the flight began.
func (c *Cache) reusable(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.response != nil && f.flushes == c.flushes
}

// begin creates a flight for its first caller.
func (c *Cache) begin(first context.Context, key Key, place Place) *flight {
	f := &flight{key: key, place: place, sequence: c.sequence, flushes: c.flushes, done: make(chan struct{})}
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

// Concurrent requests have slightly different deadlines. If the deadline of a flight is less than deadlineSlack after the deadline
// of a caller, the two deadlines count as equal.
const deadlineSlack = 50 * time.Millisecond

// join waits for a flight; see Cache.wait. If another caller started the flight and the flight has not ended, join first calls
// place.Join, which ends early if the flight does.
func (c *Cache) join(ctx context.Context, f *flight, place Place, outcome Outcome) (mustUse bool, err error) {
	select {
	case <-f.done:
	default:
		if outcome != Shared || place == nil {
			break
		}
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(f.ctx, stop)()
		if err := place.Join(waiting, f.place); err != nil && f.ctx.Err() == nil {
			if c.leave(f, err) {
				<-f.done
			}
			return false, err
		}
	}
	return c.wait(ctx, f)
}

// wait waits until a flight has ended. If ctx ends first, most callers get the cause of ctx. Two kinds of callers go on waiting:
// the last waiter, and a caller whose deadline is also the deadline of the flight. For them, mustUse is true, because they must use
// the flight's response.
func (c *Cache) wait(ctx context.Context, f *flight) (mustUse bool, err error) {
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

// leave removes a waiter from a flight. If no other waiter is left, leave cancels the flight and returns true.
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

// unlist prevents new callers from joining a flight.
func (c *Cache) unlist(f *flight) {
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// fly executes run, stores the response if it is valid, and wakes the waiters. It unlists the flight before it checks the
// response. Otherwise a caller could join after the check and get a value that had changed before the caller joined.
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
	f.response.begin(now)
	f.current = !f.interrupted && f.response.valid(now)
	if f.current && f.flushes == c.flushes {
		c.store(f.key, f.response)
	}
}

// execute calls run. If run panics, execute returns an error.
func execute(ctx context.Context, run func(ctx context.Context) *Response) (r *Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("executing: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return run(ctx), nil
}
