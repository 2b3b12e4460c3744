package cache

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Lookup answers the keys that are cached, into out, and returns the indexes of the others, appended to missing. Stale
// entries answer too; the reader passes their keys to Refresh. Lookup never asks the venue.
func (s *store[K, T]) Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int {
	l := lookup[K, T]{store: s, now: s.clock.Now(), keys: keys, out: out, missing: missing, left: -1}
	l.watched, l.all = s.asked != nil && reqctx.CountsAsPoll(ctx), true
	// Entries lie anywhere in memory. Those of a list are found first and looked into then, so that one is not waited for
	// before the next is on its way.
	var found [near]*entry[T]
	for from := 0; from < len(keys); from += near {
		part := keys[from:min(from+near, len(keys))]
		s.find(part, found[:len(part)])
		for i := range part {
			l.look(from+i, found[i])
		}
	}
	s.counters.said(l.said)
	if l.all {
		l.asked = keys
	}
	if l.watched && len(l.asked) > 0 {
		s.asked(reqctx.PollFrom(ctx), reqctx.CallerFrom(ctx), l.asked)
	}
	return l.missing
}

// near is how many entries are found before they are looked into.
const near = 32

// lookup is one look-up of keys.
type lookup[K comparable, T any] struct {
	*store[K, T]
	now     time.Time
	keys    []K
	out     []market.Result[market.Read[*T]]
	missing []int
	said    reqctx.CacheCounts
	// asked is what the watcher is told of, of which all tells that it is all keys so far.
	watched, all bool
	asked        []K
	// left is what is left of the budget, less than 0 as long as nobody wanted to know.
	left float64
}

// look answers a key by its entry, nil where it has none.
func (l *lookup[K, T]) look(i int, e *entry[T]) {
	at := l.now.UnixNano()
	switch {
	case e != nil && e.fresh(l.now):
		l.out[i].Value = e.read
		if e.read.Value == nil {
			l.said.Absent++
		} else {
			l.said.Hits++
		}
	case e != nil && l.serves(e):
		l.out[i].Value = e.read
		l.out[i].Value.Stale = true
		l.said.Stale++
	default:
		if l.missing == nil {
			l.missing = make([]int, 0, len(l.keys)-i)
		}
		l.missing = append(l.missing, i)
		l.said.Misses++
		l.tell(i, false)
		return
	}
	e.use()
	// What is streamed is watched already, so it is enough that this goes on.
	l.tell(i, l.watched && e.read.Value != nil && (e.session == nil || e.due(at)))
}

// serves reports whether an entry that is not fresh may answer while it is refreshed.
func (l *lookup[K, T]) serves(e *entry[T]) bool {
	freshUntil, staleUntil := e.times(l.now, l.ttl)
	if l.now.Before(staleUntil) {
		return !e.overtaken || l.now.Before(e.awaits)
	}
	if !l.now.Before(l.stretched(e, freshUntil)) {
		return false
	}
	if l.left < 0 {
		l.left = l.store.left()
	}
	return l.left < short && !e.overtaken
}

// tell notes whether the watcher is to be told of a key, the next one.
func (l *lookup[K, T]) tell(i int, told bool) {
	var more []K
	switch {
	case l.all && !told:
		more, l.all = l.keys[:i], false
	case !l.all && told:
		more = l.keys[i : i+1]
	}
	if len(more) > 0 {
		l.asked = append(slices.Grow(l.asked, len(l.keys)-len(l.asked)), more...) // with room for all at once
	}
}

// stretched returns until when an entry may be served stale while the budget is short.
func (s *store[K, T]) stretched(e *entry[T], freshUntil time.Time) time.Time {
	if e.read.Value == nil {
		return time.Time{}
	}
	return freshUntil.Add(s.stretch)
}

// find is get for some keys, near at most, into found.
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

// findSlots is find where keys are not what entries are stored under. It finds those that lie in the slots of the keys.
func (s *store[K, T]) findSlots(keys []K, found []*entry[T]) {
	var canonical, slots [near]K
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

// get returns the entry that answers for a key, whatever its age, nil where there is none.
func (s *store[K, T]) get(key K) *entry[T] {
	key, slot := s.places(key)
	if e := s.entries.get(slot); e != nil && s.answers(e, key) {
		return e
	}
	if slot != key {
		if e := s.entries.get(key); e != nil { // it stands beside a streamed one that does not reach as far
			return e
		}
	}
	return s.absent.get(slot)
}

// places returns the canonical form of a key, and the slot that its entry lies in mostly.
func (s *store[K, T]) places(key K) (canonical, slot K) {
	if s.canonical != nil {
		key = s.canonical(key)
	}
	return key, s.slotOf(key)
}
