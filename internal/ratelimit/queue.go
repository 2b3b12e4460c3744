package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// add puts a reservation into the queue and admits it if it can be sent at once. A full queue refuses it. The queue is full for
// refreshes if half of it is in use. From then on, it is also full for a caller that fills a quarter of it.
func (w *window) add(t *reservation, now time.Time) {
	size := w.budget.cfg.Queue
	full := w.waiting >= size
	if w.waiting >= size/2 {
		full = full || t.priority == upstream.PriorityRefresh || t.caller.waiting >= size/4
	}
	w.insert(t)
	if full {
		w.refuse(t, now, w.readyAt(t, now))
		return
	}
	w.settle(now)
}

// open reports whether the window may send calls now: it does not pause, and fewer than maxInFlight calls are in flight.
func (w *window) open(now time.Time) bool {
	return !w.refusal.until.After(now) && (w.maxInFlight == 0 || w.inFlight < w.maxInFlight)
}

// settle admits the reservations whose calls can be sent, refuses late reservations, and sets the timer. It must be called after
// each change of the window that may allow a call or make a reservation late.
func (w *window) settle(now time.Time) {
	w.expire(now)
	if p := w.pool; p != nil && p.away && w.waiting > 0 && !p.askAt.After(now) {
		w.ask(min(w.waiting, maxAsk)) // the ledger may be back
	}
	for w.waiting > 0 && w.open(now) {
		t := w.next(now)
		if t == nil || !w.funded(now) {
			break
		}
		w.remove(t)
		t.admit()
	}
	w.refuseLate(now)
	w.arm(now)
}

// next returns the reservation whose call must be sent next, in the order that the package comment describes. It returns nil if no
// call can be sent.
func (w *window) next(now time.Time) *reservation {
	free := w.free(now)
	if free <= 0 {
		return nil
	}
	var served *reservation // the first reservation of a caller that has used its share
	for _, below := range [2]bool{true, false} {
		for priority := upstream.Priorities - 1; priority > int(upstream.PriorityRefresh); priority-- {
			if w.byPriority[priority] < w.floor() != below {
				continue
			}
			for _, t := range w.queue[priority] {
				switch {
				case !w.allow(t, now):
				case t.caller.used < w.share():
					return t
				case served == nil:
					served = t
				}
			}
		}
	}
	if served != nil && free > w.reserved {
		return served
	}
	if 4*free > w.limit { // refreshes leave a quarter of the window free
		for _, t := range w.queue[upstream.PriorityRefresh] {
			if w.allow(t, now) && (t.caller.used < w.share() || free > w.reserved) {
				return t
			}
		}
	}
	return nil
}

// readyAt returns the turn of a reservation, or the zero time if it has none; see eachTurn.
func (w *window) readyAt(t *reservation, now time.Time) (at time.Time) {
	w.eachTurn(now, func(waiting *reservation, turn time.Time) {
		if waiting == t {
			at = turn
		}
	})
	return at
}

// eachTurn calls visit with each waiting reservation, except refreshes, and its turn. The turn is the time at which as many calls
// have left the window as wait before the reservation by rules 2 and 3 of the package comment. It is not before the end of a
// pause, the ledger's next grant, or the time at which the caller's share has room. A reservation that visit removes from the
// queue takes no turn.
func (w *window) eachTurn(now time.Time, visit func(*reservation, time.Time)) {
	notBefore := market.Later(w.refusal.until, w.opensAt(now))
	d := w.departures(now)
	at := d.next()
	var from [upstream.Priorities]int
	for _, below := range [2]bool{true, false} {
		for p := upstream.Priorities - 1; p > int(upstream.PriorityRefresh); p-- {
			turns := w.waiting
			if below {
				turns = max(w.floor()-w.byPriority[p], 0)
			}
			for from[p] < len(w.queue[p]) && turns > 0 {
				t := w.queue[p][from[p]]
				visit(t, market.Later(market.Later(at, notBefore), market.Later(w.refusals[t.endpoint].until, w.shareAt(t.caller, now))))
				if t.queued {
					from[p]++
					turns--
					at = d.next()
				}
			}
		}
	}
}

// shareAt returns the present time if a caller may make a call, and otherwise the time at which enough of its calls have left the
// window for its share to have room.
func (w *window) shareAt(c *caller, now time.Time) time.Time {
	excess := c.used - w.share()
	if excess < 0 || w.free(now) <= 0 || w.free(now) > w.reserved {
		return now
	}
	for i := range w.ended {
		if w.ended[i].caller == c {
			if excess--; excess < 0 {
				return w.ended[i].until
			}
		}
	}
	return now.Add(w.span)
}

// refuseLate refuses the reservations that are late for all callers of their reads, except refreshes.
func (w *window) refuseLate(now time.Time) {
	if w.waiting == len(w.queue[upstream.PriorityRefresh]) {
		return
	}
	w.eachTurn(now, func(t *reservation, turn time.Time) {
		if late(turn, cmp.Or(t.first, t).deadline) {
			w.refuse(t, now, turn)
		}
	})
}

// refuse removes a reservation from the queue and refuses it. The wait in the error is turn minus now.
func (w *window) refuse(t *reservation, now, turn time.Time) {
	w.remove(t)
	w.budget.refused++
	w.lookAgain(now)
	t.decide(upstream.RateLimited(turn.Sub(now)))
}

// insert adds a reservation to the queue of its priority, which is ordered by arrival.
func (w *window) insert(t *reservation) {
	q := w.queue[t.priority]
	i, _ := slices.BinarySearchFunc(q, t, func(a, b *reservation) int { return cmp.Compare(a.arrival, b.arrival) })
	w.queue[t.priority] = slices.Insert(q, i, t)
	w.waiting++
	t.caller.waiting++
	t.queued = true
}

func (w *window) remove(t *reservation) {
	q := w.queue[t.priority]
	i := slices.Index(q, t)
	w.queue[t.priority] = slices.Delete(q, i, i+1)
	w.waiting--
	t.caller.waiting--
	t.queued = false
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
	switch {
	case w.waiting == 0:
	case w.refusal.until.After(now):
		soonest(w.refusal.until)
	default:
		d := w.departures(now)
		soonest(d.leave())
		soonest(w.opensAt(now))
		if w.cut > 0 {
			soonest(w.halveCutAt)
		}
		for e := range w.refusals {
			soonest(w.refusals[e].until)
		}
		if _, oldest, ok := w.callers.GetOldest(); ok {
			soonest(oldest.lastRequest.Add(w.span))
		}
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
