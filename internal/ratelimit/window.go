package ratelimit

import (
	"container/list"
	"math"
	"time"

	"oddsgraph/internal/market/reqctx"
)

const (
	// span is the time over which the venue counts, plus a millisecond for clocks that count whole milliseconds.
	span = time.Minute + time.Millisecond
	// patience bounds how long a 429 of the venue can block a window.
	patience = 5 * time.Minute
)

// callRecord is a call that has ended and that counts for another minute. A call in flight has no record, because the time at
// which it reaches the venue is unknown.
type callRecord struct {
	until    time.Time
	caller   *caller
	priority reqctx.Priority
	// credited means that a granted call paid for it; see pool.
	credited bool
}

// caller is a client that made a request within the last minute.
type caller struct {
	name string
	// used counts the caller's calls in the window, flying the calls among them that have not ended, and waiting the
	// reservations in the queue.
	used, flying, waiting int
	asked                 time.Time
	element               *list.Element

	// planned counts the calls that the forecast plannedRound adds; see plan.spend.
	planned      int
	plannedRound uint64
}

// window is a log of the calls of the last minute and the queue of waiting reservations. The budget's lock protects it.
type window struct {
	budget  *Budget
	scope   string
	element *list.Element

	// ceiling is the usable part of the configured limit. limit is the number of calls that is allowed now. told is the usable part of the limit in the venue's headers; 0 if there was none.
	// cut is subtracted because the venue has refused calls.
	ceiling, limit, told, cut int
	// mend is when the cut is halved next.
	mend time.Time
	// throttled is when the venue accepts calls again. since is when it began to refuse them. before is the total time of earlier
	// refusals.
	throttled, since time.Time
	before           time.Duration
	// foreign counts calls of others that the venue has counted. They count until foreignUntil.
	foreign      int
	foreignUntil time.Time

	// cold is the time until which the venue may count unknown calls of other processes. While withheld is true, foreign covers them: it is the limit less
	// the reserve. guest is true while another process makes the calls, so rate-limit headers change nothing.
	cold            time.Time
	withheld, guest bool
	reserve         int
	// margin is the part of the limit that is never used. lowest is the smallest number of remaining calls that the venue has
	// reported since the window last had no calls in flight. By probe, the venue has forgotten at least one call.
	margin, lowest int
	probe          time.Time

	flying int
	ended  []callRecord // oldest first
	// byPriority counts all calls in the window, and flyingBy the calls in flight.
	byPriority, flyingBy [reqctx.Priorities]int

	// callers holds the callers with a request in the last minute or with calls in the window. recent holds the same callers,
	// the latest at the back. reserved is the unused part of all their shares.
	callers  map[string]*caller
	recent   list.List
	reserved int

	queue   [reqctx.Priorities][]*reservation
	waiting int
	// arrivals counts the reservations, to number them.
	arrivals uint64
	// refreshed is the time of the last admission of a refresh.
	refreshed time.Time
	timer     *time.Timer
	// pool is the part that is shared with other processes, nil if none is. retired means that the window is closed.
	pool    *pool
	retired bool
	// round counts the plans. stale means that the planned turns are out of date.
	round uint64
	stale bool
}

func newWindow(b *Budget, scope string, limit int) *window {
	w := &window{budget: b, scope: scope, ceiling: Usable(limit), callers: make(map[string]*caller)}
	w.limit, w.margin = w.ceiling, limit-w.ceiling
	if w.pool = b.newPool(scope, w.limit); w.pool == nil && b.clock.Now().Before(b.cold) {
		w.withhold(w.margin, b.cold)
	}
	return w
}

func (w *window) used() int { return w.flying + len(w.ended) }

// free returns how many calls may leave now. It is negative after the limit was lowered below the calls in the window.
func (w *window) free() int {
	free := w.limit - w.used() - w.foreign
	if w.pool != nil {
		free = min(free, w.pool.free())
	}
	return free
}

// share is the number of calls that each caller may make while others wait.
func (w *window) share() int { return max(w.limit/4, 1) }

// floor is the number of calls that each priority except refresh may make before higher priorities go first.
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

// expire removes what has left the window: calls, calls of others, a cut, and callers.
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
		// Let one call leave: its answer says how many calls remain.
		w.foreign, w.probe, w.stale = max(min(w.foreign, w.limit-w.used()-1), 0), time.Time{}, true
	}
	for w.cut > 0 && !now.Before(w.mend) {
		w.cut -= max(w.cut/2, 1)
		w.mend = w.mend.Add(span)
		w.relimit()
	}
	for e := w.recent.Front(); e != nil; e = w.recent.Front() {
		c := e.Value.(*caller)
		if c.used+c.waiting > 0 || now.Before(c.asked.Add(span)) {
			break
		}
		w.recent.Remove(e)
		delete(w.callers, c.name)
		w.reserved -= w.share()
		w.stale = true
	}
}

const (
	// maxCallers bounds the callers of a window, because each plan visits all of them.
	maxCallers = 4096
	// others is the shared name of further callers. No client has this name.
	others = "\x00others"
)

