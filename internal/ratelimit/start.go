package ratelimit

import (
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// Standing is how much of the public limit this process may use, given other processes.
type Standing int

const (
	// Alone is the standing of a process that knows every call that still counts.
	Alone Standing = iota
	// Unsure is the standing of a process that does not know every such call. It uses only the reserve until those calls have
	// left the window, or until the venue reports how many calls remain.
	Unsure
	// Second is the standing of a process beside another process that makes the calls. It uses only the reserve.
	Second
	// Third is the standing of a process beside one that makes the calls and one that uses the reserve. It makes no calls.
	Third
)

// Spent are calls that other processes made.
type Spent struct {
	Calls int
	// At is the latest time at which they may have reached the venue.
	At time.Time
}

// Record records public calls for the next process. It must be safe for concurrent use.
type Record interface {
	// Take records a call before it is sent. It may wait for a disk.
	Take()
	// End records the end of a call. It must not wait.
	End()
}

// Inherit sets the standing of this process and adds spent to the public window. An Unsure, Second or Third standing ends at
// until; another Inherit renews it. The calls that other processes make with credentials are unknown, so every window of
// credentials that is opened before until starts with its reserve alone, whatever later calls of Inherit say.
func (b *Budget) Inherit(standing Standing, spent []Spent, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, w := b.clock.Now(), b.public
	w.load(spent)
	w.expire(now)
	if standing != Alone {
		b.cold = later(b.cold, until)
	}
	switch standing {
	case Alone:
		w.guest, w.withheld, w.foreign, w.cold = false, false, 0, time.Time{}
	case Unsure:
		w.guest = false
		w.withhold(w.margin, until)
	case Second:
		w.guest = true
		w.withhold(w.margin, until)
	case Third:
		w.guest = true
		w.withhold(0, until)
	}
	if !b.closed {
		w.settle(now)
	}
}

// withhold leaves all but reserve calls to other processes until a time.
func (w *window) withhold(reserve int, until time.Time) {
	w.withheld, w.reserve, w.cold, w.foreignUntil = true, reserve, until, until
	w.relimit()
}

// load adds calls of other processes to the log. They belong to no caller. They have the lowest priority, which has no floor.
func (w *window) load(spent []Spent) {
	for _, s := range spent {
		for range min(s.Calls, w.ceiling+w.margin) {
			w.ended = append(w.ended, callRecord{until: s.At.Add(span), priority: reqctx.PriorityRefresh})
			w.byPriority[reqctx.PriorityRefresh]++
		}
	}
	slices.SortStableFunc(w.ended, func(a, b callRecord) int { return a.until.Compare(b.until) })
	w.stale = true
}

// settleCold applies the remaining calls that the venue reports while unknown calls of other processes may count. Answers may
// overtake each other, so the smallest reported number counts: it includes all answered calls. Calls without an answer may not
// be included. The reserve stays usable in any case.
func (w *window) settleCold(limit, remaining int, reset, now time.Time) {
	w.lowest = min(w.lowest, remaining)
	unanswered := max(w.flying-1, 0)
	w.withheld = false
	w.foreign = min(max(limit-w.lowest-(w.used()-unanswered), 0), max(w.limit-w.margin, 0))
	w.foreignUntil, w.probe, w.stale = now.Add(span), reset, true
	if !reset.After(now) {
		w.probe = time.Time{}
	}
}
