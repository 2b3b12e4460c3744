package app

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
	"oddsgraph/loaders"
)

// startWait is how long a new process waits for the venue's first answer, and for the first probe, before it is ready.
const startWait = 5 * time.Second

// Ready returns an error while this process must not get requests: during the shutdown, and after the start until the venue has
// answered, for at most startWait. One of several venues is enough. A venue or Redis that fails later makes no process unready, because
// all processes share them. Ready never waits. The first call of Ready makes firstCall ask the venues.
func (s *App) Ready() error {
	err := s.state()
	if errors.Is(err, httpapi.ErrStarting) {
		for _, u := range s.Venues {
			select {
			case u.asked <- struct{}{}:
			default:
			}
		}
	}
	return err
}

// state returns the result of Ready, but does not ask the venue.
func (s *App) state() error {
	switch {
	case s.draining.Load():
		return httpapi.ErrDraining
	case !slices.ContainsFunc(s.Venues, (*unit).ready):
		return httpapi.ErrStarting
	}
	return nil
}

// ready reports whether the venue has answered, or had startWait to do so.
func (u *unit) ready() bool {
	return u.health.hasAnswered() || u.clock.Now().Sub(u.started) >= startWait
}

// probeBackoff is the wait until a venue is probed again that could not show how it is asked.
var probeBackoff = market.Backoff{Min: time.Second, Max: 5 * time.Minute}

// probe lets the driver find out how its venue is asked. It begins after the venue's first answer, because few calls may be in flight
// before, but at most startWait after the start. It returns when nothing more can be found out, or when ctx ends.
func (u *unit) probe(ctx context.Context) {
	select {
	case <-u.health.answered:
	case <-time.After(startWait):
	case <-ctx.Done():
		return
	}
	driver, _ := u.Client.(venue.Prober)
	for attempt := 1; driver != nil && driver.Undecided(); attempt++ {
		err := driver.Probe(ctx, u.admitted)
		if err == nil {
			return
		}
		wait := probeBackoff.Wait(attempt, rand.Float64())
		u.log.Debug("the venue did not show how it is asked", "error", err, "again_in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// admitted implements upstream.Admit. It calls read after all reads that somebody waits for.
func (u *unit) admitted(ctx context.Context, e upstream.Endpoint, read func(context.Context, upstream.Call) error) error {
	if u.budget == nil {
		return read(ctx, upstream.Call{})
	}
	r := u.budget.Reserve(upstream.CallRequest{Priority: upstream.PriorityRefresh, Endpoint: e})
	defer r.Release(false)
	select {
	case <-r.Decided():
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := r.Err(); err != nil {
		return err
	}
	return read(ctx, upstream.Call{Permit: r})
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
		_, _ = set.Search(u.name, queries.Search{Sort: queries.SortRelevance, Direction: queries.Descending, Limit: 1})
	})
}

// impairment returns a text for operators that says what fails although the process is ready. With several venues, each line about a
// venue begins with its name. It returns "" if nothing fails.
func (s *App) impairment() string {
	var faults []string
	for _, u := range s.Venues {
		faults = append(faults, u.impairments()...)
	}
	if f := s.Files.Questions; f != nil && f.Status().Err != nil {
		faults = append(faults, "the earlier questions stay in use: "+f.Status().Err.Error())
	}
	return strings.Join(faults, "\n")
}

// impairments returns the lines of App.impairment for a venue: one for the venue and one for Redis.
func (u *unit) impairments() (faults []string) {
	of := ""
	if len(u.names) > 0 {
		of = title(u.cfg) + ": "
	}
	if since := u.health.reach.since(); !since.IsZero() {
		faults = append(faults, of+"the venue has not answered since "+since.UTC().Format(time.RFC3339))
	}
	if u.fleet != nil {
		if link := u.fleet.Stats(); !link.Connected {
			faults = append(faults, of+strings.TrimSuffix("nothing is shared with other replicas: "+link.LastError, ": "))
		}
	}
	return faults
}

// Status returns the value of the GraphQL field serviceStatus.
func (s *App) Status(context.Context) model.ServiceStatus {
	var status model.ServiceStatus
	venues, demo := make([]model.ServiceVenue, len(s.Venues)), true
	for i, u := range slices.Backward(s.Venues) { // at the end, status is that of the first venue
		status, demo = u.status(), demo && u.demo != nil
		venues[i] = model.ServiceVenue{
			Name: title(u.cfg), Currency: status.Currency, Demo: u.demo != nil, Stream: status.Stream, UpstreamReachable: status.UpstreamReachable,
			ThrottledUntil: status.ThrottledUntil, Shared: status.Shared, Status: *status.Venue,
		}
	}
	status.Version, status.Demo, status.Venues = BuildVersion(), demo, venues
	status.Questions = s.Files.Questions.status()
	return status
}
