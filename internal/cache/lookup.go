package cache

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Lookup writes the values of cached keys to out and appends the indexes of the other keys to missing. It also serves stale
// entries; the calling function must then pass their keys to Refresh. Lookup never calls the venue.
func (s *store[K, T]) Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int {
	l := lookup[K, T]{store: s, now: s.clock.Now(), keys: keys, out: out, missing: missing}
	if s.routes[0].scope != nil {
		l.credentials = reqctx.CredentialsFrom(ctx)
	}
	l.watched, l.all = s.recordPoll != nil && reqctx.CountsAsPoll(ctx), true
	// Entries are scattered in memory. Finding several entries before reading them lets the CPU load them in parallel.
	var found [lookAhead]*entry[T]
	for from := 0; from < len(keys); from += lookAhead {
		part := keys[from:min(from+lookAhead, len(keys))]
		s.find(part, found[:len(part)])
		for i := range part {
			l.look(from+i, found[i])
		}
	}
	s.counters.count(l.counts)
	if l.all {
		l.polled = keys
	}
	if l.watched && len(l.polled) > 0 {
		s.recordPoll(reqctx.PollFrom(ctx), reqctx.CallerFrom(ctx), l.polled)
	}
	return l.missing
}

// lookAhead is the number of entries that Lookup finds before it reads them.
const lookAhead = 32

// lookup is the state of one Lookup.
type lookup[K comparable, T any] struct {
	*store[K, T]
	now     time.Time
	keys    []K
	out     []market.Result[market.Read[*T]]
	missing []int
	counts  reqctx.CacheCounts
	// watched reports whether reads are reported to the Watcher. The field all is true as long as every key so far must be reported.
	// While all is true, polled is unused. When all is false, polled contains the keys to report.
	watched, all bool
	polled       []K
	// credentials are the client's if calls need them. scarce reports whether a call would have to wait, once asked is true.
	credentials   *market.Credentials
	asked, scarce bool
}

// look writes the result of the key at index i to out, or adds i to missing. e is the entry of the key, or nil.
func (l *lookup[K, T]) look(i int, e *entry[T]) {
	at := l.now.UnixNano()
	switch {
	case e != nil && e.fresh(l.now):
		l.out[i].Value = e.read
		if e.read.Value == nil {
			l.counts.Absent++
		} else {
			l.counts.Hits++
		}
	case e != nil && l.serves(e):
		l.out[i].Value = e.read
		l.out[i].Value.MarkStale(l.cause(e))
		l.counts.Stale++
	default:
		if l.missing == nil {
			l.missing = make([]int, 0, len(l.keys)-i)
		}
		l.missing = append(l.missing, i)
		l.counts.Misses++
		l.report(i, false)
		return
	}
	e.markUsed()
	// A token with a streamed entry is already watched, so one report in each pollInterval is enough to keep it watched.
	l.report(i, l.watched && e.read.Value != nil && (e.session == nil || e.pollDue(at)))
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
func (l *lookup[K, T]) cause(e *entry[T]) market.StaleCause {
	if _, staleUntil := e.times(l.now, l.ttl); !l.now.Before(staleUntil) {
		return max(market.CauseThrottled, e.cause()) // calls are scarce, so the entry is served after its stale time
	}
	return e.cause()
}

// report records whether the key at index i must be reported to the Watcher. look calls report for each key in order.
func (l *lookup[K, T]) report(i int, reported bool) {
	var more []K
	switch {
	case l.all && !reported:
		more, l.all = l.keys[:i], false
	case !l.all && reported:
		more = l.keys[i : i+1]
	}
	if len(more) > 0 {
		l.polled = append(slices.Grow(l.polled, len(l.keys)-len(l.polled)), more...) // capacity for all keys
	}
}

// stretched returns the time until which a stale entry may be served while the rate limit is short. For an absence, it returns the
// zero time.
func (s *store[K, T]) stretched(e *entry[T], freshUntil time.Time) time.Time {
	if e.read.Value == nil {
		return time.Time{}
	}
	return freshUntil.Add(s.stretch)
}

// find writes the result of get for each key to found. The number of keys must be at most lookAhead.
func (s *store[K, T]) find(keys []K, found []*entry[T]) {
	if s.canonical == nil && s.slot == nil {
		s.entries.find(keys, found)
	} else {
		s.findSlots(keys, found)
	}
	for i, key := range keys {
		if found[i] == nil {
			found[i] = s.get(key)
		}
	}
}

// findSlots writes the entries in the slots of keys to found. It is for kinds whose keys have canonical forms or slots. It writes
// nil for a key if the entry in the slot does not contain the data for the key.
func (s *store[K, T]) findSlots(keys []K, found []*entry[T]) {
	var canonical, slots [lookAhead]K
	for i, key := range keys {
		canonical[i], slots[i] = s.places(key)
	}
	s.entries.find(slots[:len(keys)], found)
	for i, e := range found {
		if e != nil && !s.answers(e, canonical[i]) {
			found[i] = nil
		}
	}
}

// get returns the entry whose value contains the data for a key. If there is no such entry, it returns the absence of the key, or
// nil. The entry may be of any age.
func (s *store[K, T]) get(key K) *entry[T] {
	key, slot := s.places(key)
	if e := s.entries.get(slot); e != nil && s.answers(e, key) {
		return e
	}
	if slot != key {
		if e := s.entries.get(key); e != nil { // the slot has a streamed entry that does not cover the key
			return e
		}
	}
	return s.absent.get(slot)
}

// places returns the canonical form of a key and the slot of that form.
func (s *store[K, T]) places(key K) (canonical, slot K) {
	if s.canonical != nil {
		key = s.canonical(key)
	}
	return key, s.slotOf(key)
}
