package ratelimit

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// reservation is the place of one read in a window's queue and, once admitted, its permit. The budget's lock protects it.
type reservation struct {
	budget *Budget
	window *window
	scope  string
	// priority is that of the queue, counted the one that the reservation's calls were counted by.
	priority, counted reqctx.Priority
	caller            *caller
	// deadline is until when somebody waits for the read; unlimited tells that somebody does for ever.
	deadline  time.Time
	unlimited bool
	// takes is how long the read lasts once it was admitted; 0 of a further call.
	takes time.Duration

	queued bool
	// arrival orders the reservations of one priority; a further call has that of its read.
	arrival uint64
	// turn is what plan says about a queued reservation, in the round of that plan.
	turn  time.Time
	round uint64

	// admitted tells that the reservation may make one call more, which is counted already; flying that its call is counted and
	// has not ended.
	admitted, released, flying bool
	// made counts the calls that were let through, further ones included.
	made int
	// of is the reservation of the read that this one is a further call of, further are those of the further calls that wait or
	// have not ended.
	of      *reservation
	further []*reservation
	// credit is the granted call that the reservation uses; zero if it uses none.
	credit credit
	// decided is made when somebody waits for it.
	decided chan struct{}
	err     error
}

// closedChannel is what those get who ask for what is decided.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// late reports whether a queued reservation's turn would come when the answer finds nobody waiting any more. Of a refresh it never
// does.
func (t *reservation) late() bool {
	read := t
	if t.of != nil {
		read = t.of
	}
	return !read.unlimited && !t.turn.Add(t.takes).Before(read.deadline)
}

// admit lets the reservation make a call. The caller holds the lock.
func (t *reservation) admit(now time.Time) {
	if t.counted = t.priority; t.priority == reqctx.PriorityRefresh {
		t.window.refreshed = now
	}
	t.admitted = true
	t.window.take(t)
	t.window.pay(t, now)
	t.decide()
}

// refuse ends the reservation's wait. The caller holds the lock.
func (t *reservation) refuse(err error) {
	t.err = err
	t.decide()
}

func (t *reservation) decide() {
	if t.decided != nil {
		close(t.decided)
		t.decided = nil
	}
}

// Decided is closed when the read was admitted or refused.
func (t *reservation) Decided() <-chan struct{} {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	return t.wait()
}

// wait returns the channel that is closed when a queued reservation waits no more. The caller holds the lock.
func (t *reservation) wait() <-chan struct{} {
	if !t.queued {
		return closedChannel
	}
	if t.decided == nil {
		t.decided = make(chan struct{})
	}
	return t.decided
}

// Err says why the read was refused.
func (t *reservation) Err() error {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	return t.err
}

// ReadyAt is the earliest time at which the read will be admitted. Refreshes are not planned for and have none.
func (t *reservation) ReadyAt() time.Time {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if !t.queued || t.priority == reqctx.PriorityRefresh {
		return time.Time{}
	}
	now := t.budget.clock.Now()
	if t.window.expire(now); t.window.stale {
		t.window.planTurns(now)
	}
	return t.turn
}

// Join takes in one more who waits for the read.
func (t *reservation) Join(req reqctx.CallRequest) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if t.released || t.err != nil {
		return
	}
	if req.Deadline.IsZero() {
		t.unlimited = true
	} else if req.Deadline.After(t.deadline) {
		t.deadline = req.Deadline
	}
	w, now := t.window, t.budget.clock.Now()
	c := w.callerOf(req.Caller, now)
	better := w.raise(t, req.Priority, c)
	for _, further := range t.further {
		better = w.raise(further, req.Priority, c) || better
	}
	if better {
		w.settle(now)
	}
}

// raise moves a reservation to a greater priority, and to a caller who has had less. It reports whether its turn may come
// earlier.
func (w *window) raise(t *reservation, p reqctx.Priority, c *caller) (better bool) {
	if !t.queued {
		t.priority = max(t.priority, p) // of the calls to come
		return false
	}
	p = max(p, t.priority)
	if p == t.priority && c.used >= t.caller.used {
		return false
	}
	if c.used >= t.caller.used {
		c = t.caller
	}
	w.remove(t)
	if p > t.priority { // behind those who are there, whose turn was told already
		w.arrivals++
		t.arrival = w.arrivals
	}
	t.priority, t.caller = p, c
	w.insert(t)
	return true
}

// AdmitCall waits until one more call may be made. The one that the read was admitted for passes at once. Whoever asks for
// another has had an answer to the ones before, which so have reached the venue.
func (t *reservation) AdmitCall(ctx context.Context) error {
	err := t.admitCall(ctx)
	if err == nil && t.window.recorded() {
		t.budget.cfg.Record.Take()
	}
	return err
}

func (t *reservation) admitCall(ctx context.Context) error {
	t.budget.mu.Lock()
	switch w := t.window; {
	case t.err != nil:
		defer t.budget.mu.Unlock()
		return t.err
	case t.released || t.queued || t.budget.closed:
		defer t.budget.mu.Unlock()
		return errClosed
	case t.admitted && !t.overdue(t.budget.clock.Now()):
		defer t.budget.mu.Unlock()
		t.admitted = false
		t.count()
		return nil
	default:
		now := t.budget.clock.Now()
		if t.admitted {
			t.admitted = false
			w.giveBack(t)
		}
		w.expire(now)
		w.end(t, now)
		if err := t.budget.heldError(t.scope, now); err != nil {
			t.budget.mu.Unlock()
			return err
		}
		further := &reservation{budget: t.budget, window: w, of: t, arrival: t.arrival, priority: t.priority, caller: t.caller}
		w.add(further, now)
		t.further = append(t.further, further)
		decided := further.wait()
		t.budget.mu.Unlock()

		select {
		case <-decided:
		case <-ctx.Done():
		}
		t.budget.mu.Lock()
		defer t.budget.mu.Unlock()
		if further.queued {
			w.remove(further)
			w.settle(t.budget.clock.Now())
			further.err = context.Cause(ctx)
		}
		if further.err != nil {
			t.further = slices.DeleteFunc(t.further, func(f *reservation) bool { return f == further })
		} else {
			t.count()
		}
		return further.err
	}
}

// count counts a call that is let through. The caller holds the lock.
func (t *reservation) count() {
	t.made++
	t.budget.admitted++
}

// Observe tells what an answer said about the venue's limit.
func (t *reservation) Observe(limit, remaining int, reset time.Time) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if w := t.budget.windowFor(t); w != nil {
		w.observe(limit, remaining, reset, t.budget.clock.Now())
	}
}

// Throttled tells that the venue wants no calls before a time.
func (t *reservation) Throttled(until time.Time) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	now := t.budget.clock.Now()
	if w := t.budget.windowFor(t); w != nil {
		w.throttle(until, now)
	} else {
		t.budget.hold(t.scope, until, now)
	}
}

// Release ends the read, or its wait.
func (t *reservation) Release(accepted bool) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if t.released || t.window == nil {
		return
	}
	t.released = true
	now, w := t.budget.clock.Now(), t.window
	switch {
	case t.queued:
		w.remove(t)
		t.refuse(context.Canceled)
	case t.admitted:
		w.giveBack(t)
	default:
		w.end(t, now)
	}
	if accepted {
		t.budget.accept(t.scope, now)
		if own := t.budget.keys[t.scope]; own != nil && own != w {
			own.adopt(t, now)
		}
	}
	w.settle(now)
}
