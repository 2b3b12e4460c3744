package app

import (
	"time"

	"oddsgraph/internal/cache"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/telemetry"
)

type sharedState struct {
	fleet.Stats
	limit *ratelimit.SharedStatus // rate limit of public calls; nil if the replicas share no rate limit
	now   time.Time
	// replicas is the maximum number of replicas that may run at the same time.
	replicas int
}

// sharedState needs u.fleet, which must not be nil.
func (u *unit) sharedState() sharedState {
	state := sharedState{Stats: u.fleet.Stats(), now: u.clock.Now(), replicas: u.replicas}
	if u.budget != nil {
		state.limit = u.budget.Status().Shared
	}
	return state
}

var sharedFamilies = []telemetry.Family[sharedState]{
	boolGauge("oddsgraph_shared_connected", "1 while this replica uses Redis, 0 while the circuit breaker for Redis is open.", func(s sharedState) bool { return s.Connected }),
	counter("oddsgraph_shared_disconnects_total", "How often this replica stopped using Redis because Redis did not answer.", func(s sharedState) uint64 { return s.Opened }),
	gauge("oddsgraph_shared_replicas", "Replicas that use the same Redis, including this replica; 0 while this replica does not use Redis.", func(s sharedState) int { return s.Replicas }),
	gauge("oddsgraph_shared_replicas_max", "Maximum number of replicas, as configured; the venue's limit is divided by it.", func(s sharedState) int { return s.replicas }),
	{Kind: telemetry.Counter, Name: "oddsgraph_shared_grants_total", Help: "Calls to the venue that this replica asked the ledger (the record of calls in Redis) to allow, by answer.", Labels: []string{"result"},
		Read: func(s sharedState, sample func(float64, ...string)) {
			sample(float64(s.Granted), "granted")
			sample(float64(s.Refused), "refused")
			sample(float64(s.Unanswered), "unanswered")
		}},
	gauge("oddsgraph_shared_hold_seconds", "Time until the replicas may make public calls again after the venue refused a call.", func(s sharedState) float64 {
		return max(s.Hold.Sub(s.now), 0).Seconds()
	}),
	{Kind: telemetry.Gauge, Name: "oddsgraph_shared_grants_left", Help: "Public calls that the ledger in Redis can still grant, according to its last answer.",
		Read: ofLimit(func(s *ratelimit.SharedStatus) int { return s.Left })},
	{Kind: telemetry.Gauge, Name: "oddsgraph_shared_reserve_left", Help: "Public calls that this replica could still make in this minute if Redis did not answer.",
		Read: ofLimit(func(s *ratelimit.SharedStatus) int {
			return max(s.Part-s.PartUsed, 0)
		})},
}

// ofLimit returns a function for Family.Read that samples one value of the shared limit. Without a shared limit, the function
// samples nothing.
func ofLimit(value func(*ratelimit.SharedStatus) int) func(sharedState, func(float64, ...string)) {
	return func(s sharedState, sample func(float64, ...string)) {
		if s.limit != nil {
			sample(float64(value(s.limit)))
		}
	}
}

// sharedCache returns a counter of the shared cache with a series for each shared kind of data and each result.
func sharedCache(name, help, label string, results []string, values func(*cache.SharedStats) []uint64) cacheFamily {
	return cacheFamily{Kind: telemetry.Counter, Name: name, Help: help, Labels: []string{"kind", label},
		Read: func(all []cache.Stats, sample func(float64, ...string)) {
			for _, s := range all {
				if s.Shared == nil {
					continue
				}
				for i, n := range values(s.Shared) {
					sample(float64(n), s.Kind, results[i])
				}
			}
		}}
}

var sharedCacheFamilies = []cacheFamily{
	sharedCache("oddsgraph_shared_cache_requests_total", "Keys looked up in the shared cache before a call to the venue, by result.", "verdict", []string{"hit", "miss"},
		func(s *cache.SharedStats) []uint64 { return []uint64{s.Hits, s.Misses} }),
	sharedCache("oddsgraph_shared_cache_claims_total", "Keys that this replica tried to claim before a call to the venue: this replica fetches the key (ours), another replica fetches the key (theirs), or Redis already had the value (found).", "result", []string{"found", "ours", "theirs"},
		func(s *cache.SharedStats) []uint64 { return []uint64{s.Found, s.Ours, s.Theirs} }),
	sharedCache("oddsgraph_shared_cache_waits_total", "Keys for which this replica waited while another replica fetched them, by whether the value came in time.", "result", []string{"arrived", "overdue"},
		func(s *cache.SharedStats) []uint64 { return []uint64{s.Arrived, s.Overdue} }),
}
