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

// Second is a second-level cache of public data that several processes share. It may lose everything at any time. Times are those of this
// process. It must be safe for concurrent use.
type Second interface {
	// Get calls found for each key with a record: its value, empty for an absence, and the times of the call to the venue and of its response.
	Get(ctx context.Context, kind string, keys []string, found Found)
	// Claim is Get, and claims the keys without a record. It returns the claimed keys, which this process must fetch. Another process fetches the
	// rest, for at most hold. If the second cache does not answer, all keys are claimed.
	Claim(ctx context.Context, kind string, keys []string, hold time.Duration, found Found) (ours []bool)
	// Put ends the claims of keys and stores the records with a Keep. It does not wait.
	Put(kind string, records []Record, asked, came time.Time)
	// Drop removes a key, and rejects records of calls that started before now. It does not wait.
	Drop(kind, key string)
	// Flush removes all keys of a kind, and makes the other processes flush the key, or the kind if key is empty, from their caches. It does not
	// wait.
	Flush(kind, key string)
}

// Found receives the record of the key at an index.
type Found = func(i int, value []byte, asked, came time.Time)

// Record is the record of a key in Second.
type Record = struct {
	Key   string
	Value []byte
	// Keep is the lifetime of the record.
	Keep time.Duration
}

const (
	// minHold and maxHold bound the time of a claim.
	minHold, maxHold = 250 * time.Millisecond, 2 * time.Second
	// pollEvery is the time between look-ups of a key that another process has claimed.
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

// name returns the name of a key in the second cache. An alias of another key has none, since changes are announced by the other key.
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

// names returns the names of keys and the indexes of these keys.
func (s *second[K, T]) names(keys []K, of []int) (names []string, indexes []int) {
	for _, i := range of {
		if name, ok := s.name(keys[i]); ok {
			names, indexes = append(names, name), append(indexes, i)
		}
	}
	return names, indexes
}

// found returns a Found that stores records and writes their values to out. It records the answered indexes.
func (s *second[K, T]) found(keys []K, indexes []int, out []market.Result[market.Read[*T]], answered map[int]bool) Found {
	return func(n int, value []byte, asked, came time.Time) {
		i := indexes[n]
		if read, ok := s.store.acceptSecond(keys[i], value, asked, came); ok {
			out[i], answered[i] = market.Result[market.Read[*T]]{Value: read}, true
		}
	}
}

// lookup writes the values of keys in the second cache to out, and returns which keys it has answered.
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

// claim writes the values of keys in the second cache to out. It returns which of the others this process has claimed, and which another
// process fetches.
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

// await waits for values that another process fetches, and returns the keys whose values do not arrive in time.
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

// put shares the results of the keys at some indexes and ends their claims. It does not share failures, partial values, and values that may
// be older than a change.
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

// encode returns the record of a value.
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

// acceptSecond stores a record of the second cache. ok is false if the record is not fresh, cannot be decoded, or is from a call before a
// known change.
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

// fetchSecond fetches the keys that are not in the second cache.
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

// askShared makes the calls of a batch for the keys that are not in the second cache. It waits for keys that another process fetches, and
// fetches them itself if they do not arrive in time.
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

// hold returns the time of a claim.
func (c *coalescer[K, T]) hold() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(max(2*c.pace.max(), minHold), maxHold)
}
