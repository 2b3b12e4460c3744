package ratelimit

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

const (
	// span is the time for which an ended call counts: a minute plus skew. Endpoints in a Family have a span of their own.
	span = time.Minute + skew
	// skew is added to each span, because the venue may round times to milliseconds.
	skew = time.Millisecond
	// unproven bounds the calls in flight in a window until the venue has answered a call of this process, because it may refuse them
	// all.
	unproven = 2
	// unlimited is a limit that no process reaches. Processes do not share windows with a limit of unlimited or more, and assume
	// nothing about them.
	unlimited = 1 << 30
)

// callRecord is an ended call. It counts until one span after its end. A call in flight also counts, but has no callRecord.
type callRecord struct {
	until    time.Time
	caller   *caller
	priority reqctx.Priority
	// credited reports that the call was made with a grant of the ledger.
	credited bool
}

// window is a log of the calls of the last span and the queue of waiting reservations. The budget's lock protects it.
type window struct {
	budget *Budget
	scope  string
	// span is the time for which an ended call counts.
	span time.Duration

	// ceiling is the usable part of the configured limit. venueLimit is the usable part of the limit in the venue's headers, or 0 if
	// the headers contain no limit. cut is the number of calls by which the limit is lowered after the venue has refused calls. limit
	// is the number of calls that are allowed now: ceiling (or venueLimit, if the headers contain a smaller limit) minus cut, but at
	// least 1.
	ceiling, limit, venueLimit, cut int
	// margin is the number of calls of the limit that are not used; see Usable.
	margin int
	// halveCutAt is the next time at which cut is halved.
	halveCutAt time.Time

	inFlight int
	ended    []callRecord // oldest first
	others   others
	// byPriority is the number of calls in the window for each priority.
	byPriority [reqctx.Priorities]int

	refusals refusals
	// maxInFlight bounds the calls in flight until the venue has answered a call: after the start, and after a 429. 0 is no bound.
	maxInFlight int

	// callers contains the callers by name, in the order of their last requests. reserved is the number of calls that the callers
	// together can still make within their shares.
	callers  *simplelru.LRU[string, *caller]
	reserved int

	queue   [reqctx.Priorities][]*reservation
	waiting int
	// arrivals is the value of reservation.arrival that was assigned last.
	arrivals uint64
	timer    *time.Timer
	// pool says which calls of a shared limit this process may make. It is nil if processes do not share the window.
	pool   *pool
	closed bool
}

// newWindow returns an empty window for calls with the given scope. limit is the venue's limit in one span.
func newWindow(b *Budget, scope string, limit int, span time.Duration) *window {
	w := &window{budget: b, scope: scope, span: span, ceiling: Usable(limit)}
	w.callers, _ = simplelru.NewLRU[string, *caller](maxCallers, nil)
	w.limit, w.margin = w.ceiling, limit-w.ceiling
	if !b.cfg.Fresh && !b.answered {
		w.maxInFlight = unproven
	}
	w.assume()
	return w
}

// assume counts half of the limit as made by other processes in the period before the start; see the package comment. It does
// nothing in a window that processes share, because the ledger counts such calls.
func (w *window) assume() {
	if b := w.budget; !b.cfg.Fresh && w.pool == nil && w.limit < unlimited {
		w.others = evenly(w.limit/2, b.opened, w.span, true)
	}
}

func (w *window) used() int { return w.inFlight + len(w.ended) }

// free returns the number of calls that may be sent now. It is negative if the limit was lowered below the number of calls in the
// window.
func (w *window) free(now time.Time) int {
	free := w.limit - w.used() - w.others.left(now)
	if w.pool != nil {
		free = min(free, w.pool.free(w.limit, now))
	}
	return free
}

// share returns a caller's share of the window in calls. A caller that has used its share must leave calls for the other callers.
func (w *window) share() int { return max(w.limit/4, 1) }

// floor returns a number of calls. A priority with fewer calls in the window goes before the other priorities; see rule 2 in the
// package comment. Refreshes never have precedence.
func (w *window) floor() int { return max(w.limit/20, 1) }

