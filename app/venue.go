package app

import (
	"cmp"
	"math"
	"slices"

	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/internal/venue/rest"
)

// openBudget opens u.budget and makes the cache use it. It does nothing if the service keeps no rate limit. sharing says how the
// replicas share the limit.
func (u *unit) openBudget(cfg *config.Config, w *Wiring, sharing ratelimit.Sharing) {
	if w.Unlimited {
		return
	}
	limits := cfg.Venue
	if embedded(cfg) {
		limits.PublicPerMinute, limits.KeyPerMinute = cfg.Demo.PublicPerMinute, cfg.Demo.KeyPerMinute
	}
	if u.budget = newBudget(limits, u.clock, w.Fresh, sharing); u.budget == nil {
		return
	}
	u.opened = append(u.opened, u.budget.Close)
	w.Reads.Admission = u.budget
	u.logStart(w.Fresh)
}

// newBudget returns the rate limiter for a venue. It returns nil if the driver documents no limit and the configuration sets none.
// fresh is true if no other process can have called the venue.
func newBudget(v config.Venue, clock market.Clock, fresh bool, sharing ratelimit.Sharing) *ratelimit.Budget {
	documented := families(drivers.Of(v.Driver).Limits())
	if v.PublicPerMinute == 0 && v.KeyPerMinute == 0 && len(documented) == 0 {
		return nil
	}
	limit := func(perMinute int) int {
		if perMinute == 0 {
			return math.MaxInt32
		}
		return perMinute
	}
	return ratelimit.New(ratelimit.Config{
		Families: documented, Public: limit(v.PublicPerMinute), Key: limit(v.KeyPerMinute), Fresh: fresh, Clock: clock, Sharing: sharing,
	})
}

// logStart logs how many calls to the venue this process may make after its start. fresh is true if no other process can have called
// the venue.
func (u *unit) logStart(fresh bool) {
	rule := "half of the limit counts as used, and becomes free within a minute"
	switch {
	case fresh:
		rule = "the whole limit is free, because the venue starts with this process"
	case u.fleet != nil:
		rule = "Redis grants each call; if its ledger is new, half of the limit counts as used, and becomes free within a minute"
	}
	limit := u.budget.Status()
	u.log.Info("calls to the venue are limited", "per_minute", limit.Limit, "now", limit.Left, "start", rule)
}

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

// embedded reports whether the service uses the embedded demo venue: no URL of a venue is configured, and the demo venue has the
// driver's API.
func embedded(cfg *config.Config) bool {
	return cfg.Venue.URL == "" && cfg.Demo.Driver == cfg.Venue.Driver
}

// currency returns the unit of the venue's money, or nil if the unit is unknown.
func currency(cfg *config.Config) *string {
	unit := cmp.Or(cfg.Venue.Currency, drivers.Of(cfg.Venue.Driver).Currency)
	if unit == "" && embedded(cfg) {
		unit = demo.Currency
	}
	if unit == "" {
		return nil
	}
	return &unit
}

// venueName returns the name of the venue in Redis: the configured URL, or the name of the driver if no URL
// is configured. A driver that needs no URL serves only one venue, so the name of the driver identifies the venue.
func venueName(cfg *config.Config) string { return cmp.Or(cfg.Venue.URL, cfg.Venue.Driver) }

func sentCredentials(cfg *config.Config) string {
	if mode := credentialsMode(cfg); mode != config.CredentialsPublic {
		return mode
	}
	return rest.CredentialsNone
}

func accountsArePublic(cfg *config.Config) bool {
	return credentialsMode(cfg) == config.CredentialsPublic
}

// credentialsMode returns the value of --venue-credentials. The value "auto" means "public" for a driver with public accounts,
// "header" for the demo venue without --demo-strict, and "query" for all other venues.
func credentialsMode(cfg *config.Config) string {
	switch {
	case cfg.Venue.Credentials != config.Auto:
		return cfg.Venue.Credentials
	case drivers.Of(cfg.Venue.Driver).PublicAccounts:
		return config.CredentialsPublic
	case embedded(cfg) && !cfg.Demo.Strict:
		return rest.CredentialsHeader
	}
	return rest.CredentialsQuery
}

// venueConfig returns the configuration of the driver without its Clock, Observer and Log.
func venueConfig(cfg *config.Config, url string, key drivers.APIKey) drivers.Config {
	return drivers.Config{
		Config: rest.Config{
			BaseURL: url, CredentialsMode: sentCredentials(cfg), Timeout: cfg.Venue.Timeout,
			UserAgent: "oddsgraph/" + BuildVersion(),
		},
		Driver: cfg.Venue.Driver, Key: key, MaxIDs: cfg.Venue.Batch, Table: table(cfg),
	}
}

// table returns the settings of --venue-table. For the embedded demo venue it returns all settings before them, so that they replace
// these.
func table(cfg *config.Config) []string {
	if !embedded(cfg) {
		return cfg.Venue.Table
	}
	t := []string{
		"market-id:marketId", "market-ids:ids", "market-tokens:tokenIds", "spreads:tokenIds", "search-options:yes", "search-paging:cursor",
		"account-options:yes", "max-url:2048",
	}
	if cfg.Demo.Strict {
		t = append(t, "market-ids:none", "market-tokens:none")
	}
	if slices.Contains(cfg.Demo.Without, "spreads") {
		t = append(t, "spreads:books")
	}
	return append(t, cfg.Venue.Table...)
}
