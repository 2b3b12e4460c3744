package ratelimit

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// reservation implements reqctx.Reservation. It represents one call of a read. The reservation waits in the queue of a window, or
// the window has counted its call. The budget's lock protects it.
type reservation struct {
	budget *Budget
	window *window
	scope  string
	// priority selects the queue, and may become greater. countedAs is the priority under which the window counts the call.
	priority, countedAs reqctx.Priority
	caller              *caller
	// deadline is the latest deadline of the read's callers. unlimited reports that at least one caller has no deadline.
	deadline  time.Time
	unlimited bool
	// takes is the expected duration of the read. It is 0 for a further call: any call of the read after its first call.
	takes time.Duration

	queued bool
	// arrival orders the reservations of one priority. A further call has the arrival of its read.
	arrival uint64
	// turn is the time at which the call is expected to be sent, or the end of the forecast. round is the id of the last forecast in
	// which the reservation got a turn.
	turn  time.Time
	round uint64

	// For the first call of a read, unsent reports that the call was counted but not sent yet. inFlight reports that the call was
	// counted and has not ended.
	unsent, released, inFlight bool
	// made is the number of calls that AdmitCall has permitted, including further calls.
	made int
	// first is the reservation of the read's first call, or nil if this call is the first. further contains the reservations of the
	// read's further calls that wait or are in flight.
	first   *reservation
	further []*reservation
	// credit is the ledger's grant for the call. It is the zero value if there is no grant, because the call used the reserve or there
	// is no ledger.
	credit credit
	// decided is closed when the reservation leaves the queue. It is nil if nobody waits for the reservation.
	decided chan struct{}
	err     error
}

// closedChannel is the Decided channel of reservations that are not in the queue.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// late reports whether the response is expected at or after the latest deadline of the read's callers. It is false if a caller has
// no deadline.
func (t *reservation) late() bool {
	read := t
	if t.first != nil {
		read = t.first
	}
	return !read.unlimited && !t.turn.Add(t.takes).Before(read.deadline)
}

// admit counts the call and permits it. The calling function holds the lock.
func (t *reservation) admit(now time.Time) {
	if t.countedAs = t.priority; t.priority == reqctx.PriorityRefresh {
		t.window.lastRefresh = now
	}
	t.unsent = true
	t.window.take(t)
	t.window.pay(t, now)
	t.decide()
}

// refuse sets the error and closes decided. The calling function holds the lock.
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

// Decided implements reqctx.Reservation.
func (t *reservation) Decided() <-chan struct{} {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	return t.decidedChannel()
}

// decidedChannel returns a channel that is closed when the reservation leaves the queue. The calling function holds the lock.
func (t *reservation) decidedChannel() <-chan struct{} {
	if !t.queued {
		return closedChannel
	}
	if t.decided == nil {
		t.decided = make(chan struct{})
	}
	return t.decided
}

// Err implements reqctx.Reservation.
func (t *reservation) Err() error {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	return t.err
}

// ReadyAt implements reqctx.Reservation. It returns the zero time for refreshes, because forecasts ignore refreshes.
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

// Join implements reqctx.Reservation.
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

// raise applies the priority p and the caller c of a request that joins the read. The reservation gets the greater of both
// priorities. A waiting reservation also gets the caller that has used fewer calls. raise reports whether the turn may come
// earlier.
func (w *window) raise(t *reservation, p reqctx.Priority, c *caller) (better bool) {
	if !t.queued {
		t.priority = max(t.priority, p) // the read's further calls will use this priority
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
	if p > t.priority { // to the end of the new queue, because the callers in that queue already know their turns
		w.arrivals++
		t.arrival = w.arrivals
	}
	t.priority, t.caller = p, c
	w.insert(t)
	return true
}

// AdmitCall implements reqctx.Permit. The first call was counted when the reservation was admitted, so AdmitCall permits this call
// at once. But if the ledger's grant for the first call is void (see Sharing.Use), the first call waits for its turn like a further
// call. A read makes one call after another. So before a further call, AdmitCall records that the earlier calls of the read have
// ended.
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
	case t.unsent && !t.overdue(t.budget.clock.Now()):
		defer t.budget.mu.Unlock()
		t.unsent = false
		t.count()
		return nil
	default:
		now := t.budget.clock.Now()
		if t.unsent {
			t.unsent = false
			w.giveBack(t)
		}
		w.expire(now)
		w.end(t, now)
		if err := t.budget.heldError(t.scope, now); err != nil {
			t.budget.mu.Unlock()
			return err
		}
		further := &reservation{budget: t.budget, window: w, first: t, arrival: t.arrival, priority: t.priority, caller: t.caller}
		w.add(further, now)
		t.further = append(t.further, further)
		decided := further.decidedChannel()
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

// count counts a call that AdmitCall has permitted. The calling function holds the lock.
func (t *reservation) count() {
	t.made++
	t.budget.admitted++
}

// Observe implements reqctx.Permit.
func (t *reservation) Observe(limit, remaining int, reset time.Time) {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	if w := t.budget.windowFor(t); w != nil {
		w.observe(limit, remaining, reset, t.budget.clock.Now())
	}
}

// Throttled implements reqctx.Permit.
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

// Release implements reqctx.Reservation.
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
	case t.unsent:
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
