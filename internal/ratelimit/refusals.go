package ratelimit

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// patience is the longest time for which a 429 of the venue can pause calls.
const patience = 5 * time.Minute

// pauses is the length of a pause after a 429 that does not say how long to wait. A window that an earlier process has used up
// refuses at most six calls until it is free again.
var pauses = market.Backoff{Min: 5 * time.Second, Max: time.Minute}

// refusals is what a window remembers of the calls that the venue has refused with 429.
type refusals struct {
	// The window sends no calls until the time until. The pause began at since. earlier is the total duration of all earlier pauses.
	until, since time.Time
	earlier      time.Duration
	// row is the number of pauses since the venue last answered, and last is the time of the last 429 that began a pause.
	row  int
	last time.Time
	// counted reports that a 429 in the first period has made the window count as used up.
	counted bool

	// endpoints contains the endpoints whose last call was refused. answered is the time at which the last answered call of each
	// endpoint was sent.
	endpoints map[reqctx.Endpoint]*refusal
	answered  [reqctx.Endpoints]time.Time
}

// refusal is an endpoint whose last call was refused. It sends no calls until the time until, and then one call at a time until it
// has answered.
type refusal struct {
	until, last time.Time
	row         int // refusals in a row
	probe       *reservation
}

var notRefused refusal

// endpoint returns the refusal of an endpoint, which must not be changed.
func (r *refusals) endpoint(e reqctx.Endpoint) *refusal {
	if f := r.endpoints[e]; f != nil {
		return f
	}
	return &notRefused
}

// allow reports whether the endpoint of a reservation may be called now.
func (r *refusals) allow(t *reservation, now time.Time) bool {
	f := r.endpoint(t.endpoint)
	return !f.until.After(now) && f.probe == nil
}

// othersAnswered reports whether the venue has answered a call to another endpoint that was sent after the given time.
func (r *refusals) othersAnswered(e reqctx.Endpoint, after time.Time) bool {
	for other, sent := range r.answered {
		if reqctx.Endpoint(other) != e && sent.After(after) {
			return true
		}
	}
	return false
}

// answer records that the venue has answered a call to an endpoint. The answer to a call that was sent before a 429 does not end
// the caution after it.
func (w *window) answer(e reqctx.Endpoint, sent time.Time) {
	r := &w.refusals
	r.answered[e] = market.Later(r.answered[e], sent)
	if f := r.endpoints[e]; f != nil && sent.After(f.last) {
		delete(r.endpoints, e)
	}
	if sent.After(r.last) {
		r.row, w.maxInFlight = 0, 0
	}
}

// refused records a 429 of the venue for a call to an endpoint; sent is the time at which the call was sent. wait is the time that
// the venue asks for, or 0.
//
// The endpoint pauses for this time, but for at most five minutes (patience). The rest of the window pauses with it, but for at most
// one span. If the endpoint is refused again and another endpoint has answered since, the limit is not the window's, and the rest
// of the window does not pause. After a pause one call at a time is sent until the venue answers.
func (w *window) refused(e reqctx.Endpoint, sent time.Time, wait time.Duration, now time.Time) {
	w.expire(now)
	r := &w.refusals
	f := r.endpoints[e]
	if f == nil {
		f = &refusal{}
		if r.endpoints == nil {
			r.endpoints = make(map[reqctx.Endpoint]*refusal)
		}
		r.endpoints[e] = f
	}
	own := f.row > 0 && r.othersAnswered(e, f.last)
	if sent.After(f.last) {
		f.row, f.last = f.row+1, now
	}
	if !own && sent.After(r.last) {
		r.row, r.last = r.row+1, now
	}
	if wait <= 0 {
		row := f.row
		if !own {
			row = max(row, r.row)
		}
		wait = pauses.Wait(row, w.budget.cfg.Rand())
	}
	wait = min(wait, patience)
	f.until = market.Later(f.until, now.Add(wait))
	if !own {
		w.pauseAfterRefusal(now.Add(min(wait, w.span)), now)
	}
}

// pauseAfterRefusal pauses the window. A 429 means that the venue allows fewer calls than expected, so the limit is lowered by a
// tenth, unless the window pauses already. Two spans after the last 429, expire begins to halve the reduction (the field cut) once
// in each span. A 429 in the first period means that an earlier process has used up the limit.
func (w *window) pauseAfterRefusal(until, now time.Time) {
	if !w.refusals.until.After(now) {
		w.cut = min(w.cut+max(w.limit/10, 1), w.ceiling-1)
	}
	w.halveCutAt = now.Add(2 * w.span)
	w.relimit()
	w.pause(until, now)
	w.maxInFlight = 1
	switch b := w.budget; {
	case w.pool != nil:
		w.pool.Ledger.Hold(w.scope, until)
	case !b.cfg.Fresh && !w.refusals.counted && now.Before(b.opened.Add(w.span)):
		w.refusals.counted = true
		w.others = evenly(w.limit-w.used(), w.refusals.until, w.span, true)
	}
}

// pause stops all calls of the window at least until the given time.
func (w *window) pause(until, now time.Time) {
	r := &w.refusals
	if !r.until.After(now) {
		r.earlier, r.since = r.total(now), now
	}
	r.until = market.Later(r.until, until)
}

// total returns the total duration of all pauses of the window.
func (r *refusals) total(now time.Time) time.Duration {
	return r.earlier + max(market.Earlier(now, r.until).Sub(r.since), 0)
}

// report applies the rate-limit headers of a response.
func (w *window) report(a *reqctx.Answer, now time.Time) {
	w.expire(now)
	if a.Limit > 0 {
		if told := Usable(a.Limit); told != w.venueLimit {
			w.venueLimit, w.margin = told, min(w.margin, a.Limit-told)
			if w.relimit(); w.others.assumed && !w.refusals.counted {
				w.assume()
			}
		}
	}
	switch {
	case a.Limit <= 0 || a.Remaining < 0:
	case w.pool != nil:
		// The venue counts the calls of all processes that share the limit. Together, these processes leave the margin unused. So if
		// fewer calls than the margin remain, another program also uses the limit.
		if a.Remaining < w.margin {
			w.pause(now.Add(askEvery), now)
		}
	default:
		// While calls are in flight, the number may be too small, because the venue may not have counted these calls yet.
		w.others = evenly(min(a.Limit-a.Remaining, w.limit)-w.used(), now, w.span, false)
		if a.Reset.After(now) && a.Reset.Before(now.Add(w.span)) {
			w.others.from = a.Reset.Add(-w.others.step) // the first call leaves at the reset, and its answer says how many have
		}
	}
}
