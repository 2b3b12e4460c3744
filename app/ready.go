package app

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/market/queries"
	"oddsgraph/loaders"
)

// startWait is how long a new process waits for the venue's first answer before it is ready.
const startWait = 5 * time.Second

type readiness struct {
	answered atomic.Bool
	// asked is closed at the first call of Ready before the venue has answered.
	asked chan struct{}
	once  sync.Once
}

// Ready returns an error while this process must not get requests: during the shutdown, and after the start until the venue has
// answered, for at most startWait. A venue or Redis that fails later makes no process unready, because all processes share them.
// Ready never waits. The first call of Ready makes firstCall ask the venue.
func (s *App) Ready() error {
	err := s.state()
	if errors.Is(err, httpapi.ErrStarting) {
		s.readiness.once.Do(func() { close(s.readiness.asked) })
	}
	return err
}

// state returns the result of Ready, but does not ask the venue.
func (s *App) state() error {
	switch {
	case s.draining.Load():
		return httpapi.ErrDraining
	case s.Demo != nil || s.readiness.answered.Load() || s.clock.Now().Sub(s.started) >= startWait:
		return nil
	}
	return httpapi.ErrStarting
}

// firstCall waits until Ready needs an answer of the venue, and then searches once. It returns when ctx ends, or startWait after the
// search began.
func (s *App) firstCall(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.readiness.asked:
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	loaders.Read(ctx, Sources(s.Cache, 0), func(set *loaders.Set) {
		_, _ = set.Search(queries.Search{Sort: queries.SortRelevance, Direction: queries.Descending, Limit: 1})
	})
}

// impairment returns a text for operators that says what fails although the process is ready, with a line for the venue and a line
// for Redis. It returns "" if nothing fails.
func (s *App) impairment() string {
	var faults []string
	if since := s.reach.since(); !since.IsZero() {
		faults = append(faults, "the venue has not answered since "+since.UTC().Format(time.RFC3339))
	}
	if s.fleet != nil {
		if link := s.fleet.Stats(); !link.Connected {
			faults = append(faults, strings.TrimSuffix("nothing is shared with other replicas: "+link.LastError, ": "))
		}
	}
	return strings.Join(faults, "\n")
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
