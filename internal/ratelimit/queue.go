package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// enter admits a new reservation, refuses it or puts it into the queue.
func (w *window) enter(t *reservation, req reqctx.CallRequest) {
	now := w.budget.clock.Now()
	w.expire(now)
	t.priority, t.caller = req.Priority, w.callerOf(req.Caller, now)
	w.arrivals++
	t.arrival = w.arrivals
	w.add(t, now)
}

// add puts a reservation into the queue and lets it leave at once where it is its turn.
func (w *window) add(t *reservation, now time.Time) {
	if w.waiting == 0 && !w.throttled.After(now) && w.canLeave(t, now) && w.funded() {
		t.admit(now) // the usual case
		return
	}
	full := w.waiting >= w.budget.cfg.Queue
	if limit := w.budget.cfg.Queue / 2; t.priority == reqctx.PriorityRefresh {
		full = full || len(w.queue[t.priority]) >= limit
	} else {
		full = full || w.waiting >= limit && t.caller.waiting >= limit/2
		if full && len(w.queue[reqctx.PriorityRefresh]) > 0 {
			last := w.queue[reqctx.PriorityRefresh]
			w.refuse(last[len(last)-1], now, now.Add(span)) // makes room
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

// canLeave reports whether a reservation could leave if nobody waited.
func (w *window) canLeave(t *reservation, now time.Time) bool {
	free := w.free()
	switch {
	case free <= 0, t.priority == reqctx.PriorityRefresh && now.Before(w.refreshAt(now)):
		return false
	case t.caller.used < w.share():
		return true
	}
	return free > w.reserved
}

// refreshAt returns when the next refresh may leave: now while half of the window is left, and not while no more than a
// quarter is. What is between lasts until the oldest call leaves the window.
func (w *window) refreshAt(now time.Time) time.Time {
	free := w.free()
	if 2*free >= w.limit {
		return now
	}
	next := now.Add(span)
	if len(w.ended) > 0 {
		next = w.ended[0].until
	}
	if spare := free - w.limit/4; spare > 0 {
		return w.refreshed.Add(next.Sub(now) / time.Duration(spare+1))
	}
	return next
}

// settle admits those whose turn it is, refuses those whose turn would come too late, and sets the timer for the next.
func (w *window) settle(now time.Time) {
	w.stale = true
	w.expire(now)
	if w.waiting == 0 {
		w.arm(now)
		return
	}
	if !w.throttled.After(now) {
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

// ready returns the reservation that is to leave now, or nil.
func (w *window) ready(now time.Time) *reservation {
	l := plan{free: w.free(), reserved: w.reserved, share: w.share(), floor: w.floor(), byPriority: w.byPriority}
	if t := w.next(&l); t != nil {
		return t
	}
	for _, t := range w.queue[reqctx.PriorityRefresh] {
		if w.canLeave(t, now) {
			return t
		}
	}
	return nil
}

// plan is what next decides by: how the window stands, or will stand at a time that is planned for.
type plan struct {
	free, reserved, share, floor int
	byPriority                   [reqctx.Priorities]int
	// round is that of the plan; 0 in the present.
	round uint64
	// from is where those begin, by priority, who have not been planned yet.
	from [reqctx.Priorities]int
}

// used returns how many calls of a caller are in the window.
func (l *plan) used(c *caller) int {
	if l.round != 0 && c.plannedRound == l.round {
		return c.used + c.planned
	}
	return c.used
}

// spend plans n calls of a caller.
func (l *plan) spend(c *caller, n int) {
	if c == nil {
		return // of another process
	}
	if c.plannedRound != l.round {
		c.plannedRound, c.planned = l.round, 0
	}
	l.reserved -= max(l.share-c.used-c.planned, 0)
	c.planned += n
	l.reserved += max(l.share-c.used-c.planned, 0)
}

// next returns the reservation whose turn it is, by the order that the package describes; nil when none may leave. Refreshes
// are not among them.
func (w *window) next(l *plan) *reservation {
	if l.free <= 0 {
		return nil
	}
	var served *reservation // of a caller who has had its share
	for _, below := range [2]bool{true, false} {
		for p := reqctx.Priorities - 1; p > int(reqctx.PriorityRefresh); p-- {
			if l.byPriority[p] < l.floor != below {
				continue
			}
			for _, t := range w.queue[p][l.from[p]:] {
				switch {
				case l.round != 0 && t.round == l.round: // planned already
				case l.used(t.caller) < l.share:
					return t
				case served == nil:
					served = t
				}
			}
		}
	}
	if l.free > l.reserved {
		return served
	}
	return nil
}

// horizon bounds how far plans look: what has no turn until then is told to come back then.
const horizon = 5 * span

// planTurns finds out when each of those who wait will have its turn, given the log and the queue, if nobody comes in between
// and calls take no time. Those who would be too late take no place in it.
func (w *window) planTurns(now time.Time) {
	w.round++
	w.stale = false
	l := plan{free: w.free(), reserved: w.reserved, share: w.share(), floor: w.floor(), byPriority: w.byPriority, round: w.round}
	at := now
	if w.throttled.After(now) {
		at = w.throttled
	}
	last := at.Add(horizon)
	landing := now.Add(span) // of all that has not ended, at the earliest
	ended, foreign, flying, refill := w.ended, w.foreign, w.flying, w.pool.next()
	var planned []callRecord
	leave := func(places []callRecord) []callRecord {
		for len(places) > 0 && !places[0].until.After(at) {
			l.free++
			l.byPriority[places[0].priority]--
			l.spend(places[0].caller, -1)
			places = places[1:]
		}
		return places
	}
	for left := w.waiting - len(w.queue[reqctx.PriorityRefresh]); left > 0; {
		ended = leave(ended)
		if foreign > 0 && !w.foreignUntil.After(at) {
			l.free, foreign = l.free+foreign, 0
		}
		if flying > 0 && !landing.After(at) {
			l.free, flying = l.free+flying, 0
			for p, n := range w.flyingBy {
				l.byPriority[p] -= n
			}
			for _, c := range w.callers {
				l.spend(c, -c.flying)
			}
		}
		planned = leave(planned)
		if !refill.IsZero() && !refill.After(at) {
			l.free, refill = l.free+1, refill.Add(w.pace())
		}
		if t := w.next(&l); t != nil {
			left--
			t.turn, t.round = at, w.round
			for p := t.priority; l.from[p] < len(w.queue[p]) && w.queue[p][l.from[p]].round == w.round; {
				l.from[p]++
			}
			if !t.late() {
				l.free--
				l.byPriority[t.priority]++
				l.spend(t.caller, 1)
				planned = append(planned, callRecord{until: at.Add(span), caller: t.caller, priority: t.priority})
			}
			continue
		}
		next := last
		for _, places := range [2][]callRecord{ended, planned} {
			if len(places) > 0 && places[0].until.Before(next) {
				next = places[0].until
			}
		}
		if foreign > 0 && w.foreignUntil.Before(next) {
			next = w.foreignUntil
		}
		if flying > 0 && landing.Before(next) {
			next = landing
		}
		if !refill.IsZero() && refill.Before(next) {
			next = refill
		}
		if at = next; !at.Before(last) {
			break
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

// refuseLate refuses those who have been planned for a time at which nobody waits for them any more.
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

// refuse takes a reservation out of the queue and says when it would have had its turn.
func (w *window) refuse(t *reservation, now, turn time.Time) {
	w.remove(t)
	w.budget.refused++
	t.refuse(reqctx.RateLimited(turn.Sub(now)))
}

// insert puts a reservation into the queue of its priority, by its time of arrival.
func (w *window) insert(t *reservation) {
	q := w.queue[t.priority]
	i, _ := slices.BinarySearchFunc(q, t, func(a, b *reservation) int { return cmp.Compare(a.arrival, b.arrival) })
	w.queue[t.priority] = slices.Insert(q, i, t)
	w.waiting++
	t.caller.waiting++
	t.queued = true
	w.stale = true
}

// remove takes a reservation out of the queue.
func (w *window) remove(t *reservation) {
	q := w.queue[t.priority]
	i := slices.Index(q, t)
	w.queue[t.priority] = slices.Delete(q, i, i+1)
	w.waiting--
	t.caller.waiting--
	t.queued = false
	w.stale = true
}

// arm sets the timer for the time at which something changes without anybody's doing.
func (w *window) arm(now time.Time) {
	w.disarm()
	var at time.Time
	soonest := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if w.pool != nil && len(w.pool.credits) > 0 {
		soonest(w.pool.credits[0].until)
	}
	switch {
	case w.waiting == 0:
	case w.throttled.After(now):
		soonest(w.throttled)
	default:
		soonest(w.pool.next())
		if len(w.ended) > 0 {
			soonest(w.ended[0].until)
		}
		if w.foreign > 0 {
			soonest(w.foreignUntil)
		}
		soonest(w.probe)
		if w.cut > 0 {
			soonest(w.mend)
		}
		if len(w.queue[reqctx.PriorityRefresh]) > 0 {
			soonest(w.refreshAt(now))
		}
		soonest(w.recent.Front().Value.(*caller).asked.Add(span))
	}
	if at.IsZero() {
		return // the end of a call will tell
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
