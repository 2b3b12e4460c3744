package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// register sets the fields of a new reservation and passes the reservation to add.
func (w *window) register(t *reservation, req reqctx.CallRequest) {
	now := w.budget.clock.Now()
	w.expire(now)
	t.priority, t.caller = req.Priority, w.callerOf(req.Caller, now)
	w.arrivals++
	t.arrival = w.arrivals
	w.add(t, now)
}

// add admits a reservation at once if no other reservation waits and the call can be sent now. Otherwise add queues the reservation
// or refuses it:
//   - A refresh is refused if the queue is full or if refreshes fill half of the queue.
//   - Any other reservation is refused if the queue is full. It is also refused if at least half of the queue is in use and its
//     caller fills a quarter of the queue. But first, add refuses the last refresh in the queue and checks again.
func (w *window) add(t *reservation, now time.Time) {
	if w.waiting == 0 && !w.throttledUntil.After(now) && w.canSend(t, now) && w.funded() {
		t.admit(now)
		return
	}
	full := w.waiting >= w.budget.cfg.Queue
	if limit := w.budget.cfg.Queue / 2; t.priority == reqctx.PriorityRefresh {
		full = full || len(w.queue[t.priority]) >= limit
	} else {
		full = full || w.waiting >= limit && t.caller.waiting >= limit/2
		if full && len(w.queue[reqctx.PriorityRefresh]) > 0 {
			refreshes := w.queue[reqctx.PriorityRefresh]
			w.refuse(refreshes[len(refreshes)-1], now, now.Add(w.span))
			full = w.waiting >= w.budget.cfg.Queue || w.waiting >= limit && t.caller.waiting >= limit/2
		}
	}
	w.insert(t)
	if full {
		w.planTurns(now)
		w.refuse(t, now, t.turn)
		return
	}
	w.settle(now)
}

// canSend reports whether the limit, the shares and the rules for refreshes allow the call of t now. It ignores the other
// reservations and blocks of the window.
func (w *window) canSend(t *reservation, now time.Time) bool {
	free := w.free()
	switch {
	case free <= 0, t.priority == reqctx.PriorityRefresh && now.Before(w.refreshAt(now)):
		return false
	case t.caller.used < w.share():
		return true
	}
	return free > w.reserved
}

// refreshAt returns the time at which the next refresh may be sent:
//   - If at least half of the window is free, it returns the present time.
//   - If at most a quarter is free, it returns the time at which the oldest ended call leaves the window, or one span from now if
//     no call has ended.
//   - Otherwise, refreshes may use the free calls above a quarter. These calls are spread evenly over the time until the oldest
//     ended call leaves the window.
func (w *window) refreshAt(now time.Time) time.Time {
	free := w.free()
	if 2*free >= w.limit {
		return now
	}
	next := now.Add(w.span)
	if len(w.ended) > 0 {
		next = w.ended[0].until
	}
	if spare := free - w.limit/4; spare > 0 {
		return w.lastRefresh.Add(next.Sub(now) / time.Duration(spare+1))
	}
	return next
}

// settle admits the reservations whose calls can be sent, refuses late reservations (see refuseLate), and sets the timer. It must
// be called after each change of the window that may change turns.
func (w *window) settle(now time.Time) {
	w.stale = true
	w.expire(now)
	if w.waiting == 0 {
		w.arm(now)
		return
	}
	if !w.throttledUntil.After(now) {
		for t := w.ready(now); t != nil; t = w.ready(now) {
			if !w.funded() {
				w.ask(now)
				break
			}
			w.remove(t)
			t.admit(now)
		}
	}
	if w.waiting > len(w.queue[reqctx.PriorityRefresh]) {
		w.planTurns(now)
		w.refuseLate(now)
	}
	w.arm(now)
}

// ready returns the reservation whose call must be sent next, or nil if no call can be sent now.
func (w *window) ready(now time.Time) *reservation {
	p := w.present()
	if t := w.next(&p); t != nil {
		return t
	}
	for _, t := range w.queue[reqctx.PriorityRefresh] {
		if w.canSend(t, now) {
			return t
		}
	}
	return nil
}

// refuseLate refuses the late reservations, except refreshes; see reservation.late.
func (w *window) refuseLate(now time.Time) {
	for p := reqctx.PriorityHistory; p < reqctx.Priorities; p++ {
		for i := 0; i < len(w.queue[p]); {
			if t := w.queue[p][i]; t.late() {
				w.refuse(t, now, t.turn)
			} else {
				i++
			}
		}
	}
}

// refuse removes a reservation from the queue and refuses it. The wait in the error is turn minus now.
func (w *window) refuse(t *reservation, now, turn time.Time) {
	w.remove(t)
	w.budget.refused++
	t.refuse(reqctx.RateLimited(turn.Sub(now)))
}

// insert adds a reservation to the queue of its priority, which is ordered by arrival.
func (w *window) insert(t *reservation) {
	q := w.queue[t.priority]
	i, _ := slices.BinarySearchFunc(q, t, func(a, b *reservation) int { return cmp.Compare(a.arrival, b.arrival) })
	w.queue[t.priority] = slices.Insert(q, i, t)
	w.waiting++
	t.caller.waiting++
	t.queued = true
	w.stale = true
}

// remove removes a reservation from the queue.
func (w *window) remove(t *reservation) {
	q := w.queue[t.priority]
	i := slices.Index(q, t)
	w.queue[t.priority] = slices.Delete(q, i, i+1)
	w.waiting--
	t.caller.waiting--
	t.queued = false
	w.stale = true
}

// arm sets the timer to the next time at which the window changes only because time has passed.
func (w *window) arm(now time.Time) {
	w.disarm()
	var at time.Time
	soonest := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if w.pool != nil && len(w.pool.credits) > 0 {
		soonest(w.pool.credits[0].returnAt)
	}
	switch {
	case w.waiting == 0:
	case w.throttledUntil.After(now):
		soonest(w.throttledUntil)
	default:
		soonest(w.pool.moreCallsAt())
		if len(w.ended) > 0 {
			soonest(w.ended[0].until)
		}
		if w.foreign > 0 {
			soonest(w.foreignUntil)
		}
		soonest(w.probeAt)
		if w.cut > 0 {
			soonest(w.halveCutAt)
		}
		if len(w.queue[reqctx.PriorityRefresh]) > 0 {
			soonest(w.refreshAt(now))
		}
		soonest(w.recent.Front().Value.(*caller).lastRequest.Add(w.span))
	}
	if at.IsZero() {
		return // the window changes only when a call in flight ends; Release then calls settle
	}
	w.budget.timers.Add(1)
	w.timer = time.AfterFunc(at.Sub(now), w.wake)
}

func (w *window) disarm() {
	if w.timer != nil && w.timer.Stop() {
		w.budget.timers.Done()
	}
	w.timer = nil
}

func (w *window) wake() {
	defer w.budget.timers.Done()
	w.budget.mu.Lock()
	defer w.budget.mu.Unlock()
	if !w.budget.closed {
		w.settle(w.budget.clock.Now())
	}
}
