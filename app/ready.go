package app

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/loaders"
)

const (
	// knownFor is how long the service stays ready after the venue's last answer to a public call. If the venue fails in that
	// time, the service serves stale values.
	knownFor = 5 * time.Minute
	// probeEvery is the minimum time between a failed probe of the venue and the next probe.
	probeEvery = 5 * time.Second
)

// readiness records when a public endpoint of the venue last answered. Every public endpoint counts, because venues have different
// endpoints.
type readiness struct {
	mu         sync.Mutex
	answeredAt time.Time
	probedAt   time.Time // time of the last probe
	failure    error     // error of the last probe
}

// publicEndpoints are the names of the endpoints without credentials.
var publicEndpoints = func() map[string]bool {
	names := map[string]bool{}
	for e := reqctx.EndpointPrices; !e.User(); e++ {
		names[e.String()] = true
	}
	return names
}()

// note sets r.answeredAt if a public endpoint of the venue has answered the call. The statuses 400 and 422 count as an answer,
// because a refused parameter proves that the endpoint exists. The status 404 does not count, because the base URL may be wrong.
func (r *readiness) note(endpoint string, status int, outcome string, now time.Time) {
	refused := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	if !publicEndpoints[endpoint] || outcome != reqctx.OutcomeOK && !refused {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answeredAt = now
}

// Ready returns an error during the shutdown. It also returns an error if the venue has not answered within knownFor and a probe of
// the venue fails.
func (s *App) Ready(ctx context.Context) error {
	if s.draining.Load() {
		return httpapi.ErrDraining
	}
	return s.readiness.check(s.clock, func() error { return s.probe(ctx) })
}

// impairment returns a text for operators while Redis is configured but not reachable, and "" in all other cases.
func (s *App) impairment() string {
	if s.fleet == nil {
		return ""
	}
	if link := s.fleet.Stats(); !link.Connected {
		return strings.TrimSuffix("nothing is shared with other replicas: "+link.LastError, ": ")
	}
	return ""
}

// check calls probe if the venue has not answered within knownFor. After a failed probe it returns the error of this probe until
// probeEvery has passed. If readiness.note has recorded an answer during a failed probe, check returns nil.
func (r *readiness) check(clock market.Clock, probe func() error) error {
	answeredRecently := func(now time.Time) bool { return !r.answeredAt.IsZero() && now.Sub(r.answeredAt) < knownFor }
	now := clock.Now()
	r.mu.Lock()
	if answeredRecently(now) {
		r.mu.Unlock()
		return nil
	}
	if r.failure != nil && now.Sub(r.probedAt) < probeEvery {
		defer r.mu.Unlock()
		return r.failure
	}
	r.mu.Unlock()
	err := probe()
	r.mu.Lock()
	defer r.mu.Unlock()
	if answeredRecently(clock.Now()) {
		err = nil
	}
	r.probedAt, r.failure = now, err
	return err
}

// probeTokens are the token ids of a probe. The tokens do not have to exist, because an empty list also counts as an answer.
var probeTokens = []string{"0", "1"}

// probe sends a search to the venue and returns the error of the search. If the search fails, probe also requests prices. If the
// venue answers this request, App.Call records the answer, and check returns nil although the search failed.
func (s *App) probe(ctx context.Context) (err error) {
	loaders.Read(ctx, Sources(s.Cache, 0), func(set *loaders.Set) {
		_, err = set.Search(queries.Search{Sort: queries.SortRelevance, Direction: queries.Descending, Limit: 1})
	})
	if err != nil {
		s.Cache.Prices().Fetch(ctx, probeTokens)
	}
	return err
}
