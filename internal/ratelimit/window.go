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
	// credited reports that the call was made with a grant of the ledger. If processes share the window (see pool) and credited is
	// false, the call counts against the reserve of this process.
	credited bool
}

// caller is a client that made a request within the last span, has calls in the window, or has reservations in the window's queue.
type caller struct {
	name string
	// used is the number of the caller's calls in the window, and inFlight is the number of these calls that are in flight. waiting is
	// the number of the caller's reservations in the queue.
	used, inFlight, waiting int
	lastRequest             time.Time
	element                 *list.Element

	// planned is the number of calls that the forecast with the id plannedRound adds to used. Other forecasts ignore planned; see
	// plan.spend.
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

	// ceiling is the usable part of the configured limit. venueLimit is the usable part of the limit in the venue's headers, or 0 if
	// the headers contain no limit. cut is the number of calls by which the limit is lowered after the venue has refused calls. limit
	// is the number of calls that are allowed now: ceiling (or venueLimit, if the headers contain a smaller limit) minus cut, but at
	// least 1.
	ceiling, limit, venueLimit, cut int
	// halveCutAt is the next time at which cut is halved.
	halveCutAt time.Time
	// A blocked window sends no calls; see block. The last block began at throttledSince and lasts until throttledUntil.
	// earlierThrottling is the total duration of all earlier blocks.
	throttledUntil, throttledSince time.Time
	earlierThrottling              time.Duration
	// foreign is the number of calls by other processes that the venue has counted. These calls count until foreignUntil.
	foreign      int
	foreignUntil time.Time

	// coldUntil is the time until which the venue may count unknown calls of other processes. While withheld is true, the window may
	// contain at most allowedCalls calls. relimit then counts the rest of the limit as foreign. ignoresRemaining reports that the
	// window ignores the number of remaining calls in the venue's headers, because another process uses the limit.
	coldUntil                  time.Time
	withheld, ignoresRemaining bool
	allowedCalls               int
	// margin is the number of calls of the limit that are normally not used. lowestRemaining is the smallest number of remaining calls
	// that the venue has reported since the last time without calls in flight. probeAt is the reset time that the venue reported, or
	// the zero time. At that time at least one call stops counting at the venue. So as soon as no call is in flight, expire allows one
	// call, whose response says how many calls remain.
	margin, lowestRemaining int
	probeAt                 time.Time

	inFlight int
	ended    []callRecord // oldest first
	// byPriority is the number of calls in the window for each priority, and inFlightBy is the number of calls in flight for each
	// priority.
	byPriority, inFlightBy [reqctx.Priorities]int

	// callers contains the callers by name; see caller. recent lists the same callers in the order of their last requests. reserved is
	// the number of calls that the callers together can still make within their shares.
	callers  map[string]*caller
	recent   list.List
	reserved int

	queue   [reqctx.Priorities][]*reservation
	waiting int
	// arrivals is the value of reservation.arrival that was assigned last.
	arrivals uint64
	// lastRefresh is the time of the last admission of a refresh.
	lastRefresh time.Time
	timer       *time.Timer
	// pool contains the calls that the ledger has granted, and the reserve of this process. It is nil if processes do not share the
	// window.
	pool    *pool
	retired bool
	// round is the id of the latest forecast. stale reports that the turns must be computed again.
	round uint64
	stale bool
}

func newWindow(b *Budget, scope string, limit int) *window {
	w := &window{budget: b, scope: scope, span: span, ceiling: Usable(limit), callers: make(map[string]*caller)}
	w.limit, w.margin = w.ceiling, limit-w.ceiling
	if w.pool = b.newPool(scope, w.limit); w.pool == nil && b.clock.Now().Before(b.coldUntil) {
		w.withhold(w.margin, b.coldUntil)
	}
	return w
}

func (w *window) used() int { return w.inFlight + len(w.ended) }

// free returns the number of calls that may be sent now. It is negative if the limit was lowered below the number of calls in the
// window.
func (w *window) free() int {
	free := w.limit - w.used() - w.foreign
	if w.pool != nil {
		free = min(free, w.pool.free())
	}
	return free
}

// share returns a caller's share of the window in calls. A caller that has used its share must leave calls for the other callers.
func (w *window) share() int { return max(w.limit/4, 1) }

// floor returns a number of calls. A priority with fewer calls in the window goes before the other priorities; see rule 2 in the
// package comment. Refreshes never have precedence.
func (w *window) floor() int { return max(w.limit/20, 1) }

func (w *window) freeFraction(now time.Time) float64 {
	w.expire(now)
	if p := w.pool; p != nil && now.Sub(p.answeredAt) >= askEvery {
		w.askFor(0, now)
	}
	if w.throttledUntil.After(now) {
		return 0
	}
	return max(float64(w.free())/float64(w.limit), 0)
}

