package app

import (
	"sync"
	"time"

	"oddsgraph/internal/upstream"
)

// health is what the outcome of calls says about the venue. It is the rest.Observer of the driver.
type health struct {
	process
	// answered is closed at the venue's first answer, by once.
	answered chan struct{}
	once     sync.Once

	reach  reach
	outage *outage
	clocks *clocks
}

// Call implements rest.Observer. It counts a call, and records whether the venue has answered it.
func (h *health) Call(c upstream.HTTPCall, failure error) {
	if h.Metrics != nil {
		h.Metrics.Call(c.Endpoint, c.Keys, c.Status, c.Outcome, c.Elapsed)
	}
	answered := c.Outcome != upstream.CallCancelled && h.reach.note(c.Status, h.clock.Now())
	if answered {
		h.noteAnswer()
	}
	if !c.Date.IsZero() {
		h.clocks.measured(clockVenue, c.Started, c.Started.Add(c.Elapsed), c.Date, c.Date.Add(time.Second))
	}
	if failure != nil {
		h.outage.failed(c.Endpoint, failure)
	} else if answered {
		h.outage.answered(c.Endpoint)
	}
}

func (h *health) noteAnswer() { h.once.Do(func() { close(h.answered) }) }

// hasAnswered reports whether the venue has answered a call.
func (h *health) hasAnswered() bool {
	select {
	case <-h.answered:
		return true
	default:
		return false
	}
}

// Drift implements rest.Observer. It counts a part of a response that could not be read.
func (h *health) Drift(endpoint, what string) {
	if h.Metrics != nil {
		h.Metrics.Drift(endpoint, what)
	}
}

// failureThreshold is the number of consecutive failures after which the venue counts as unreachable.
const failureThreshold = 3

// reach counts consecutive failed calls: calls without a response or with a status of at least 500.
type reach struct {
	mu     sync.Mutex
	failed int
	first  time.Time // time of the first of the failed calls
}

func (r *reach) note(status int, now time.Time) (answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answered = status > 0 && status < 500; answered {
		r.failed = 0
		return true
	}
	if r.failed++; r.failed == 1 {
		r.first = now
	}
	return false
}

func (r *reach) ok() bool { return r.since().IsZero() }

// since returns the time since which the venue counts as unreachable, or the zero time.
func (r *reach) since() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed < failureThreshold {
		return time.Time{}
	}
	return r.first
}
