package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Second is a cache of public data behind this one that several processes share. It may lose everything at any time. Its times
// are those of this process; Second converts them. It must be safe for concurrent use.
type Second interface {
	// Get calls found for each key with a record: its value, empty for an absence, and when the venue was asked and answered.
	Get(ctx context.Context, kind string, keys []string, found Found)
	// Claim does as Get for keys with a record. It returns which of the others this process is to ask the venue for; another
	// process asks for the rest, for hold at most. Without an answer of the second cache all others are to be asked for.
	Claim(ctx context.Context, kind string, keys []string, hold time.Duration, found Found) (ours []bool)
	// Put ends the claims of keys, and keeps the records that have a time to be kept. It does not wait.
	Put(kind string, records []Record, asked, came time.Time)
	// Drop forgets a key, and records that the venue was asked for before now. It does not wait.
	Drop(kind, key string)
	// Flush forgets all keys of a kind, and has the other processes flush the key from their caches, or all if it is empty. It does
	// not wait.
	Flush(kind, key string)
}

// Found receives the record of the key at an index.
type Found = func(i int, value []byte, asked, came time.Time)

// Record is what Second keeps of a key.
type Record = struct {
	Key   string
	Value []byte
	// Keep is how long the record is of use.
	Keep time.Duration
}

const (
	// minHold and maxHold bound how long a process may ask the venue before another one does the same.
	minHold, maxHold = 250 * time.Millisecond, 2 * time.Second
	// pollEvery is how often a process looks for the answer that another one asks for.
	pollEvery = 20 * time.Millisecond
	// clockError bounds the error of converted times.
	clockError = 50 * time.Millisecond
)

// second connects a store to the second cache.
type second[K comparable, T any] struct {
	Second
	store *store[K, T]
	kind  string
}

// sharedValue is the JSON of a value in the second cache.
type sharedValue[T any] struct {
	Age   market.Age
	Value *T
}

// share connects a store of public data to the second cache, if there is one.
func (s *store[K, T]) share(with Second) {
	if with == nil {
		return
	}
	s.second = &second[K, T]{Second: with, store: s, kind: s.kind.String()}
	for _, l := range s.routes {
		l.second = s.second
	}
}

// name returns the name of a key in the second cache. A key that may mean what another key means has none, since a change is
// announced by the other key.
func (s *second[K, T]) name(key K) (name string, ok bool) {
	if s.store.canonical != nil {
		key = s.store.canonical(key)
	}
	if s.store.alias != nil && s.store.alias(key) {
		return "", false
	}
	text, err := json.Marshal(key)
	if err != nil {
		return "", false
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:16]), true
}

// names returns the names of keys and the indexes of the keys that they are of.
func (s *second[K, T]) names(keys []K, of []int) (names []string, indexes []int) {
	for _, i := range of {
		if name, ok := s.name(keys[i]); ok {
			names, indexes = append(names, name), append(indexes, i)
		}
	}
	return names, indexes
}

// found returns a Found that stores records and puts them into out. It notes the indexes that are answered.
func (s *second[K, T]) found(keys []K, indexes []int, out []market.Result[market.Read[*T]], answered map[int]bool) Found {
	return func(n int, value []byte, asked, came time.Time) {
		i := indexes[n]
		if read, ok := s.store.acceptSecond(keys[i], value, asked, came); ok {
			out[i], answered[i] = market.Result[market.Read[*T]]{Value: read}, true
		}
	}
}

// lookup answers keys by the second cache into out, and returns which are answered.
func (s *second[K, T]) lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]]) map[int]bool {
	answered := map[int]bool{}
	missing := make([]int, 0, len(keys))
	now := s.store.clock.Now()
	for i, key := range keys {
		if e := s.store.get(key); e == nil || !e.fresh(now) {
			missing = append(missing, i)
		}
	}
	if names, indexes := s.names(keys, missing); len(names) > 0 {
		s.Get(ctx, s.kind, names, s.found(keys, indexes, out, answered))
	}
	if n := len(answered); n > 0 {
		s.store.counters.shared.Add(uint64(n))
		reqctx.LogFrom(ctx).CountReads(s.store.kind, reqctx.CacheCounts{Shared: uint32(n)})
	}
	return answered
}

// claim answers keys by the second cache into out. It returns which of the others this process is to ask the venue for, and which
// another one asks for.
func (s *second[K, T]) claim(ctx context.Context, keys []K, hold time.Duration, out []market.Result[market.Read[*T]]) (ours, theirs []int) {
	answered, claimed, all := map[int]bool{}, map[int]bool{}, make([]int, len(keys))
	for i := range all {
		all[i] = i
	}
	names, indexes := s.names(keys, all)
	if len(names) > 0 {
		for n, mine := range s.Claim(ctx, s.kind, names, hold, s.found(keys, indexes, out, answered)) {
			claimed[indexes[n]] = !mine
		}
	}
	s.store.counters.shared.Add(uint64(len(answered)))
	for i := range keys {
		switch {
		case answered[i]:
		case claimed[i]:
			theirs = append(theirs, i)
		default:
			ours = append(ours, i)
		}
	}
	return ours, theirs
}

