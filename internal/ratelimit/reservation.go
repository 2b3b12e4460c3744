package ratelimit

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/upstream"
)

// reservation implements upstream.Reservation. It represents one call of a read, which waits in the queue of a window or has been
// counted by the window. A read makes its calls one after another, or several of them at once. The budget's lock protects it and
// is held during calls of unexported methods.
type reservation struct {
	budget *Budget
	window *window
	scope  string
	// priority selects the queue, and may become greater. countedAs is the priority under which the window counts the call.
	priority, countedAs upstream.Priority
	caller              *caller
	endpoint            upstream.Endpoint // the endpoint that the read calls first
	// deadline is the latest deadline of the read's callers, or the zero time if one of them has none.
	deadline time.Time
	arrival  uint64 // orders the reservations of one priority

	queued, released bool
	// unsent reports that the read's first call was counted but not sent yet. inFlight reports that the call was counted and has not
	// ended.
	unsent, inFlight bool
	sent             time.Time // when AdmitCall last permitted a call
	// first is the reservation of the read's first call, or nil if this is the first. further contains the reservations of its
	// further calls that wait or are in flight.
	first   *reservation
	further []*reservation
	// refusedCalls counts the calls of the read that the venue has refused and that have not ended yet.
	refusedCalls int
	credit       string        // the ledger's grant for the call, or ""
	decided      chan struct{} // closed when the reservation leaves the queue; nil if nobody has asked for it
	err          error
}

// admit counts the call and permits it.
func (t *reservation) admit() {
	t.countedAs, t.unsent = t.priority, true
	t.window.take(t)
	t.decide(nil)
}

// decide ends the wait of the reservation: it is refused if err is not nil.
func (t *reservation) decide(err error) {
	t.err = err
	if t.decided != nil {
		close(t.decided)
	}
}

func (t *reservation) Decided() <-chan struct{} {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	return t.decidedChannel()
}

func (t *reservation) decidedChannel() <-chan struct{} {
	if t.decided == nil {
		t.decided = make(chan struct{})
		if !t.queued {
			close(t.decided)
		}
	}
	return t.decided
}

func (t *reservation) Err() error {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	return t.err
}

// late reports whether a call that is admitted at the time turn comes too late for a deadline. The call itself counts as no time,
// because nobody knows its duration. So the deadline may end a call that is admitted just before.
func late(turn, deadline time.Time) bool { return !deadline.IsZero() && !turn.Before(deadline) }

// Late returns nil for refreshes, which have no turn, because they wait for calls that nobody else needs.
func (t *reservation) Late(deadline time.Time) error {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	now := t.budget.clock.Now()
	t.window.expire(now)
	if turn := t.window.readyAt(t, now); late(turn, deadline) {
		return upstream.RateLimited(turn.Sub(now))
	}
	return nil
}

func (t *reservation) Join(req upstream.CallRequest) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if t.released || t.err != nil {
		return
	}
	if req.Deadline.IsZero() || req.Deadline.After(t.deadline) && !t.deadline.IsZero() {
		t.deadline = req.Deadline
	}
	w, now := t.window, t.budget.clock.Now()
	c := w.callerOf(req.Caller, now)
	for _, call := range append(slices.Clone(t.further), t) {
		w.raise(call, req.Priority, c)
	}
	w.settle(now)
}

// raise applies the priority p and the caller c of a request that joins the read. The reservation gets the greater of both
// priorities. A waiting reservation also gets the caller that has used fewer calls.
func (w *window) raise(t *reservation, p upstream.Priority, c *caller) {
	queued := t.queued
	if queued {
		w.remove(t)
		if c.used < t.caller.used {
			t.caller = c
		}
		if p > t.priority { // to the end of the new queue, so that nobody in that queue waits longer
			w.arrivals++
			t.arrival = w.arrivals
		}
	}
	t.priority = max(t.priority, p)
	if queued {
		w.insert(t)
	}
}

// AdmitCall implements upstream.Permit. The first call was counted when the reservation was admitted, so it is permitted at once. For
// a further call, AdmitCall records that the earlier calls of the read have ended, and waits in the queue.
func (t *reservation) AdmitCall(ctx context.Context) error {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	w, now := t.window, t.budget.clock.Now()
	switch {
	case t.err != nil:
		return t.err
	case t.released || t.queued || t.budget.closed:
		return errClosed
	case t.unsent:
		t.unsent = false
		t.permit(now)
		return nil
	}
	w.expire(now)
	w.end(t, now)
	if err := t.budget.heldError(t.scope, now); err != nil {
		return err
	}
	call := &reservation{budget: t.budget, window: w, first: t, arrival: t.arrival, priority: t.priority, caller: t.caller, endpoint: t.endpoint}
	w.add(call, now)
	t.further = append(t.further, call)
	decided := call.decidedChannel()
	t.budget.mu.Unlock()
	select {
	case <-decided:
	case <-ctx.Done():
	}
	t.budget.mu.Lock()
	now = t.budget.clock.Now()
	if call.queued {
		w.remove(call)
		w.settle(now)
		call.err = context.Cause(ctx)
	}
	if call.err != nil {
		t.further = slices.DeleteFunc(t.further, func(f *reservation) bool { return f == call })
		return call.err
	}
	t.permit(now)
	return nil
}

func (t *reservation) permit(now time.Time) {
	t.sent = now
	t.budget.admitted++
}

func (t *reservation) Answered(a upstream.Answer) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	now := t.budget.clock.Now()
	t.window.expire(now)
	if a.Served {
		t.budget.answered = true
		t.window.answer(a.Endpoint, t.sent)
	}
	if w := t.budget.windowFor(t); w != nil {
		w.report(&a, now)
		if a.Refused {
			if w == t.window {
				t.refusedCalls++
			}
			w.refused(a.Endpoint, t.sent, a.RetryAfter, now)
		}
		w.settle(now)
	} else if a.Refused {
		t.budget.hold(t.scope, a.RetryAfter, now)
	}
	t.window.settle(now)
}

func (t *reservation) Release(accepted bool) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if t.released {
		return
	}
	t.released = true
	now, w := t.budget.clock.Now(), t.window
	switch {
	case t.queued:
		w.remove(t)
		t.decide(context.Canceled)
	case t.unsent:
		w.giveBack(t)
	default:
		w.end(t, now)
	}
	if accepted {
		t.budget.accept(t.scope, now)
	}
	w.settle(now)
}
