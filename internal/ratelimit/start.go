package ratelimit

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Allowance says whether this process may use the whole public limit, only its margin, or nothing. Earlier processes and other
// running processes may have used the rest. The margin is the last twentieth of the limit; processes normally leave it unused.
type Allowance int

const (
	// AllowAll is the allowance of a process that knows all calls of the last minute. It may use the whole limit.
	AllowAll Allowance = iota
	// AllowMarginFirst is the allowance of a process that may not know all calls of the last minute. It uses only the margin until the
	// unknown calls have left the window, or until the venue reports how many calls remain.
	AllowMarginFirst
	// AllowMargin is the allowance of a process while one other process uses the limit. It uses only the margin.
	AllowMargin
	// AllowNone is the allowance of a process while one other process uses the limit and another process uses the margin. It makes
	// no calls.
	AllowNone
)

// Spent is a number of calls that other processes made.
type Spent struct {
	Calls int
	// At is the latest time at which the calls may have reached the venue.
	At time.Time
}

// Record records public calls for the next process. It must be safe for concurrent use.
type Record interface {
	// Take records a call before it is sent. It may wait for a disk.
	Take()
	// End records the end of a call. It must not wait.
	End()
}

// Inherit sets the allowance of this process and adds the calls in spent to the public window. All
// allowances except AllowAll end when the parameter until is reached, or with the next call of Inherit. One effect of AllowMargin
// and AllowNone lasts until the next call of Inherit: the process ignores the number of remaining calls in the venue's headers.
//
// No process records the calls that it makes with credentials. So unless the allowance is AllowAll, a window for credentials that
// is opened before until may use only its margin until then. Later calls of Inherit do not change that window.
func (b *Budget) Inherit(allowance Allowance, spent []Spent, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	b.public.load(spent)
	b.public.expire(now)
	if allowance != AllowAll {
		b.coldUntil = market.Later(b.coldUntil, until)
	}
	b.public.inherit(allowance, until, now)
	for _, w := range b.eachFamily() {
		end := until
		if allowance == AllowMarginFirst {
			end = market.Earlier(until, b.opened.Add(w.span+time.Second))
		}
		w.inherit(allowance, end, now)
	}
}

// inherit applies an allowance to the window; see Budget.Inherit.
func (w *window) inherit(allowance Allowance, until, now time.Time) {
	w.ignoresRemaining = allowance == AllowMargin || allowance == AllowNone
	switch {
	case allowance == AllowAll || !until.After(now):
		w.withheld, w.foreign, w.coldUntil = false, 0, time.Time{}
	case allowance == AllowNone:
		w.withhold(0, until)
	default:
		w.withhold(w.margin, until)
	}
	if !w.budget.closed {
		w.settle(now)
	}
}

// withhold limits the window to the given number of allowed calls until the given time.
func (w *window) withhold(allowed int, until time.Time) {
	w.withheld, w.allowedCalls, w.coldUntil, w.foreignUntil = true, allowed, until, until
	w.relimit()
}

// load adds calls of other processes to the log. These calls have no caller. They count as refreshes, so they do
// not lower the precedence of other priorities; see window.floor.
func (w *window) load(spent []Spent) {
	for _, s := range spent {
		for range min(s.Calls, w.ceiling+w.margin) {
			w.ended = append(w.ended, callRecord{until: s.At.Add(w.span), priority: reqctx.PriorityRefresh})
			w.byPriority[reqctx.PriorityRefresh]++
		}
	}
	slices.SortStableFunc(w.ended, func(a, b callRecord) int { return a.until.Compare(b.until) })
	w.stale = true
}

// observeCold estimates w.foreign, the number of calls of other processes in the window. It is called until the time w.coldUntil.
// w.foreign is the number of calls that the venue has counted minus the calls of this process. Responses may overtake each other,
// so observeCold uses the smallest number of remaining calls that the venue has reported. It subtracts only the calls of this
// process that have a response, because the venue may not have counted the calls in flight yet. w.foreign is at most the limit
// minus the margin, so the window always admits as many calls as the margin.
func (w *window) observeCold(limit, remaining int, reset, now time.Time) {
	w.lowestRemaining = min(w.lowestRemaining, remaining)
	unanswered := max(w.inFlight-1, 0)
	w.withheld = false
	w.foreign = min(max(limit-w.lowestRemaining-(w.used()-unanswered), 0), max(w.limit-w.margin, 0))
	w.foreignUntil, w.probeAt, w.stale = now.Add(w.span), reset, true
	if !reset.After(now) {
		w.probeAt = time.Time{}
	}
}
