package ratelimit

import (
	"container/list"
	"math"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

const (
	// span is the time for which an ended call counts: a minute plus skew. Endpoints in a Family have a span of their own.
	span = time.Minute + skew
	// skew is added to each span, because the venue may round times to milliseconds.
	skew = time.Millisecond
	// patience is the longest time for which a 429 of the venue can block a window.
	patience = 5 * time.Minute
)

// callRecord is an ended call. It counts until one span after its end. A call in flight also counts, but has no callRecord.
type callRecord struct {
	until    time.Time
	caller   *caller
	priority reqctx.Priority
	// credited reports that the ledger granted the call. If the window has a pool and credited is false, the call counts against the
	// pool's reserve.
	credited bool
}

// caller is a client that made a request within the last span, has calls in the window, or has reservations in the window's queue.
type caller struct {
	name string
	// used is the number of the caller's calls in the window, and flying is the number of these calls that have not ended. waiting is
	// the number of the caller's reservations in the queue.
	used, flying, waiting int
	asked                 time.Time
	element               *list.Element

	// planned is the number of calls that a forecast adds to used. plannedRound is the number of this forecast. In other forecasts
	// planned counts as 0; see plan.spend.
	planned      int
	plannedRound uint64
}

// window is a log of the calls of the last span and the queue of waiting reservations. The budget's lock protects it.
type window struct {
	budget  *Budget
	scope   string
	element *list.Element
	// span is the time for which an ended call counts.
	span time.Duration

	// ceiling is the usable part of the configured limit. told is the usable part of the limit in the venue's headers, or 0 if the
	// headers contain no limit. cut is the number of calls by which the limit is lowered after the venue has refused calls. limit is
	// the number of calls that are allowed now: ceiling minus cut, or told minus cut if told is not 0 and less than ceiling. limit is
	// at least 1.
	ceiling, limit, told, cut int
	// mend is the next time at which cut is halved.
	mend time.Time
	// throttled is the time until which the window is blocked, and since is the time at which this block began; see pause. before is
	// the total duration of all earlier blocks.
	throttled, since time.Time
	before           time.Duration
	// foreign is the number of calls by other processes that the venue has counted. These calls count until foreignUntil.
	foreign      int
	foreignUntil time.Time

	// cold is the time until which the venue may count unknown calls of other processes. While withheld is true, the window may
	// contain only as many calls as the number in allowed, and relimit sets foreign accordingly. guest reports that the last call of
	// Budget.Inherit had the standing Second or Third. A guest ignores the number of remaining calls in the venue's headers.
	cold            time.Time
	withheld, guest bool
	allowed         int
	// margin is the number of calls of the limit that are normally not used. lowest is the smallest number of remaining calls that the
	// venue has reported since the window last had no calls in flight. probe is the reset time that the venue reported. At that time,
	// at least one call stops counting at the venue.
	margin, lowest int
	probe          time.Time

	flying int
	ended  []callRecord // oldest first
	// byPriority is the number of calls in the window for each priority, and flyingBy is the number of calls in flight for each
	// priority.
	byPriority, flyingBy [reqctx.Priorities]int

	// callers contains all callers that made a request in the last span, or that have calls in the window or reservations in the
	// queue. recent lists the same callers in the order of their last requests. reserved is the sum of the unused parts of their
	// shares.
	callers  map[string]*caller
	recent   list.List
	reserved int

	queue   [reqctx.Priorities][]*reservation
	waiting int
	// arrivals is the greatest arrival of a reservation so far.
	arrivals uint64
	// refreshed is the time of the last admission of a refresh.
	refreshed time.Time
	timer     *time.Timer
	// pool contains the granted calls and the reserve of this process. It is nil if processes do not share the window.
	pool    *pool
	retired bool
	// round is the number of the latest forecast. stale reports that the turns must be computed again.
	round uint64
	stale bool
}

func newWindow(b *Budget, scope string, limit int) *window {
	w := &window{budget: b, scope: scope, span: span, ceiling: Usable(limit), callers: make(map[string]*caller)}
	w.limit, w.margin = w.ceiling, limit-w.ceiling
	if w.pool = b.newPool(scope, w.limit); w.pool == nil && b.clock.Now().Before(b.cold) {
		w.withhold(w.margin, b.cold)
	}
	return w
}

func (w *window) used() int { return w.flying + len(w.ended) }

// free returns the number of calls that may be sent now. It is negative if the window contains more calls than a lowered limit.
func (w *window) free() int {
	free := w.limit - w.used() - w.foreign
	if w.pool != nil {
		free = min(free, w.pool.free())
	}
	return free
}

// share returns the number of calls that each caller may make before it must leave calls for other callers.
func (w *window) share() int { return max(w.limit/4, 1) }

// floor returns the number of calls up to which a priority has precedence. A priority with fewer calls in the window goes before
// the priorities that have reached the floor. Refreshes never have precedence.
func (w *window) floor() int { return max(w.limit/20, 1) }

func (w *window) left(now time.Time) float64 {
	w.expire(now)
	if p := w.pool; p != nil && now.Sub(p.answered) >= askEvery {
		w.question(0, now)
	}
	if w.throttled.After(now) {
		return 0
	}
	return max(float64(w.free())/float64(w.limit), 0)
}

// expire removes calls, foreign calls and callers that no longer count, and reduces cut.
func (w *window) expire(now time.Time) {
	gone := 0
	for gone < len(w.ended) && !now.Before(w.ended[gone].until) {
		p := &w.ended[gone]
		w.byPriority[p.priority]--
		w.spend(p.caller, -1)
		w.pool.gone(p.credited)
		gone++
	}
	if gone > 0 {
		w.ended = w.ended[gone:]
		w.stale = true
	}
	if w.pool.expire(w.scope, now) {
		w.stale = true
	}
	if (w.foreign > 0 || w.withheld) && !now.Before(w.foreignUntil) {
		w.foreign, w.withheld, w.stale = 0, false, true
	}
	if !w.probe.IsZero() && !now.Before(w.probe) && w.flying == 0 {
		// Allow one call. Its response says how many calls remain.
		w.foreign, w.probe, w.stale = max(min(w.foreign, w.limit-w.used()-1), 0), time.Time{}, true
	}
	for w.cut > 0 && !now.Before(w.mend) {
		w.cut -= max(w.cut/2, 1)
		w.mend = w.mend.Add(w.span)
		w.relimit()
	}
	for e := w.recent.Front(); e != nil; e = w.recent.Front() {
		c := e.Value.(*caller)
		if c.used+c.waiting > 0 || now.Before(c.asked.Add(w.span)) {
			break
		}
		w.recent.Remove(e)
		delete(w.callers, c.name)
		w.reserved -= w.share()
		w.stale = true
	}
}

const (
	// maxCallers bounds the number of callers in a window, because each forecast may visit all of them.
	maxCallers = 4096
	// others is the name under which all callers beyond maxCallers are counted together. No client can have this name.
	others = "\x00others"
)

// callerOf returns the caller with the given name and records a request of the caller. If the window already has maxCallers-1
// callers, callerOf counts each further caller under the name others.
func (w *window) callerOf(name string, now time.Time) *caller {
	c := w.callers[name]
	if c == nil && len(w.callers) >= maxCallers-1 {
		name = others
		c = w.callers[name]
	}
	if c == nil {
		c = &caller{name: name}
		c.element = w.recent.PushBack(c)
		w.callers[name] = c
		w.reserved += w.share()
	} else if c.asked != now {
		w.recent.MoveToBack(c.element)
	}
	c.asked = now
	return c
}

// spend adds n to the number of c's calls in the window; n may be negative. If c is nil, another process made the calls, and spend
// does nothing.
func (w *window) spend(c *caller, n int) {
	if c == nil {
		return
	}
	share := w.share()
	w.reserved -= max(share-c.used, 0)
	c.used += n
	w.reserved += max(share-c.used, 0)
}

// relimit computes limit and reserved again, and also foreign if withheld is true. It must be called after each change of told, cut
// or margin, and after withheld has become true.
func (w *window) relimit() {
	limit := w.ceiling
	if w.told > 0 {
		limit = min(limit, w.told)
	}
	w.limit = max(limit-w.cut, 1)
	if w.withheld {
		w.foreign = max(w.limit-min(w.allowed, w.margin), 0)
	}
	w.reserved = 0
	for _, c := range w.callers {
		w.reserved += max(w.share()-c.used, 0)
	}
	w.stale = true
}

// take counts the call of a reservation as in flight.
func (w *window) take(t *reservation) {
	w.fly(t, 1)
	w.byPriority[t.counted]++
	w.spend(t.caller, 1)
}

// fly adds n, which is 1 or -1, to the number of calls in flight.
func (w *window) fly(t *reservation, n int) {
	if w.flying == 0 {
		w.lowest = math.MaxInt
	}
	w.flying += n
	w.flyingBy[t.counted] += n
	t.caller.flying += n
	t.flying = n > 0
}

// end records that the call of t has ended, and that the calls of t.further that were sent have ended. These calls count for
// another span. Calls of t.further that still wait stay in the queue.
func (w *window) end(t *reservation, now time.Time) {
	if t.flying {
		w.fly(t, -1)
		w.ended = append(w.ended, callRecord{now.Add(w.span), t.caller, t.counted, t.credit.call != ""})
		if t.credit.call != "" {
			w.pool.Ledger.End(w.scope, []string{t.credit.call}, nil)
		}
		if w.recorded() {
			w.budget.cfg.Record.End()
		}
	}
	waiting := t.further[:0]
	for _, further := range t.further {
		if w.end(further, now); further.queued {
			waiting = append(waiting, further)
		}
	}
	t.further = waiting
}

// recorded reports whether the window's calls are recorded for the next process.
func (w *window) recorded() bool { return w == w.budget.public && w.budget.cfg.Record != nil }

// adopt adds the calls that a reservation made before the window for its credentials was opened. The window that has counted these
// calls so far continues to count them.
func (w *window) adopt(t *reservation, now time.Time) {
	c := w.callerOf(t.caller.name, now)
	for range t.made {
		w.ended = append(w.ended, callRecord{until: now.Add(w.span), caller: c, priority: t.counted})
		if w.pool != nil {
			w.pool.own++
		}
		w.byPriority[t.counted]++
		w.spend(c, 1)
	}
	w.stale = true
}

// giveBack removes a counted call that was not made.
func (w *window) giveBack(t *reservation) {
	w.fly(t, -1)
	w.byPriority[t.counted]--
	w.spend(t.caller, -1)
	w.refund(t)
}

// opens returns the earliest time at which the next call can be sent.
func (w *window) opens(now time.Time) time.Time {
	lacking := 1 - w.free()
	at := w.gone(lacking, now)
	if w.foreign > 0 {
		at = market.Earlier(at, market.Later(w.foreignUntil, w.gone(lacking-w.foreign, now)))
	}
	if refill := w.pool.next(); lacking > 0 && !refill.IsZero() {
		at = market.Earlier(at, market.Later(refill, now))
	}
	if w.cut > 0 {
		at = market.Earlier(at, market.Later(w.mend, w.gone(lacking-max(w.cut/2, 1), now)))
	}
	return market.Later(at, w.throttled)
}

// gone returns the earliest time at which n calls will have left the window. A call in flight can leave only after one span.
func (w *window) gone(n int, now time.Time) time.Time {
	switch {
	case n <= 0:
		return now
	case n <= len(w.ended):
		return w.ended[n-1].until
	}
	return now.Add(w.span)
}

// close refuses all waiting reservations, returns the credits to the ledger and stops the timer.
func (w *window) close() {
	w.retire()
	for p := range w.queue {
		for len(w.queue[p]) > 0 {
			t := w.queue[p][0]
			w.remove(t)
			t.refuse(errClosed)
		}
	}
	w.disarm()
}
