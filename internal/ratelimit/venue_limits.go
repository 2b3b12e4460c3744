package ratelimit

import (
	"time"

	"oddsgraph/internal/market"
)

// observe applies the rate-limit headers of a response.
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
		// The venue counts the calls of all processes that share the limit. Together, these processes leave the margin unused. So if
		// fewer calls than the margin remain, another program also uses the limit.
		if remaining < w.margin {
			w.pause(now.Add(askEvery), now)
		}
	case now.Before(w.cold):
		w.settleCold(limit, remaining, reset, now)
	default:
		w.probe = time.Time{}
		// foreign is the number of calls that the venue has counted, but that this window does not contain. While calls are in flight,
		// foreign may be too small. The window already contains these calls, but the venue may not have counted them yet.
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
// (patience). A 429 means that the venue allows fewer calls than expected. So if the window is not blocked yet, throttle also
// lowers the limit by a tenth. Two spans after the last 429, expire begins to halve the reduction (cut) once in each span.
func (w *window) throttle(until, now time.Time) {
	w.expire(now)
	if !w.throttled.After(now) {
		w.cut = min(w.cut+max(w.limit/10, 1), w.ceiling-1)
	}
	w.mend = now.Add(2 * w.span)
	until = market.Earlier(until, now.Add(patience))
	w.pause(until, now)
	if w.pool != nil {
		w.pool.Ledger.Hold(w.scope, until)
	}
	w.relimit()
	w.settle(now)
}

// throttledFor returns the total duration for which the window has been blocked; see pause.
func (w *window) throttledFor(now time.Time) time.Duration {
	return w.before + max(market.Earlier(now, w.throttled).Sub(w.since), 0)
}
