package cache

import (
	"sync/atomic"

	"oddsgraph/internal/market/reqctx"
)

// count adds the results of a Lookup.
func (c *counters) count(r reqctx.CacheCounts) {
	for _, n := range [...]struct {
		counter *atomic.Uint64
		keys    uint32
	}{{&c.hits, r.Hits}, {&c.stale, r.Stale}, {&c.notFound, r.Absent}, {&c.misses, r.Misses}} {
		if n.keys > 0 {
			n.counter.Add(uint64(n.keys))
		}
	}
}

// counters are the counters of Stats.
type counters struct {
	hits, stale, misses, notFound, coalesced, calls, keys, late atomic.Uint64
	shared                                                      sharedCounters
}