// expire removes calls, foreign calls and callers that no longer count, and reduces cut.
func (w *window) expire(now time.Time) {
	expired := 0
	for expired < len(w.ended) && !now.Before(w.ended[expired].until) {
		p := &w.ended[expired]
		w.byPriority[p.priority]--
		w.spend(p.caller, -1)
		w.pool.callLeft(p.credited)
		expired++
	}
	if expired > 0 {
		w.ended = w.ended[expired:]
		w.stale = true
	}
	if w.pool.expire(w.scope, now) {
		w.stale = true
	}
	if (w.foreign > 0 || w.withheld) && !now.Before(w.foreignUntil) {
		w.foreign, w.withheld, w.stale = 0, false, true
	}
	if !w.probeAt.IsZero() && !now.Before(w.probeAt) && w.inFlight == 0 {
		// Allow one call; see probeAt.
		w.foreign, w.probeAt, w.stale = max(min(w.foreign, w.limit-w.used()-1), 0), time.Time{}, true
	}
	for w.cut > 0 && !now.Before(w.halveCutAt) {
		w.cut -= max(w.cut/2, 1)
		w.halveCutAt = w.halveCutAt.Add(w.span)
		w.relimit()
	}
	for e := w.recent.Front(); e != nil; e = w.recent.Front() {
		c := e.Value.(*caller)
		if c.used+c.waiting > 0 || now.Before(c.lastRequest.Add(w.span)) {
			break
		}
		w.recent.Remove(e)
		delete(w.callers, c.name)
		w.reserved -= w.share()
		w.stale = true
	}
}

const (
	// maxCallers bounds the number of callers in a window, because a forecast may visit all callers.
	maxCallers = 4096
	// others is the name under which all callers beyond maxCallers are counted together. No client can have this name.
	others = "\x00others"
)

// callerOf returns the caller with the given name and records a request of the caller. If the window already has maxCallers-1
// callers, callerOf returns the caller others in place of a further caller.
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
	} else if c.lastRequest != now {
		w.recent.MoveToBack(c.element)
	}
	c.lastRequest = now
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

// relimit computes the fields limit and reserved again. If withheld is true, it also computes foreign. It must be called after each
// change of venueLimit, cut or margin, and after withheld has become true.
func (w *window) relimit() {
	limit := w.ceiling
	if w.venueLimit > 0 {
		limit = min(limit, w.venueLimit)
	}
	w.limit = max(limit-w.cut, 1)
	if w.withheld {
		w.foreign = max(w.limit-min(w.allowedCalls, w.margin), 0)
	}
	w.reserved = 0
	for _, c := range w.callers {
		w.reserved += max(w.share()-c.used, 0)
	}
	w.stale = true
}

// take counts the call of a reservation as in flight.
func (w *window) take(t *reservation) {
	w.addFlying(t, 1)
	w.byPriority[t.countedAs]++
	w.spend(t.caller, 1)
}

// addFlying counts the call of a reservation as in flight if n is 1, and as no longer in flight if n is -1.
func (w *window) addFlying(t *reservation, n int) {
	if w.inFlight == 0 {
		w.lowestRemaining = math.MaxInt
	}
	w.inFlight += n
	w.inFlightBy[t.countedAs] += n
	t.caller.inFlight += n
	t.inFlight = n > 0
}

// end records that the call of t and the further calls of its read have ended. An ended call counts for another span. Further calls
// that still wait stay in the queue.
func (w *window) end(t *reservation, now time.Time) {
	if t.inFlight {
		w.addFlying(t, -1)
		w.ended = append(w.ended, callRecord{now.Add(w.span), t.caller, t.countedAs, t.credit.call != ""})
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

// adopt adds calls to a new window for credentials: the calls that a reservation with these credentials made before the window was
// opened. The window in which the reservation made these calls also continues to count them.
func (w *window) adopt(t *reservation, now time.Time) {
	c := w.callerOf(t.caller.name, now)
	for range t.made {
		w.ended = append(w.ended, callRecord{until: now.Add(w.span), caller: c, priority: t.countedAs})
		if w.pool != nil {
			w.pool.reserveUsed++
		}
		w.byPriority[t.countedAs]++
		w.spend(c, 1)
	}
	w.stale = true
}

// giveBack removes the call of a reservation from the window, because the call was counted but not made.
func (w *window) giveBack(t *reservation) {
	w.addFlying(t, -1)
	w.byPriority[t.countedAs]--
	w.spend(t.caller, -1)
	w.refund(t)
}

// nextCallTime returns the earliest time at which the next call can be sent.
func (w *window) nextCallTime(now time.Time) time.Time {
	lacking := 1 - w.free()
	at := w.leaveTime(lacking, now)
	if w.foreign > 0 {
		at = market.Earlier(at, market.Later(w.foreignUntil, w.leaveTime(lacking-w.foreign, now)))
	}
	if more := w.pool.moreCallsAt(); lacking > 0 && !more.IsZero() {
		at = market.Earlier(at, market.Later(more, now))
	}
	if w.cut > 0 {
		at = market.Earlier(at, market.Later(w.halveCutAt, w.leaveTime(lacking-max(w.cut/2, 1), now)))
	}
	return market.Later(at, w.throttledUntil)
}

// leaveTime returns the earliest time at which n calls will have left the window. A call in flight can leave only after one span.
func (w *window) leaveTime(n int, now time.Time) time.Time {
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
