package app

import (
	"math"
	"sync/atomic"
	"time"

	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/ratelimit/spent"
	"oddsgraph/internal/venue"
)

// coldStart returns for how long the service starts cautiously, since calls of a process before may count: as long as the
// venue counts a call, and as long as that process may go on after it was told to stop. Nobody has used the demo venue of
// this process before.
func (s *App) coldStart(cfg *config.Config) time.Duration {
	if s.Demo != nil {
		return 0
	}
	return time.Minute + time.Second + cfg.DrainDelay + cfg.ShutdownTimeout
}

// newRecord returns the record of the calls to a venue, nil where there is none.
func (s *App) newRecord(cfg *config.Config, clock market.Clock) *spent.Record {
	if s.Demo != nil || cfg.Venue.PublicPerMinute == 0 || cfg.StateDir == "" || cfg.StateDir == config.Off {
		return nil
	}
	return spent.New(spent.Config{
		Dir: cfg.StateDir, Venue: cfg.Venue.URL, Limit: cfg.Venue.PublicPerMinute, Cold: s.coldStart(cfg), Clock: clock, Log: s.log,
	})
}

// startBudget tells the budget what may have been spent before.
func (s *App) startBudget(cold time.Duration, clock market.Clock) {
	if s.budget == nil || cold == 0 {
		return
	}
	until := clock.Now().Add(cold)
	s.budget.Inherit(ratelimit.Unsure, nil, until)
	if s.record != nil {
		s.record.Open(s.budget.Inherit)
		return
	}
	s.log.Info("nobody knows what was spent of the venue's limit before; only the reserve is spent for a while, or until the venue says how many calls remain. --state-dir (ODDSGRAPH_STATE_DIR) records them",
		"until", until.Round(time.Second))
}

// newBudget returns the budget of a venue, nil where it takes any number of requests. record may be nil.
func newBudget(v config.Venue, clock market.Clock, record *spent.Record) *ratelimit.Budget {
	if v.PublicPerMinute == 0 && v.KeyPerMinute == 0 {
		return nil
	}
	limit := func(perMinute int) int {
		if perMinute == 0 {
			return math.MaxInt32
		}
		return perMinute
	}
	cfg := ratelimit.Config{Public: limit(v.PublicPerMinute), Key: limit(v.KeyPerMinute), Clock: clock}
	if record != nil {
		cfg.Record = record
	}
	return ratelimit.New(cfg)
}

// retries is a number of retries as the client of the venue takes it, to whom 0 is its default.
func retries(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// credentialsMode says how credentials reach the venue. Without a choice they stay out of its URLs where the venue is known to
// read them from the header, which only the ordinary demo venue is.
func credentialsMode(cfg *config.Config) string {
	switch {
	case cfg.Venue.Credentials != config.Auto:
		return cfg.Venue.Credentials
	case cfg.Venue.URL == "" && !cfg.Demo.Strict:
		return venue.CredentialsHeader
	}
	return venue.CredentialsQuery
}

// venueConfig says how the venue is asked.
func (s *App) venueConfig(cfg *config.Config, url string, clock market.Clock) venue.Config {
	names := cfg.Venue.Parameters.Names()
	return venue.Config{
		BaseURL: url, CredentialsMode: credentialsMode(cfg), Timeout: cfg.Venue.Timeout, MaxBody: int64(cfg.Venue.MaxBody),
		MaxIDs: cfg.Venue.Batch, MaxURL: int(cfg.Venue.MaxURL), Names: venue.DetailNames{
			ID: names["id"], IDs: names["ids"], Slug: names["slug"], TokenID: names["tokenId"], TokenIDs: names["tokenIds"],
		}, Retries: retries(cfg.Venue.Retries), UserAgent: "oddsgraph/" + BuildVersion(), Clock: clock, Observer: s, Log: s.log,
	}
}

// Call counts a call to the venue and remembers whether it was answered.
func (s *App) Call(endpoint string, keys, status int, outcome string, elapsed time.Duration) {
	if s.Metrics != nil {
		s.Metrics.Call(endpoint, keys, status, outcome, elapsed)
	}
	s.readiness.note(endpoint, status, outcome, s.clock.Now())
	if outcome != market.ExchangeCancelled {
		s.reach.note(status)
	}
}

// Drift counts a part of the venue's answer that could not be used.
func (s *App) Drift(endpoint, what string) {
	if s.Metrics != nil {
		s.Metrics.Drift(endpoint, what)
	}
}

// lostAfter is how many calls in a row have to fail before the venue counts as out of reach: one proves nothing.
const lostAfter = 3

// reach remembers how many calls to the venue have failed since it answered one. Its zero value says that it answers.
type reach struct{ failed atomic.Uint64 }

func (r *reach) note(status int) {
	if status == 0 || status >= 500 {
		r.failed.Add(1)
	} else {
		r.failed.Store(0)
	}
}

func (r *reach) ok() bool { return r.failed.Load() < lostAfter }
