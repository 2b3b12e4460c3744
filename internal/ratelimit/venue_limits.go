package ratelimit

import (
	"time"

	"oddsgraph/internal/market"
)

// observe applies the rate-limit headers of a response.
func (w *window) observe(limit, remaining int, reset, now time.Time) {
	w.expire(now)
	if limit > 0 {
		if told := Usable(limit); told != w.venueLimit {
			w.venueLimit, w.margin = told, min(w.margin, limit-told)
			w.relimit()
		}
	}
	switch {
	case limit <= 0 || remaining < 0 || w.ignoresRemaining:
	case w.pool != nil:
		// The venue counts the calls of all processes that share the limit. Together, these processes leave the margin unused. So if
		// fewer calls than the margin remain, another program also uses the limit.
		if remaining < w.margin {
			w.block(now.Add(askEvery), now)
		}
	case now.Before(w.coldUntil):
		w.observeCold(limit, remaining, reset, now)
	default:
		w.probeAt = time.Time{}
		// foreign is the number of calls that the venue has counted and this window does not contain. While calls are in flight, foreign
		// may be too small, because the venue may not have counted these calls yet.
		w.foreign = max(limit-remaining-w.used(), 0)
		w.foreignUntil = now.Add(w.span)
		if !reset.IsZero() && reset.Before(w.foreignUntil) {
			w.foreignUntil = reset
		}
		w.stale = true
	}
	w.settle(now)
}

// throttle blocks the window after a 429 of the venue. The window is blocked until the given time, but for at most five minutes
// (patience). A 429 means that the venue allows fewer calls than expected. So throttle also lowers the limit by a tenth, unless the
// window is blocked already. Two spans after the last 429, expire begins to halve the reduction (the field cut) once in each span.
func (w *window) throttle(until, now time.Time) {
	w.expire(now)
	if !w.throttledUntil.After(now) {
		w.cut = min(w.cut+max(w.limit/10, 1), w.ceiling-1)
	}
	w.halveCutAt = now.Add(2 * w.span)
	until = market.Earlier(until, now.Add(patience))
	w.block(until, now)
	if w.pool != nil {
		w.pool.Ledger.Hold(w.scope, until)
	}
	w.relimit()
	w.settle(now)
}

// throttledFor returns the total duration for which the window has been blocked; see block.
func (w *window) throttledFor(now time.Time) time.Duration {
	return w.earlierThrottling + max(market.Earlier(now, w.throttledUntil).Sub(w.throttledSince), 0)
}
