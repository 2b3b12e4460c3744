package ratelimit

import (
	"time"

	"oddsgraph/internal/market/reqctx"
)

// horizons is the number of spans that planTurns plans. horizon is the duration of such a plan for a window with the default span.
// If a reservation gets no turn within the plan, its turn is the end of the plan.
const (
	horizons = 5
	horizon  = horizons * span
)

// plan is the state from which next chooses a reservation: the window's present state or a forecast.
type plan struct {
	free, reserved, share, floor int
	byPriority                   [reqctx.Priorities]int
	// round is the number of the forecast; 0 means the present state.
	round uint64
	// from is the index of the first reservation without a turn, for each priority.
	from [reqctx.Priorities]int
}

// present returns the window's present state.
func (w *window) present() plan {
	return plan{free: w.free(), reserved: w.reserved, share: w.share(), floor: w.floor(), byPriority: w.byPriority}
}

// used returns how many calls of a caller are in the window.
func (p *plan) used(c *caller) int {
	if p.round != 0 && c.plannedRound == p.round {
		return c.used + c.planned
	}
	return c.used
}

// spend adds n calls to a caller's calls in the forecast; n may be negative. A nil caller means another process.
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

// next returns the reservation whose call is sent first, in the order of the package comment. It returns nil if no call can be
// sent. It ignores refreshes.
func (w *window) next(p *plan) *reservation {
	if p.free <= 0 {
		return nil
	}
	var served *reservation // the first reservation whose caller has used its share
	for _, below := range [2]bool{true, false} {
		for priority := reqctx.Priorities - 1; priority > int(reqctx.PriorityRefresh); priority-- {
			if p.byPriority[priority] < p.floor != below {
				continue
			}
			for _, t := range w.queue[priority][p.from[priority]:] {
				switch {
				case p.round != 0 && t.round == p.round: // it already has a turn
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

// forecast is the expected state of the window at a future time, the field at. It assumes that no further reservation arrives.
type forecast struct {
	plan
	w  *window
	at time.Time
	// landing is the earliest time at which the calls that are in flight now leave the window.
	landing time.Time
	// ended and planned contain the calls that are still in the window at the forecast's time, oldest first. The calls in ended
	// have already ended. The calls in planned are planned by the forecast.
	ended, planned  []callRecord
	foreign, flying int
	// refill is the time at which the ledger grants the next call. The zero time means unknown.
	refill time.Time
}

// planTurns computes the turn of each waiting reservation from the log and the queue. It assumes that no reservation arrives
// and that calls take no time. A reservation whose turn is too late does not count as a call.
func (w *window) planTurns(now time.Time) {
	w.round++
	w.stale = false
	f := forecast{
		plan: w.present(), w: w, at: later(now, w.throttled), landing: now.Add(w.span),
		ended: w.ended, foreign: w.foreign, flying: w.flying, refill: w.pool.next(),
	}
	f.round = w.round
	last := f.at.Add(horizons * w.span)
	for waiting := w.waiting - len(w.queue[reqctx.PriorityRefresh]); waiting > 0 && f.at.Before(last); {
		f.update()
		if t := w.next(&f.plan); t != nil {
			waiting--
			f.admit(t)
		} else {
			f.at = f.change(last)
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

// update removes the calls that have left the window by the time of the forecast.
func (f *forecast) update() {
	f.ended = f.expire(f.ended)
	if f.foreign > 0 && !f.w.foreignUntil.After(f.at) {
		f.free, f.foreign = f.free+f.foreign, 0
	}
	if f.flying > 0 && !f.landing.After(f.at) {
		f.free, f.flying = f.free+f.flying, 0
		for p, n := range f.w.flyingBy {
			f.byPriority[p] -= n
		}
		for _, c := range f.w.callers {
			f.spend(c, -c.flying)
		}
	}
	f.planned = f.expire(f.planned)
	if !f.refill.IsZero() && !f.refill.After(f.at) {
		f.free, f.refill = f.free+1, f.refill.Add(f.w.pace())
	}
}

// expire removes from the forecast those calls that have left the window, and returns the remaining calls.
func (f *forecast) expire(calls []callRecord) []callRecord {
	for len(calls) > 0 && !calls[0].until.After(f.at) {
		f.free++
		f.byPriority[calls[0].priority]--
		f.spend(calls[0].caller, -1)
		calls = calls[1:]
	}
	return calls
}

// admit sets a reservation's turn to the time of the forecast. If the turn is not too late, it also counts the call.
func (f *forecast) admit(t *reservation) {
	t.turn, t.round = f.at, f.round
	queue, from := f.w.queue[t.priority], &f.from[t.priority]
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

// change returns the next time at which the forecast changes, or last if it does not change before last.
func (f *forecast) change(last time.Time) time.Time {
	next := last
	for _, calls := range [2][]callRecord{f.ended, f.planned} {
		if len(calls) > 0 {
			next = earlier(next, calls[0].until)
		}
	}
	if f.foreign > 0 {
		next = earlier(next, f.w.foreignUntil)
	}
	if f.flying > 0 {
		next = earlier(next, f.landing)
	}
	if !f.refill.IsZero() {
		next = earlier(next, f.refill)
	}
	return next
}
