package ratelimit

import (
	"container/list"
	"math"
	"time"

	"oddsgraph/internal/market/reqctx"
)

const (
	// span is the time over which the venue counts, with a millisecond for clocks that count in whole ones.
	span = time.Minute + time.Millisecond
	// patience bounds for how long the venue's word is taken that it wants no calls.
	patience = 5 * time.Minute
)

// callRecord is a call that has ended, which counts for a minute yet. Until it ends a call counts without a time, since nobody
// knows when it will reach the venue.
type callRecord struct {
	until    time.Time
	caller   *caller
	priority reqctx.Priority
	credited bool // a credit paid for it, see pool
}

// caller is one of those who asked within the last minute.
type caller struct {
	name string
	// used counts the caller's calls in the window, flying those of them that have not ended, waiting those in the queue.
	used, flying, waiting int
	asked                 time.Time
	element               *list.Element

	// What plan has given it so far in the round that it was used in.
	planned      int
	plannedRound uint64
}

// window is a log of the calls of the last minute, and the queue of those that want to follow. The budget's lock protects
// it.
type window struct {
	budget  *Budget
	scope   string
	element *list.Element

	// ceiling is the limit that was configured, limit the one in force: the venue may have named a lower one (told) or
	// have refused calls (cut).
	ceiling, limit, told, cut int
	// mend is when a cut is reduced again.
	mend time.Time
	// throttled is until when the venue wants no calls, since when it began to want none, for how long it wanted none before.
	throttled, since time.Time
	before           time.Duration
	// foreign counts calls that the venue has counted and that are not ours, until foreignUntil.
	foreign      int
	foreignUntil time.Time

	// cold is until when calls of other processes may count that are not known. While withheld is true, foreign stands for
	// them: all calls but the reserve. guest is true while another process makes the calls, so the venue's word changes nothing.
	cold            time.Time
	withheld, guest bool
	reserve         int
	// margin is the part of the limit that is never used. lowest is the least number of calls that the venue said remain while
	// calls have been under way without a pause. probe is when it will have forgotten one call at least.
	margin, lowest int
	probe          time.Time

	flying int
	ended  []callRecord // oldest first
	// byPriority counts all calls in the window, flyingBy those that have not ended.
	byPriority, flyingBy [reqctx.Priorities]int

	// callers are those who asked within the last minute or have calls in the window, recent the same with those who
	// asked last at the back. reserved is what they may have yet of their shares.
	callers  map[string]*caller
	recent   list.List
	reserved int

	queue   [reqctx.Priorities][]*reservation
	waiting int
	// arrivals numbers the reservations.
	arrivals uint64
	// refreshed is when the last refresh was admitted.
	refreshed time.Time
	timer     *time.Timer
	// pool is what is shared with other processes, nil if nothing is. retired tells that the window is used no more.
	pool    *pool
	retired bool
	// round counts plans; stale tells that the turns of those who wait have to be planned anew.
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

// free returns how many calls may leave now; it may be negative after the limit was lowered.
func (w *window) free() int {
	free := w.limit - w.used() - w.foreign
	if w.pool != nil {
		free = min(free, w.pool.free())
	}
	return free
}

// share is what each caller may have while others want something too.
func (w *window) share() int { return max(w.limit/4, 1) }

// floor is what each priority may have before a greater one goes first.
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

// expire forgets what has left the window.
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
		// One call finds out how many remain.
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
	// maxCallers bounds the callers of a window: plans look at each of them.
	maxCallers = 4096
	// others is the name that those share who come when there are so many. It is nobody's.
	others = "\x00others"
)

// callerOf returns the caller of a name, who asks now.
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

// spend counts n calls of a caller, which may be negative.
func (w *window) spend(c *caller, n int) {
	if c == nil {
		return // of another process
	}
	share := w.share()
	w.reserved -= max(share-c.used, 0)
	c.used += n
	w.reserved += max(share-c.used, 0)
}

// relimit puts the lowest of the limits in force.
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

// take counts the call of a reservation, which is under way from now on.
func (w *window) take(t *reservation) {
	w.fly(t, 1)
	w.byPriority[t.counted]++
	w.spend(t.caller, 1)
}

// fly counts the call of a reservation, or uncounts it by -1, among those that have not ended.
func (w *window) fly(t *reservation, n int) {
	if w.flying == 0 {
		w.lowest = math.MaxInt
	}
	w.flying += n
	w.flyingBy[t.counted] += n
	t.caller.flying += n
	t.flying = n > 0
}

// end lets the calls of a reservation count for a minute from now on.
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

// recorded reports whether the window's calls are noted for the next process.
func (w *window) recorded() bool { return w == w.budget.public && w.budget.cfg.Record != nil }

// adopt counts calls of the window's credentials that were made before it was known that the venue accepts them. Among the
// public calls they count as well.
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

// giveBack uncounts the call of a reservation, which was not made.
func (w *window) giveBack(t *reservation) {
	w.fly(t, -1)
	w.byPriority[t.counted]--
	w.spend(t.caller, -1)
	w.refund(t)
}

// observe takes in what the venue said about its limit.
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
		// The venue has counted the calls of all processes. Together they leave the margin, so somebody else uses the address too.
		if remaining < w.margin {
			w.pause(now.Add(askEvery), now)
		}
	case now.Before(w.cold):
		w.settleCold(limit, remaining, reset, now)
	default:
		w.probe = time.Time{}
		// What the venue has counted and we have not was sent by others. Ours that it has not seen yet only hide some.
		w.foreign = max(limit-remaining-w.used(), 0)
		w.foreignUntil = now.Add(span)
		if !reset.IsZero() && reset.Before(w.foreignUntil) {
			w.foreignUntil = reset
		}
		w.stale = true
	}
	w.settle(now)
}

// throttle takes in that the venue wants no calls until a time. That it had to say so means that less is allowed than was
// thought, so the limit is cut by a tenth, half of which is mended every minute.
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

// throttledFor returns for how long the venue has wanted no calls until now.
func (w *window) throttledFor(now time.Time) time.Duration {
	return w.before + max(earlier(now, w.throttled).Sub(w.since), 0)
}

// opens returns when the next call can leave, whoever makes it: now, unless the venue wants none or the limit is used up.
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

// gone returns when n of the calls in the window will have left it. One that has not ended will in a minute at the earliest.
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

// close refuses all who wait.
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
