package ratelimit

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// patience is the longest time for which a 429 of the venue can pause calls.
const patience = 5 * time.Minute

// pauses is the length of a pause after a 429 that does not say how long to wait. A window that an earlier process has used up
// refuses at most six calls until it is free again.
var pauses = market.Backoff{Min: 5 * time.Second, Max: time.Minute}

// refusal is the state of a window or endpoint whose calls the venue has refused with 429. It sends no calls until the time until,
// and then one call at a time until the venue answers. row is the number of refusals since its last answer, and last is the time of
// the last of them.
type refusal struct {
	until, last time.Time
	row         int
	probe       *reservation // the call of an endpoint that is in flight
}

// note counts a 429 for a call that was sent after the last 429. Other calls were already in flight at that time.
func (r *refusal) note(sent, now time.Time) {
	if sent.After(r.last) {
		r.row, r.last = r.row+1, now
	}
}

func (w *window) allow(t *reservation, now time.Time) bool {
	r := &w.refusals[t.endpoint]
	return !r.until.After(now) && (r.row == 0 || r.probe == nil)
}

// answer records that the venue has answered a call to an endpoint. The answer to a call that was sent before a 429 does not end
// the caution after it. Neither does any answer while the window counts as used up, because the calls of an earlier process do not
// really leave evenly.
func (w *window) answer(e upstream.Endpoint, sent time.Time) {
	w.answered[e] = market.Later(w.answered[e], sent)
	if sent.After(w.refusals[e].last) {
		w.refusals[e] = refusal{}
	}
	switch {
	case !sent.After(w.refusal.last):
	case !w.others.assumed:
		w.refusal.row, w.maxInFlight = 0, 0
	case !w.usedUp:
		w.maxInFlight = unproven + len(w.ended)*w.limit/provenBy
	}
}

// refused records a 429 of the venue for a call to an endpoint; sent is the time at which the call was sent. wait is the time that
// the venue asks for, or 0.
//
// The endpoint pauses for this time, but for at most five minutes (patience). The rest of the window pauses with it, but for at most
// one span. If the endpoint is refused again and another endpoint has answered since, the limit is not the window's, and the rest
// of the window does not pause. After a pause one call at a time is sent until the venue answers. While calls are assumed, the pause
// is at least as long as without Retry-After, because that header may only be true for a single call.
func (w *window) refused(e upstream.Endpoint, sent time.Time, wait time.Duration, now time.Time) {
	r, whole := &w.refusals[e], true
	for other, at := range w.answered {
		if r.row > 0 && upstream.Endpoint(other) != e && at.After(r.last) {
			whole = false
		}
	}
	r.note(sent, now)
	row := r.row
	if whole {
		w.refusal.note(sent, now)
		row = max(row, w.refusal.row)
	}
	if wait <= 0 || whole && w.others.assumed {
		wait = max(wait, pauses.Wait(row, w.budget.cfg.Rand()))
	}
	wait = min(wait, patience)
	r.until = market.Later(r.until, now.Add(wait))
	if whole {
		w.pauseAfterRefusal(now.Add(min(wait, w.span)), now)
	}
}

// pauseAfterRefusal pauses the window. A 429 means that the venue allows fewer calls than expected, so the limit is lowered by a
// tenth, at most once in a span. Two spans after the last 429, expire begins to halve the reduction (the field cut) once in each
// span. A 429 in the first period means that an earlier process has used up the limit.
func (w *window) pauseAfterRefusal(until, now time.Time) {
	if !now.Before(w.cutAt.Add(w.span)) {
		w.cut, w.cutAt = min(w.cut+max(w.limit/10, 1), w.ceiling-1), now
	}
	w.halveCutAt = now.Add(2 * w.span)
	w.relimit()
	w.pause(until, now)
	w.maxInFlight = 1
	switch b := w.budget; {
	case w.pool != nil:
		w.pool.Ledger.Hold(w.scope, until)
	case !b.cfg.Fresh && !w.usedUp && now.Before(b.opened.Add(w.span)):
		w.usedUp, w.others = true, evenly(w.limit-w.used(), w.refusal.until, w.span, true)
	}
}

// pause stops all calls of the window at least until the given time.
func (w *window) pause(until, now time.Time) {
	w.paused += max(until.Sub(market.Later(w.refusal.until, now)), 0)
	w.refusal.until = market.Later(w.refusal.until, until)
}

func (w *window) report(a *upstream.Answer, now time.Time) {
	usable := Usable(a.Limit)
	if a.Limit > 0 && usable != w.venueLimit {
		w.venueLimit = usable
		if w.relimit(); w.others.assumed && !w.usedUp && w.pool == nil {
			w.assume()
		}
	}
	switch {
	case a.Limit <= 0 || a.Remaining < 0:
	case w.pool != nil:
		// The venue counts the calls of all processes that share the limit. Together, these processes leave the margin unused. So if
		// fewer calls than the margin remain, another program also uses the limit.
		if a.Remaining < a.Limit-usable {
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
