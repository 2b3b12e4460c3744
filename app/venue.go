package app

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"

	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/ratelimit/spent"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/rest"
)

// coldStart returns how long after the start of this process the venue may still count calls of an earlier process. This is a
// minute plus the time that the earlier process may need to stop. coldStart returns 0 for the embedded demo venue, because that
// venue starts with this process.
func (s *App) coldStart(cfg *config.Config) time.Duration {
	if s.Demo != nil {
		return 0
	}
	return time.Minute + time.Second + cfg.DrainDelay + cfg.ShutdownTimeout
}

// newRecord returns the record of calls, or nil if calls are not recorded.
func (s *App) newRecord(cfg *config.Config) *spent.Record {
	if s.Demo != nil || s.fleet != nil || cfg.Venue.PublicPerMinute == 0 || cfg.StateDir == "" || cfg.StateDir == config.Off {
		return nil
	}
	return spent.New(spent.Config{
		Dir: cfg.StateDir, Venue: venueName(cfg), Limit: cfg.Venue.PublicPerMinute, Cold: s.coldStart(cfg), Clock: s.clock, Log: s.log,
	})
}

// startBudget tells s.budget that until coldStart has passed, the venue may still count calls of an earlier process. If calls are
// recorded, startBudget opens the record, which passes the calls of earlier processes to s.budget. startBudget does nothing if
// there is no budget, if the replicas share the budget, or if coldStart is 0.
func (s *App) startBudget(coldStart time.Duration) {
	if s.budget == nil || s.fleet != nil || coldStart == 0 {
		return
	}
	until := s.clock.Now().Add(coldStart)
	s.budget.Inherit(ratelimit.AllowMarginFirst, nil, until)
	if s.record != nil {
		s.record.Open(s.budget.Inherit)
		return
	}
	s.log.Info("the calls of an earlier process are unknown, so the service uses only a small part of the limit, until the given time or until the venue reports how many calls remain. --state-dir (ODDSGRAPH_STATE_DIR) records calls",
		"until", until.Round(time.Second))
}

// newBudget returns the rate limiter for a venue. It returns nil if the driver documents no limit and the configuration sets none.
// record may be nil.
func newBudget(v config.Venue, clock market.Clock, record *spent.Record, sharing ratelimit.Sharing) *ratelimit.Budget {
	documented := families(venue.Limits(v.Driver, v.KeyID != ""))
	if v.PublicPerMinute == 0 && v.KeyPerMinute == 0 && len(documented) == 0 {
		return nil
	}
	limit := func(perMinute int) int {
		if perMinute == 0 {
			return math.MaxInt32
		}
		return perMinute
	}
	cfg := ratelimit.Config{Families: documented, Public: limit(v.PublicPerMinute), Key: limit(v.KeyPerMinute), Clock: clock, Sharing: sharing}
	if record != nil {
		cfg.Record = record
	}
	return ratelimit.New(cfg)
}

// families converts the rate limits that the venue documents for some of its endpoints.
func families(limits []rest.PublishedLimit) (out []ratelimit.Family) {
	for _, l := range limits {
		if l.Refill > 0 {
			out = append(out, ratelimit.Bucket(l.Endpoints, l.Refill, l.Burst, l.Cost))
		} else {
			out = append(out, ratelimit.Family{Endpoints: l.Endpoints, Limit: l.Calls, Span: l.Span})
		}
	}
	return out
}

// retries converts the configured number of retries for rest.Config. In rest.Config, 0 means the default and -1 means no retry.
func retries(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// embedded reports whether the service uses the embedded demo venue: no URL of a venue is configured, and the demo venue has the
// driver's API.
func embedded(cfg *config.Config) bool {
	return cfg.Venue.URL == "" && cfg.Demo.Driver == cfg.Venue.Driver
}

// currency returns the unit of the venue's money, or nil if the unit is unknown.
func currency(cfg *config.Config) *string {
	unit := cmp.Or(cfg.Venue.Currency, venue.Currency(cfg.Venue.Driver))
	if unit == "" && embedded(cfg) {
		unit = demo.Currency
	}
	if unit == "" {
		return nil
	}
	return &unit
}

// venueName returns the name of the venue in records of calls and in Redis: the configured URL, or the name of the driver if no URL
// is configured. A driver that needs no URL serves only one venue, so the name of the driver identifies the venue.
func venueName(cfg *config.Config) string { return cmp.Or(cfg.Venue.URL, cfg.Venue.Driver) }

// credentialsPublic is the mode in which the service reads accounts by address, without credentials of the client.
const credentialsPublic = "public"

// sentCredentials returns how the service sends credentials to the venue: in the query, in a header, or not at all.
func sentCredentials(cfg *config.Config) string {
	if mode := credentialsMode(cfg); mode != credentialsPublic {
		return mode
	}
	return rest.CredentialsNone
}

// accountsArePublic reports whether the service reads accounts by address, without credentials of a client.
func accountsArePublic(cfg *config.Config) bool { return credentialsMode(cfg) == credentialsPublic }

// credentialsMode returns the value of --venue-credentials. The value "auto" means "public" for a driver with public accounts,
// "header" for the demo venue without --demo-strict, and "query" for all other venues.
func credentialsMode(cfg *config.Config) string {
	switch {
	case cfg.Venue.Credentials != config.Auto:
		return cfg.Venue.Credentials
	case venue.PublicAccounts(cfg.Venue.Driver):
		return credentialsPublic
	case embedded(cfg) && !cfg.Demo.Strict:
		return rest.CredentialsHeader
	}
	return rest.CredentialsQuery
}

func (s *App) venueConfig(cfg *config.Config, url string) venue.Config {
	names := cfg.Venue.Parameters.Names()
	return venue.Config{
		Config: rest.Config{
			BaseURL: url, CredentialsMode: sentCredentials(cfg), Timeout: cfg.Venue.Timeout, MaxBody: int64(cfg.Venue.MaxBody),
			Retries: retries(cfg.Venue.Retries), UserAgent: "oddsgraph/" + BuildVersion(), Clock: s.clock, Observer: s, Log: s.log,
		},
		Driver: cfg.Venue.Driver, Key: s.key, MaxIDs: cfg.Venue.Batch, MaxURL: int(cfg.Venue.MaxURL),
		Names: venue.DetailNames{ID: names["id"], IDs: names["ids"], Slug: names["slug"], TokenID: names["tokenId"], TokenIDs: names["tokenIds"]},
	}
}

// Call implements rest.Observer. It counts a call and records whether the venue has answered it.
func (s *App) Call(endpoint string, keys, status int, outcome string, elapsed time.Duration) {
	if s.Metrics != nil {
		s.Metrics.Call(endpoint, keys, status, outcome, elapsed)
	}
	s.readiness.note(endpoint, status, outcome, s.clock.Now())
	if outcome != reqctx.CallCancelled {
		s.reach.note(status)
	}
}

// Drift implements rest.Observer. It counts a part of a response that could not be read.
func (s *App) Drift(endpoint, what string) {
	if s.Metrics != nil {
		s.Metrics.Drift(endpoint, what)
	}
}

// failureThreshold is the number of consecutive failures after which the venue counts as unreachable.
const failureThreshold = 3

// reach counts consecutive failed calls: calls without a response or with a status of at least 500.
type reach struct{ failed atomic.Uint64 }

func (r *reach) note(status int) {
	if status == 0 || status >= 500 {
		r.failed.Add(1)
	} else {
		r.failed.Store(0)
	}
}

func (r *reach) ok() bool { return r.failed.Load() < failureThreshold }
