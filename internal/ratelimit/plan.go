package ratelimit

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// horizonSpans is the length of a forecast, measured in spans of the window. horizon is the length of the forecast for a window
// with the default span. If a reservation gets no turn within the forecast, its turn is the end of the forecast.
const (
	horizonSpans = 5
	horizon      = horizonSpans * span
)

// plan is the data from which window.next chooses a reservation: the window's present state, or the window's expected state in a
// forecast.
type plan struct {
	free, reserved, share, floor int
	byPriority                   [reqctx.Priorities]int
	// round is the id of the forecast. For the present state, it is 0.
	round uint64
	// firstUnplanned contains, for the queue of each priority, the index of the first reservation without a turn.
	firstUnplanned [reqctx.Priorities]int
}

// present returns the window's present state.
func (w *window) present() plan {
	return plan{free: w.free(), reserved: w.reserved, share: w.share(), floor: w.floor(), byPriority: w.byPriority}
}

// used returns the number of a caller's calls in the window, including the calls that the forecast expects.
func (p *plan) used(c *caller) int {
	if p.round != 0 && c.plannedRound == p.round {
		return c.used + c.planned
	}
	return c.used
}

// spend adds n to the number of c's calls in the forecast; n may be negative. If c is nil, another process made the calls, and
// spend does nothing.
func (p *plan) spend(c *caller, n int) {
	if c == nil {
		return
	}
	if c.plannedRound != p.round {
		c.plannedRound, c.planned = p.round, 0
	}
	p.reserved -= max(p.share-c.used-c.planned, 0)
	c.planned += n
	p.reserved += max(p.share-c.used-c.planned, 0)
}

// next returns the reservation whose call must be sent next, in the order that the package comment describes. It returns nil if no
// call can be sent. It ignores refreshes.
func (w *window) next(p *plan) *reservation {
	if p.free <= 0 {
		return nil
	}
	var served *reservation // the first reservation of a caller that has used its share
	for _, below := range [2]bool{true, false} {
		for priority := reqctx.Priorities - 1; priority > int(reqctx.PriorityRefresh); priority-- {
			if p.byPriority[priority] < p.floor != below {
				continue
			}
			for _, t := range w.queue[priority][p.firstUnplanned[priority]:] {
				switch {
				case p.round != 0 && t.round == p.round: // t already has a turn in this forecast
				case p.used(t.caller) < p.share:
					return t
				case served == nil:
					served = t
				}
			}
		}
	}
	if p.free > p.reserved {
		return served
	}
	return nil
}

// forecast is the expected state of the window at a future time. It assumes that no further reservation arrives.
type forecast struct {
	plan
	w  *window
	at time.Time // the future time
	// inFlightLeaveAt is the earliest time at which a call that is now in flight can leave the window.
	inFlightLeaveAt time.Time
	// ended contains the calls that had ended before the forecast, and planned contains the calls that the forecast expects. Both
	// contain only calls that are in the window at the future time, oldest first.
	ended, planned    []callRecord
	foreign, inFlight int
	// moreCallsAt is the next time at which the ledger or the reserve allows a call; see pool. It is zero if this time is unknown.
	moreCallsAt time.Time
}

// planTurns computes the turn of each waiting reservation with a forecast. The forecast assumes that no reservation arrives and
// that calls take no time. If the response to a call would miss the deadline of its reservation, the forecast does not count the
// call. The forecast ignores refreshes, so their turn is the end of the forecast.
func (w *window) planTurns(now time.Time) {
	w.round++
	w.stale = false
	f := forecast{
		plan: w.present(), w: w, at: market.Later(now, w.throttledUntil), inFlightLeaveAt: now.Add(w.span),
		ended: w.ended, foreign: w.foreign, inFlight: w.inFlight, moreCallsAt: w.pool.moreCallsAt(),
	}
	f.round = w.round
	last := f.at.Add(horizonSpans * w.span)
	for waiting := w.waiting - len(w.queue[reqctx.PriorityRefresh]); waiting > 0 && f.at.Before(last); {
		f.update()
		if t := w.next(&f.plan); t != nil {
			waiting--
			f.admit(t)
		} else {
			f.at = f.nextChange(last)
		}
	}
	for p := range w.queue {
		for _, t := range w.queue[p] {
			if t.round != w.round {
				t.turn = last
			}
		}
	}
}

// update removes the calls that have left the window by the time f.at. If the ledger or the reserve allows another call by this
// time, update adds one free call.
func (f *forecast) update() {
	f.ended = f.expire(f.ended)
	if f.foreign > 0 && !f.w.foreignUntil.After(f.at) {
		f.free, f.foreign = f.free+f.foreign, 0
	}
	if f.inFlight > 0 && !f.inFlightLeaveAt.After(f.at) {
		f.free, f.inFlight = f.free+f.inFlight, 0
		for p, n := range f.w.inFlightBy {
			f.byPriority[p] -= n
		}
		for _, c := range f.w.callers {
			f.spend(c, -c.inFlight)
		}
	}
	f.planned = f.expire(f.planned)
	if !f.moreCallsAt.IsZero() && !f.moreCallsAt.After(f.at) {
		f.free, f.moreCallsAt = f.free+1, f.moreCallsAt.Add(f.w.pace())
	}
}

// expire removes the calls that have left the window by the time f.at, and returns the remaining calls.
func (f *forecast) expire(calls []callRecord) []callRecord {
	for len(calls) > 0 && !calls[0].until.After(f.at) {
		f.free++
		f.byPriority[calls[0].priority]--
		f.spend(calls[0].caller, -1)
		calls = calls[1:]
	}
	return calls
}

// admit sets the turn of a reservation to the time f.at. If the response is expected before the deadline, admit also counts the
// call.
func (f *forecast) admit(t *reservation) {
	t.turn, t.round = f.at, f.round
	queue, from := f.w.queue[t.priority], &f.firstUnplanned[t.priority]
	for *from < len(queue) && queue[*from].round == f.round {
		*from++
	}
	if t.late() {
		return
	}
	f.free--
	f.byPriority[t.priority]++
	f.spend(t.caller, 1)
	f.planned = append(f.planned, callRecord{until: f.at.Add(f.w.span), caller: t.caller, priority: t.priority})
}

// nextChange returns the next time at which the forecast changes, or end if end is earlier.
func (f *forecast) nextChange(end time.Time) time.Time {
	next := end
	for _, calls := range [2][]callRecord{f.ended, f.planned} {
		if len(calls) > 0 {
			next = market.Earlier(next, calls[0].until)
		}
	}
	if f.foreign > 0 {
		next = market.Earlier(next, f.w.foreignUntil)
	}
	if f.inFlight > 0 {
		next = market.Earlier(next, f.inFlightLeaveAt)
	}
	if !f.moreCallsAt.IsZero() {
		next = market.Earlier(next, f.moreCallsAt)
	}
	return next
}
