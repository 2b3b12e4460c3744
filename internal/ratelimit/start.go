package ratelimit

import (
	"slices"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// Standing says how much of the public calls this process may make, given what is known of other processes.
type Standing int

const (
	// Alone is for a process that knows every call that still counts.
	Alone Standing = iota
	// Unsure is for a process that does not. It makes no more calls than the reserve until they cease to count, or until
	// the venue says how many remain.
	Unsure
	// Second is for a process beside another one that makes the calls. It has the reserve, whatever the venue says.
	Second
	// Third is for a process beside one that makes the calls and one that has the reserve. It makes none.
	Third
)

// Spent are calls that other processes made.
type Spent struct {
	Calls int
	// At is the latest time at which they may have reached the venue.
	At time.Time
}

// Record notes public calls where the next process finds them. It must be safe for concurrent use.
type Record interface {
	// Take notes a call that is about to be sent. It may wait for a disk.
	Take()
	// End notes that a call has ended. It must not wait.
	End()
}

// Inherit takes in what is known of other processes. It replaces the standing of the public calls and adds to those that
// count. until is when an Unsure, Second or Third standing ends; calling Inherit again renews it. Nobody knows what others
// spend of credentials, so until then each window of credentials begins with its reserve, whatever comes later.
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

// withhold leaves all but some calls to other processes until a time.
func (w *window) withhold(reserve int, until time.Time) {
	w.withheld, w.reserve, w.cold, w.foreignUntil = true, reserve, until, until
	w.relimit()
}

// load adds calls of other processes to the log. They belong to no caller, and to the priority that has no share.
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

// settleCold takes in how many calls the venue says remain while calls of other processes may count that are not known.
// Answers may overtake each other, so the least number holds that was said while calls were under way: the venue has counted
// all calls that are answered by then. Those that are not answered may come on top. The reserve is left in any case.
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
