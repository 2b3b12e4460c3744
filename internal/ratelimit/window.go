package ratelimit

import (
	"cmp"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

const (
	// span is the time for which an ended call counts: a minute plus skew. Endpoints in a Family have a span of their own.
	span = time.Minute + skew
	skew = time.Millisecond // the venue may round times to milliseconds
	// unproven bounds the calls in flight in a window until the venue has answered, because it may refuse them all. While the window
	// counts assumed calls, each provenBy/limit calls raise this bound by one: 16 calls if 95 are usable.
	unproven, provenBy = 2, 16 * 95
	// unlimited is a limit that no process reaches. Windows with this limit or more are not shared and assume nothing.
	unlimited = 1 << 30
)

// callRecord is an ended call. It counts until one span after its end. A call in flight also counts, but has no callRecord.
type callRecord struct {
	until    time.Time
	caller   *caller
	priority upstream.Priority
	credited bool // made with a grant of the ledger
}

// window is a log of the calls of the last span and the queue of waiting reservations. The budget's lock protects it.
type window struct {
	budget *Budget
	scope  string
	span   time.Duration // for which an ended call counts
	// ceiling is the usable part of the configured limit, and venueLimit that of the limit in the venue's headers, or 0. cut is the
	// number of calls by which the limit is lowered after a 429. limit is the number of calls that are allowed now; see relimit.
	ceiling, limit, venueLimit, cut int
	cutAt, halveCutAt               time.Time // when cut was last increased, and when it is halved next

	inFlight   int
	ended      []callRecord // oldest first
	others     others
	byPriority [upstream.Priorities]int // the calls in the window

	// refusal applies to all calls of the window, and refusals to the calls of an endpoint. paused is the total duration of all pauses
	// of the window, including the rest of the present one. usedUp reports that a 429 in the first period has made the window count as
	// used up. answered is the time at which the last answered call of each endpoint was sent.
	refusal  refusal
	refusals [upstream.Endpoints]refusal
	paused   time.Duration
	usedUp   bool
	answered [upstream.Endpoints]time.Time
	// maxInFlight bounds the calls in flight while calls are assumed, and after a 429 until the venue answers. 0 is no bound.
	maxInFlight int

	// callers contains the callers by name, in the order of their last requests. reserved is the number of calls that the callers
	// together can still make within their shares.
	callers  *simplelru.LRU[string, *caller]
	reserved int

	queue    [upstream.Priorities][]*reservation
	waiting  int
	arrivals uint64 // the value of reservation.arrival that was assigned last
	timer    *time.Timer
	// pool says which calls of a shared limit this process may make. It is nil if processes do not share the window.
	pool   *pool
	closed bool
}

// newWindow returns an empty window for calls with the given scope. limit is the venue's limit in one span. shared is true if the
// processes share the window.
func newWindow(b *Budget, scope string, limit int, span time.Duration, shared bool) *window {
	w := &window{budget: b, scope: scope, span: span, ceiling: Usable(limit), limit: Usable(limit)}
	w.callers, _ = simplelru.NewLRU[string, *caller](maxCallers, nil)
	if !b.cfg.Fresh && !b.answered {
		w.maxInFlight = unproven
	}
	if s := b.cfg.Sharing; shared && s.Ledger != nil && limit < unlimited {
		w.pool = &pool{Sharing: s, left: w.limit}
	} else {
		w.assume()
	}
	return w
}

// assume counts half of the limit as made by other processes in the period before the start; see the package comment.
func (w *window) assume() {
	if b := w.budget; !b.cfg.Fresh && w.limit < unlimited {
		w.others = evenly(w.limit/2, b.opened, w.span, true)
	}
}

func (w *window) used() int { return w.inFlight + len(w.ended) }

// free returns the number of calls that may be sent now. It is negative if the limit was lowered below the calls in the window.
func (w *window) free(now time.Time) int {
	free := w.limit - w.used() - w.others.left(now)
	if w.pool != nil {
		free = min(free, w.pool.free(w.limit, now))
	}
	return free
}

// share returns a caller's share of the window in calls. A caller that has used its share must leave calls for the other callers.
func (w *window) share() int { return max(w.limit/4, 1) }

// floor returns the number of calls up to which a priority goes first by rule 2 of the package comment.
func (w *window) floor() int { return max(w.limit/20, 1) }

// expire removes calls and callers that no longer count, and reduces cut.
func (w *window) expire(now time.Time) {
	expired := 0
	for expired < len(w.ended) && !now.Before(w.ended[expired].until) {
		p := &w.ended[expired]
		w.byPriority[p.priority]--
		w.spend(p.caller, -1)
		if w.pool != nil && p.credited {
			w.pool.left++ // an estimate until the ledger answers again
		} else if w.pool != nil {
			w.pool.uncredited--
		}
		expired++
	}
	w.ended = w.ended[expired:]
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
		w.reserved += w.claim(c)
	}
}

// take counts the call of a reservation as in flight.
func (w *window) take(t *reservation) {
	w.inFlight++
	t.inFlight = true
	w.refusals[t.endpoint].probe = t
	w.byPriority[t.countedAs]++
	w.spend(t.caller, 1)
	if p := w.pool; p != nil && len(p.credits) > 0 {
		t.credit, p.credits = p.credits[0], p.credits[1:]
	} else if p != nil {
		p.uncredited++
	}
}

// land records that a call is no longer in flight.
func (w *window) land(t *reservation) {
	w.inFlight--
	t.inFlight = false
	if r := &w.refusals[t.endpoint]; r.probe == t {
		r.probe = nil
	}
}

// end records that the call of t and the further calls of its read have ended. An ended call counts for another span. But
// a refused call under a shared limit does not: after the loss of a ledger there can be many, and they would fill the next one for
// a minute. Another refused call counts as a refresh, because it gave its kind of data nothing. Further calls that still wait stay
// in the queue.
func (w *window) end(t *reservation, now time.Time) {
	read := cmp.Or(t.first, t)
	refused := t.inFlight && read.refusedCalls > 0
	if refused {
		read.refusedCalls--
		w.byPriority[t.countedAs]--
		t.countedAs = upstream.PriorityRefresh
		w.byPriority[t.countedAs]++
	}
	if refused && w.pool != nil {
		w.giveBack(t)
	} else if t.inFlight {
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

// giveBack removes the call of a reservation from the window, because the venue does not count it.
func (w *window) giveBack(t *reservation) {
	w.land(t)
	w.byPriority[t.countedAs]--
	w.spend(t.caller, -1)
	if t.credit != "" {
		w.pool.Ledger.End(w.scope, nil, []string{t.credit})
	} else if w.pool != nil {
		w.pool.uncredited--
	}
}

func (w *window) nextCallTime(now time.Time) time.Time {
	d := w.departures(now)
	at := d.next()
	if w.cut > 0 {
		at = market.Earlier(at, w.halveCutAt)
	}
	return market.Later(market.Later(at, w.opensAt(now)), w.refusal.until)
}

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
