package app

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// outage writes the log lines of an outage of the venue: one for the first failed call, one in each minute in which calls fail, and
// one when a call succeeds to an endpoint that has failed. For a minute after this last line, the beginning of a further outage has
// no line of its own, so an endpoint whose calls fail now and then causes few lines. outage is safe for concurrent use.
type outage struct {
	log *slog.Logger

	// mu guards the fields below. warn and end are called with it held.
	mu sync.Mutex
	// failing are the endpoints that have failed since the outage began. It is empty while there is no outage.
	failing map[string]bool
	since   time.Time
	// told reports whether the log has a line about this outage. The next outage is not told before quiet.
	told  bool
	quiet time.Time
	// untold is the number of failed calls since the last line. total is the number in this outage.
	untold, total int
	reason        error
	minute        *time.Timer
}

func newOutage(log *slog.Logger) *outage { return &outage{log: log, failing: map[string]bool{}} }

func (o *outage) failed(endpoint string, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if len(o.failing) == 0 {
		o.since, o.total = now, 0
		o.minute = time.AfterFunc(time.Minute, o.tell)
	}
	o.failing[endpoint], o.reason = true, reason
	o.untold++
	o.total++
	if !o.told && !now.Before(o.quiet) {
		o.warn("a call to the venue has failed")
	}
}

func (o *outage) answered(endpoint string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.failing[endpoint] {
		return
	}
	if o.told {
		o.log.Info("the venue answers again", "endpoint", endpoint, "since", o.since, "lasted", time.Since(o.since).Round(time.Millisecond), "failed", o.total)
		o.quiet = time.Now().Add(time.Minute)
	}
	o.end()
}

func (o *outage) tell() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.failing) == 0 {
		return
	}
	if o.untold > 0 {
		o.warn("calls to the venue fail")
	}
	o.minute.Reset(time.Minute)
}

func (o *outage) warn(message string) {
	endpoints := strings.Join(slices.Sorted(maps.Keys(o.failing)), " ")
	o.log.Warn(message, "endpoint", endpoints, "reason", o.reason, "since", o.since, "failed", o.untold)
	o.told, o.untold = true, 0
}

func (o *outage) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
}

func (o *outage) end() {
	clear(o.failing)
	o.told = false
	if o.minute != nil {
		o.minute.Stop()
	}
}