// await waits for answers that another process asks for, and returns the keys whose answers do not come in time.
func (s *second[K, T]) await(ctx context.Context, keys []K, theirs []int, until time.Time, out []market.Result[market.Read[*T]]) []int {
	for len(theirs) > 0 {
		answered := map[int]bool{}
		names, indexes := s.names(keys, theirs)
		s.Get(ctx, s.kind, names, s.found(keys, indexes, out, answered))
		s.store.counters.shared.Add(uint64(len(answered)))
		left := theirs[:0]
		for _, i := range theirs {
			if !answered[i] {
				left = append(left, i)
			}
		}
		theirs = left
		if len(theirs) == 0 || !s.store.clock.Now().Before(until) {
			break
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return theirs
		}
	}
	return theirs
}

// put shares the venue's answers to the keys at some indexes, and ends their claims. Failures, parts of answers, and answers that
// may be older than a change are not shared.
func (s *second[K, T]) put(keys []K, of []int, results []market.Result[*T], reads []market.Result[market.Read[*T]], from origin) {
	var records []Record
	for n, i := range of {
		name, ok := s.name(keys[i])
		if !ok {
			continue
		}
		r := Record{Key: name}
		if n < len(results) && results[n].Err == nil && !reads[i].Value.Stale && complete(results[n].Value) {
			r.Value, r.Keep = s.encode(results[n].Value, from.age)
		}
		records = append(records, r)
	}
	if len(records) > 0 {
		s.Put(s.kind, records, from.left, s.store.clock.Now())
	}
}

// encode returns the record of a value and how long it is of use.
func (s *second[K, T]) encode(value *T, age market.Age) ([]byte, time.Duration) {
	if value == nil {
		return nil, s.store.notFound
	}
	text, err := json.Marshal(sharedValue[T]{age, value})
	if err != nil || s.store.ttl.Fresh == 0 {
		return nil, 0
	}
	return text, s.store.ttl.Fresh + s.store.ttl.Stale
}

// complete reports whether a value has all its parts.
func complete(value any) bool {
	switch v := value.(type) {
	case *market.SearchPage:
		return v == nil || len(v.LeftOut) == 0
	case *market.Event:
		return v == nil || len(v.LeftOut) == 0
	case *market.PriceHistory:
		return v == nil || len(v.LeftOut) == 0
	}
	return true
}

// acceptSecond stores a record of the second cache. ok is false if it does not answer: it is past its fresh time, cannot be read, or
// the venue was asked before a change that is known here.
func (s *store[K, T]) acceptSecond(key K, text []byte, asked, came time.Time) (read market.Read[*T], ok bool) {
	var v sharedValue[T]
	if len(text) > 0 && (json.Unmarshal(text, &v) != nil || v.Value == nil) {
		return read, false
	}
	slot, now := s.slotOf(key), s.clock.Now()
	if came.After(now) {
		came = now
	}
	s.mu.Lock()
	old := s.entries.get(slot)
	newer := old != nil && (old.live() || !old.read.ReceivedAt.Before(came))
	if s.changed != nil {
		if c, known := s.changed.Get(slot); known && !asked.Add(-clockError).After(c.at) {
			newer = true
		}
	}
	s.mu.Unlock()
	if newer {
		return read, false
	}
	fresh := s.ttl.Fresh
	if v.Value == nil {
		fresh = s.notFound
	}
	read = s.accept(key, v.Value, origin{changes: s.changes.Load(), left: asked, age: v.Age, came: came})
	return read, now.Before(came.Add(fresh)) && !read.Stale
}

// fetchSecond fetches keys that the second cache does not answer.
func (s *store[K, T]) fetchSecond(ctx context.Context, keys []K, refresh bool) []market.Result[market.Read[*T]] {
	out := make([]market.Result[market.Read[*T]], len(keys))
	answered := s.second.lookup(ctx, keys, out)
	if len(answered) == 0 {
		return s.fetchFirst(ctx, keys, refresh)
	}
	var rest []K
	var indexes []int
	for i, key := range keys {
		if !answered[i] {
			rest, indexes = append(rest, key), append(indexes, i)
		}
	}
	if len(rest) > 0 {
		for n, r := range s.fetchFirst(ctx, rest, refresh) {
			out[indexes[n]] = r
		}
	}
	return out
}

// askShared makes the calls of a batch for the keys that the second cache does not answer. A key that another process asks for
// is waited for, and asked for if its answer does not come in time.
func (c *coalescer[K, T]) askShared(ctx context.Context, b *batch[K, T], keys []K) ([]market.Result[market.Read[*T]], error) {
	reads := make([]market.Result[market.Read[*T]], len(keys))
	hold := c.hold()
	until := c.clock.Now().Add(hold)
	if !b.request.Deadline.IsZero() { // leaves time to ask
		until = earlier(until, c.clock.Now().Add(b.request.Deadline.Sub(c.clock.Now())/3))
	}
	ours, theirs := c.second.claim(ctx, keys, hold, reads)
	if err := c.call(ctx, b, keys, ours, reads); err != nil {
		return nil, err
	}
	theirs = c.second.await(ctx, keys, theirs, until, reads)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	for i, f := range b.flights {
		f.shared = !slices.Contains(ours, i) && !slices.Contains(theirs, i)
	}
	c.mu.Unlock()
	return reads, c.call(ctx, b, keys, theirs, reads)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// hold returns how long a call may take before other processes make it too.
func (c *coalescer[K, T]) hold() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(max(2*c.pace.max(), minHold), maxHold)
}
