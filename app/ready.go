package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/internal/market/queries"
	"oddsgraph/loaders"
)

// startWait is how long a new process waits for the venue's first answer before it is ready.
const startWait = 5 * time.Second

// Ready returns an error while this process must not get requests: during the shutdown, and after the start until the venue has
// answered, for at most startWait. A venue or Redis that fails later makes no process unready, because all processes share them.
// Ready never waits. The first call of Ready makes firstCall ask the venue.
func (s *App) Ready() error {
	err := s.state()
	if errors.Is(err, httpapi.ErrStarting) {
		select {
		case s.Venue.asked <- struct{}{}:
		default:
		}
	}
	return err
}

// state returns the result of Ready, but does not ask the venue.
func (s *App) state() error {
	switch {
	case s.draining.Load():
		return httpapi.ErrDraining
	case !s.Venue.ready():
		return httpapi.ErrStarting
	}
	return nil
}

// ready reports whether the venue has answered, or had startWait to do so.
func (u *unit) ready() bool {
	return u.health.answered.Load() || u.clock.Now().Sub(u.started) >= startWait
}

// firstCall waits until Ready needs an answer of the venue, and then searches once. It returns when ctx ends, or startWait after the
// search began.
func (u *unit) firstCall(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-u.asked:
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	loaders.Read(ctx, Sources(u.Cache, 0), func(set *loaders.Set) {
		_, _ = set.Search(queries.Search{Sort: queries.SortRelevance, Direction: queries.Descending, Limit: 1})
	})
}

// impairment returns a text for operators that says what fails although the process is ready, with a line for the venue and a line
// for Redis. It returns "" if nothing fails.
func (u *unit) impairment() string {
	var faults []string
	if since := u.health.reach.since(); !since.IsZero() {
		faults = append(faults, "the venue has not answered since "+since.UTC().Format(time.RFC3339))
	}
	if u.fleet != nil {
		if link := u.fleet.Stats(); !link.Connected {
			faults = append(faults, strings.TrimSuffix("nothing is shared with other replicas: "+link.LastError, ": "))
		}
	}
	return strings.Join(faults, "\n")
}

// Status returns the value of the GraphQL field serviceStatus.
func (s *App) Status(context.Context) model.ServiceStatus {
	status := s.Venue.status()
	status.Version, status.Demo = BuildVersion(), s.Demo != nil
	return status
}
