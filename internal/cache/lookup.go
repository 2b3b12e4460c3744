package cache

import (
	"context"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// Lookup writes the values of cached keys to out and appends the indexes of the other keys to missing. It also serves stale
// entries; the calling function must then pass their keys to Refresh. Lookup never calls the venue.
func (s *store[K, T]) Lookup(ctx context.Context, keys []K, out []reads.Result[*T], missing []int) []int {
	l := lookup[K, T]{store: s, now: s.clock.Now(), keys: keys, out: out}
	if s.routes[0].private {
		l.credentials = request.CredentialsFrom(ctx)
	}
	if s.countsPolls(ctx) {
		l.polled = make([]K, 0, len(keys))
	}
	before := len(missing)
	s.entries.pool.mu.Lock()
	for i, key := range keys {
		if e := s.find(key); e != nil && e.fresh(l.now) {
			l.hit(i, e)
			continue
		}
		if missing == nil {
			missing = make([]int, 0, len(keys)-i)
		}
		missing = append(missing, i)
	}
	s.entries.pool.mu.Unlock()
	notFresh := missing[before:]
	missing = missing[:before]
	for _, i := range notFresh {
		if !l.look(i, s.get(keys[i])) {
			missing = append(missing, i)
			l.counts.Misses++
		}
	}
	s.counters.count(l.counts)
	s.tellWatcher(ctx, l.polled)
	return missing
}

// lookup is the state of one Lookup.
type lookup[K comparable, T any] struct {
	*store[K, T]
	now    time.Time
	keys   []K
	out    []reads.Result[*T]
	counts request.CacheCounts
	// polled contains the keys to report to the Watcher. It is nil if the read is not reported.
	polled []K
	// credentials are the client's if calls need them. scarce reports whether a call would have to wait, once asked is true.
	credentials   *market.Credentials
	asked, scarce bool
}

// look writes the result of the key at index i to out. e is the entry of the key, or nil. look returns false if the key is missing.
func (l *lookup[K, T]) look(i int, e *entry[T]) bool {
	switch {
	case e == nil:
		return false
	case e.fresh(l.now):
		l.hit(i, e)
	case l.serves(e):
		l.serve(i, e)
		l.out[i].Value.MarkStale(l.cause(e))
		l.counts.Stale++
	default:
		return false
	}
	return true
}

// hit writes a fresh entry to out.
func (l *lookup[K, T]) hit(i int, e *entry[T]) {
	l.serve(i, e)
	if e.read.Value == nil {
		l.counts.Absent++
	} else {
		l.counts.Hits++
	}
}

// serve writes an entry to out. A token with a streamed entry is already watched, so one report in each pollInterval is enough to
// keep it watched.
func (l *lookup[K, T]) serve(i int, e *entry[T]) {
	l.out[i].Value = e.read
	if l.polled != nil && e.read.Value != nil && (e.session == nil || e.pollDue(l.now.UnixNano())) {
		l.polled = append(l.polled, l.keys[i])
	}
}

// serves reports whether a stale entry may be served.
func (l *lookup[K, T]) serves(e *entry[T]) bool {
	freshUntil, staleUntil := e.times(l.now, l.ttl)
	if l.now.Before(staleUntil) {
		return !e.outdated || l.now.Before(e.answersUntil)
	}
	if !l.now.Before(l.stretched(e, freshUntil)) {
		return false
	}
	if !l.asked {
		l.asked, l.scarce = true, l.store.scarce(l.credentials)
	}
	return l.scarce && !e.outdated
}

// cause returns the cause to report for a stale entry that is served.
func (l *lookup[K, T]) cause(e *entry[T]) reads.StaleCause {
	if _, staleUntil := e.times(l.now, l.ttl); !l.now.Before(staleUntil) {
		return max(reads.CauseThrottled, e.cause()) // calls are scarce, so the entry is served after its stale time
	}
	return e.cause()
}

// stretched returns the time until which a stale entry may be served while the rate limit is short. For an absence, it returns the
// zero time.
func (s *store[K, T]) stretched(e *entry[T], freshUntil time.Time) time.Time {
	if e.read.Value == nil {
		return time.Time{}
	}
	return freshUntil.Add(s.stretch)
}

// expired reports whether nothing may serve an entry any more, and no value must be compared with it.
func (s *store[K, T]) expired(e *entry[T], now time.Time) bool {
	freshUntil, staleUntil := e.times(now, s.ttl)
	return !now.Before(staleUntil) && !now.Before(s.stretched(e, freshUntil)) && !now.Before(e.overrideEnd(now, s.ttl))
}

// get returns the entry whose value contains the data for a key. If there is no such entry, it returns the absence of the key, or
// nil. The entry may be of any age.
func (s *store[K, T]) get(key K) *entry[T] {
	s.entries.pool.mu.Lock()
	e := s.find(key)
	s.entries.pool.mu.Unlock()
	if e == nil {
		e = s.absent.get(s.slotOf(s.canonicalOf(key)))
	}
	return e
}

// find returns the entry whose value contains the data for a key, or nil. The calling function holds the lock of the values' pool.
func (s *store[K, T]) find(key K) *entry[T] {
	if s.aliased != nil {
		key = s.aliased.canonical(key)
	}
	slot := s.slotOf(key)
	if e := s.entries.find(slot); e != nil && s.answers(e, key) {
		return e
	}
	if slot != key { // the slot may have a streamed entry that does not cover the key
		return s.entries.find(key)
	}
	return nil
}

// canonicalOf returns the canonical form of a key.
func (s *store[K, T]) canonicalOf(key K) K {
	if s.aliased == nil {
		return key
	}
	s.entries.pool.mu.Lock()
	defer s.entries.pool.mu.Unlock()
	return s.aliased.canonical(key)
}

// count adds the results of a Lookup.
func (c *counters) count(r request.CacheCounts) {
	for _, n := range [...]struct {
		counter *atomic.Uint64
		keys    uint32
	}{{&c.hits, r.Hits}, {&c.stale, r.Stale}, {&c.notFound, r.Absent}, {&c.misses, r.Misses}} {
		if n.keys > 0 {
			n.counter.Add(uint64(n.keys))
		}
	}
}