// callerOf returns the caller of a name and records its request.
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

// spend adds n calls of a caller; n may be negative. A nil caller is another process.
func (w *window) spend(c *caller, n int) {
	if c == nil {
		return
	}
	share := w.share()
	w.reserved -= max(share-c.used, 0)
	c.used += n
	w.reserved += max(share-c.used, 0)
}

// relimit computes the limit in force and what depends on it.
func (w *window) relimit() {
	limit := w.ceiling
	if w.told > 0 {
		limit = min(limit, w.told)
	}
	w.limit = max(limit-w.cut, 1)
	if w.withheld {
		w.foreign = max(w.limit-min(w.reserve, w.margin), 0)
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

// fly adds n, which is 1 or -1, to the calls in flight.
func (w *window) fly(t *reservation, n int) {
	if w.flying == 0 {
		w.lowest = math.MaxInt
	}
	w.flying += n
	w.flyingBy[t.counted] += n
	t.caller.flying += n
	t.flying = n > 0
}

// end records the end of a reservation's calls, including its further calls. They count for a minute from now.
func (w *window) end(t *reservation, now time.Time) {
	if t.flying {
		w.fly(t, -1)
		w.ended = append(w.ended, callRecord{now.Add(span), t.caller, t.counted, t.credit.call != ""})
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

// adopt counts the calls that were made before the venue had accepted the window's credentials. They also stay in the public
// window.
func (w *window) adopt(t *reservation, now time.Time) {
	c := w.callerOf(t.caller.name, now)
	for range t.made {
		w.ended = append(w.ended, callRecord{until: now.Add(span), caller: c, priority: t.counted})
		if w.pool != nil {
			w.pool.own++
		}
		w.byPriority[t.counted]++
		w.spend(c, 1)
	}
	w.stale = true
}

// giveBack removes a reservation's call if the call was not made.
func (w *window) giveBack(t *reservation) {
	w.fly(t, -1)
	w.byPriority[t.counted]--
	w.spend(t.caller, -1)
	w.refund(t)
}

// observe applies the rate-limit headers of an answer.
func (w *window) observe(limit, remaining int, reset, now time.Time) {
	w.expire(now)
	if limit > 0 {
		if told := Usable(limit); told != w.told {
			w.told, w.margin = told, min(w.margin, limit-told)
			w.relimit()
		}
	}
	switch {
	case limit <= 0 || remaining < 0 || w.guest:
	case w.pool != nil:
		// The venue counts the calls of all processes, which together leave the margin. So others use the address too.
		if remaining < w.margin {
			w.pause(now.Add(askEvery), now)
		}
	case now.Before(w.cold):
		w.settleCold(limit, remaining, reset, now)
	default:
		w.probe = time.Time{}
		// The calls that only the venue has counted are of others. Our calls in flight may hide some of them.
		w.foreign = max(limit-remaining-w.used(), 0)
		w.foreignUntil = now.Add(span)
		if !reset.IsZero() && reset.Before(w.foreignUntil) {
			w.foreignUntil = reset
		}
		w.stale = true
	}
	w.settle(now)
}

// throttle lets no call leave before until, because the venue has refused one. The venue allows less than the limit, so the
// limit is cut by a tenth. After two minutes, the cut is halved every minute.
func (w *window) throttle(until, now time.Time) {
	w.expire(now)
	if !w.throttled.After(now) {
		w.cut = min(w.cut+max(w.limit/10, 1), w.ceiling-1)
	}
	w.mend = now.Add(2 * span)
	until = earlier(until, now.Add(patience))
	w.pause(until, now)
	if w.pool != nil {
		w.pool.Ledger.Hold(w.scope, until)
	}
	w.relimit()
	w.settle(now)
}

// throttledFor returns for how long in total the venue has refused calls.
func (w *window) throttledFor(now time.Time) time.Duration {
	return w.before + max(earlier(now, w.throttled).Sub(w.since), 0)
}

// opens returns when the next call of any caller can leave. That is now unless the venue refuses calls or the limit is used up.
func (w *window) opens(now time.Time) time.Time {
	lacking := 1 - w.free()
	at := w.gone(lacking, now)
	if w.foreign > 0 {
		at = earlier(at, later(w.foreignUntil, w.gone(lacking-w.foreign, now)))
	}
	if refill := w.pool.next(); lacking > 0 && !refill.IsZero() {
		at = earlier(at, later(refill, now))
	}
	if w.cut > 0 {
		at = earlier(at, later(w.mend, w.gone(lacking-max(w.cut/2, 1), now)))
	}
	return later(at, w.throttled)
}

// gone returns when n calls will have left the window. A call in flight leaves in a minute at the earliest.
func (w *window) gone(n int, now time.Time) time.Time {
	switch {
	case n <= 0:
		return now
	case n <= len(w.ended):
		return w.ended[n-1].until
	}
	return now.Add(span)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// close refuses all waiting reservations.
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
