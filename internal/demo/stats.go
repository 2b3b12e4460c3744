package demo

import (
	"strconv"
	"sync/atomic"
)

// Stats counts requests since the venue opened or was reset.
type Stats struct {
	// Requests counts the requests by path.
	Requests map[string]int64 `json:"requests"`
	// Keys counts, by path, the identifiers in the requests. A request without a list of identifiers counts as 1.
	Keys map[string]int64 `json:"keys"`
	// Statuses counts the responses by HTTP status.
	Statuses map[string]int64 `json:"statuses"`
	Stream   StreamStats      `json:"stream"`
}

// stats has the counters of [Stats]. The index of an endpoint in requests and keys is its index in endpoints. The index in statuses
// is the HTTP status.
type stats struct {
	requests, keys [16]atomic.Int64
	statuses       [600]atomic.Int64
}

func (s *stats) count(endpoint, keys int) {
	s.requests[endpoint].Add(1)
	s.keys[endpoint].Add(int64(keys))
}

func (s *stats) countStatus(status int) { s.statuses[status].Add(1) }

// Stats returns the counts. The maps omit paths without requests and statuses without responses.
func (v *Venue) Stats() Stats {
	s := Stats{Requests: map[string]int64{}, Keys: map[string]int64{}, Statuses: map[string]int64{}}
	for i := range endpoints {
		if n := v.stats.requests[i].Load(); n > 0 {
			s.Requests[endpoints[i].path] = n
			s.Keys[endpoints[i].path] = v.stats.keys[i].Load()
		}
	}
	for status := range v.stats.statuses {
		if n := v.stats.statuses[status].Load(); n > 0 {
			s.Statuses[strconv.Itoa(status)] = n
		}
	}
	s.Stream = v.streamStats()
	return s
}

// Reset zeroes the stats. It does not change the markets.
func (v *Venue) Reset() {
	for i := range endpoints {
		v.stats.requests[i].Store(0)
		v.stats.keys[i].Store(0)
	}
	for i := range v.stats.statuses {
		v.stats.statuses[i].Store(0)
	}
	v.stream.counts.reset()
}