// scarce reports whether a call to the endpoint would have to wait. Calls that are only assumed to have been made do not count.
func (w *window) scarce(e reqctx.Endpoint, now time.Time) bool {
	w.expire(now)
	if p := w.pool; p != nil && now.Sub(p.answeredAt) >= askEvery {
		w.ask(0)
	}
	if w.refusals.until.After(now) || w.refusals.endpoint(e).until.After(now) {
		return true
	}
	free := w.free(now)
	if w.others.assumed {
		free += w.others.left(now)
	}
	if w.pool != nil {
		free += w.pool.assumedNow(now)
	}
	return free <= 0
}

// expire removes calls and callers that no longer count, and reduces cut.
func (w *window) expire(now time.Time) {
	expired := 0
	for expired < len(w.ended) && !now.Before(w.ended[expired].until) {
		p := &w.ended[expired]
		w.byPriority[p.priority]--
		w.spend(p.caller, -1)
		w.pool.callLeft(p.credited)
		expired++
	}
	w.ended = w.ended[expired:]
	w.pool.expire(now)
	if w.others.left(now) == 0 {
		w.others = others{}
	}
	for w.cut > 0 && !now.Before(w.halveCutAt) {
		w.cut -= max(w.cut/2, 1)
		w.halveCutAt = w.halveCutAt.Add(w.span)
		w.relimit()
	}
	w.forget(now)
}

// relimit computes the fields limit and reserved again. It must be called after each change of venueLimit or cut.
func (w *window) relimit() {
	limit := w.ceiling
	if w.venueLimit > 0 {
		limit = min(limit, w.venueLimit)
	}
	w.limit = max(limit-w.cut, 1)
	w.reserved = 0
	for _, c := range w.callers.Values() {
		w.reserved += max(w.share()-c.used, 0)
	}
}

// take counts the call of a reservation as in flight.
func (w *window) take(t *reservation) {
	w.inFlight++
	t.inFlight = true
	if f := w.refusals.endpoints[t.endpoint]; f != nil {
		f.probe = t
	}
	w.byPriority[t.countedAs]++
	w.spend(t.caller, 1)
	w.pool.pay(t)
}

// land records that a call is no longer in flight.
func (w *window) land(t *reservation) {
	w.inFlight--
	t.inFlight = false
	if f := w.refusals.endpoints[t.endpoint]; f != nil && f.probe == t {
		f.probe = nil
	}
}

// end records that the call of t and the further calls of its read have ended. An ended call counts for another span. Further calls
// that still wait stay in the queue.
func (w *window) end(t *reservation, now time.Time) {
	if t.inFlight {
		w.land(t)
		w.ended = append(w.ended, callRecord{now.Add(w.span), t.caller, t.countedAs, t.credit != ""})
		if t.credit != "" {
			w.pool.Ledger.End(w.scope, []string{t.credit}, nil)
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

// giveBack removes the call of a reservation from the window, because the call was counted but not made.
func (w *window) giveBack(t *reservation) {
	w.land(t)
	w.byPriority[t.countedAs]--
	w.spend(t.caller, -1)
	if t.credit != "" {
		w.pool.Ledger.End(w.scope, nil, []string{t.credit})
		t.credit = ""
	} else if w.pool != nil {
		w.pool.uncredited--
	}
}

// nextCallTime returns the earliest time at which the next call can be sent.
func (w *window) nextCallTime(now time.Time) time.Time {
	d := w.departures(now)
	at := d.next()
	if w.cut > 0 && at.After(w.halveCutAt) {
		at = w.halveCutAt
	}
	return market.Later(market.Later(at, w.opensAt(now)), w.refusals.until)
}

// close refuses all waiting reservations and stops the timer.
func (w *window) close() {
	w.closed = true
	for p := range w.queue {
		for len(w.queue[p]) > 0 {
			t := w.queue[p][0]
			w.remove(t)
			t.decide(errClosed)
		}
	}
	w.disarm()
}
