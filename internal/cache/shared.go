package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/shared"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// Shared is a cache of public data that several processes share. It may lose its content at any time. All times in its
// methods are times of this process's clock. A Shared must be safe for concurrent use.
type Shared interface {
	// Get calls found for each key that has a record.
	Get(ctx context.Context, kind string, keys []string, found shared.Found)
	// Claim calls found for each key that has a record, like Get. It tries to claim each of the other keys, and the keys
	// whose records found rejects. ours reports for each key whether this process has claimed the key and must fetch it.
	// If ours is false for a key without an accepted record, an earlier claim of the key has not ended. A claim lasts no longer than
	// hold. If the shared cache does not answer, this process gets all claims.
	Claim(ctx context.Context, kind string, keys []string, hold time.Duration, found shared.Found) (ours []bool)
	// Put ends this process's claims of the records' keys, and stores each record whose Keep is not 0. requestedAt and receivedAt are
	// the times of the call to the venue and of the venue's response. Put does not wait.
	Put(kind string, records []shared.Record, requestedAt, receivedAt time.Time)
	// Drop removes the record of a key. Afterwards, Put rejects records of calls that started before Drop. Drop does not wait.
	Drop(kind, key string)
	// Flush removes all records of a kind, whatever key is. It also tells the other processes to call FlushLocal with the kind and
	// the key. Flush does not wait.
	Flush(kind, key string)
}

const (
	// hold is the duration of a claim. A claim ends earlier when its call ends.
	hold = 2 * time.Second
	// pollEvery is the time between two look-ups of a key that another process has claimed.
	pollEvery = 20 * time.Millisecond
	// clockError is the greatest expected error of requestedAt and receivedAt if another process measured them.
	clockError = 50 * time.Millisecond
	// maxAhead bounds how far the receivedAt of a record may be in the future. It is longer than any error of the clocks.
	maxAhead = 2 * time.Second
)

// sharedCache gives a store access to the shared cache.
type sharedCache[K comparable, T any] struct {
	Shared
	store *store[K, T]
	kind  string
}

// sharedCounters are the counters of SharedStats.
type sharedCounters struct{ hits, misses, found, ours, theirs, arrived, overdue atomic.Uint64 }

func (c *sharedCounters) stats() *SharedStats {
	return &SharedStats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Found: c.found.Load(), Ours: c.ours.Load(), Theirs: c.theirs.Load(),
		Arrived: c.arrived.Load(), Overdue: c.overdue.Load(),
	}
}

// sharedValue is the JSON form of a value in the shared cache. Name is the name of its key, so that a record under another name is
// rejected.
type sharedValue[T any] struct {
	Name  string
	Value *T
}

// name returns the name under which the shared cache stores a key. ok is false for an alias, such as a slug, because aliases have
// no records. When a market changes, markChanged can drop the record of the market's id, but could not drop records of the market's
// aliases.
func (s *sharedCache[K, T]) name(key K) (name string, ok bool) {
	key = s.store.canonicalOf(key)
	if s.store.kind.alias(key) {
		return "", false
	}
	text, err := json.Marshal(key)
	if err != nil {
		return "", false
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:16]), true
}

// names returns the name of keys[i] for each i in selected, and the index i for each name. It skips keys without a name.
func (s *sharedCache[K, T]) names(keys []K, selected []int) (names []string, indexes []int) {
	for _, i := range selected {
		if name, ok := s.name(keys[i]); ok {
			names, indexes = append(names, name), append(indexes, i)
		}
	}
	return names, indexes
}

// found returns a shared.Found for the keys at the given indexes. The function stores each usable record in the cache, writes the
// value to out, and marks the key's index in answered.
func (s *sharedCache[K, T]) found(keys []K, indexes []int, out []reads.Result[*T], answered map[int]bool) shared.Found {
	return func(n int, value []byte, requestedAt, receivedAt time.Time) bool {
		i := indexes[n]
		read, ok := s.store.acceptShared(keys[i], value, requestedAt, receivedAt)
		if ok {
			out[i], answered[i] = reads.Result[*T]{Value: read}, true
		}
		return ok
	}
}

// lookup looks up keys in the shared cache and writes their values to out. It returns the set of the indexes of the keys with a
// value. It does not look up keys with a fresh entry in this process.
func (s *sharedCache[K, T]) lookup(ctx context.Context, keys []K, out []reads.Result[*T]) map[int]bool {
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
		s.store.counters.shared.hits.Add(uint64(len(answered)))
		s.store.counters.shared.misses.Add(uint64(len(names) - len(answered)))
	}
	if n := len(answered); n > 0 {
		request.From(ctx).Log.CountReads(s.store.name, request.CacheCounts{Shared: uint32(n)})
	}
	return answered
}

// claim looks up keys in the shared cache and writes their values to out. For the other keys, claim returns two lists of indexes.
// ours contains the keys that this process must fetch, and theirs contains the keys that other processes have claimed.
func (s *sharedCache[K, T]) claim(ctx context.Context, keys []K, out []reads.Result[*T]) (ours, theirs []int) {
	answered, claimedElsewhere, all := map[int]bool{}, map[int]bool{}, make([]int, len(keys))
	for i := range all {
		all[i] = i
	}
	names, indexes := s.names(keys, all)
	if len(names) > 0 {
		for n, mine := range s.Claim(ctx, s.kind, names, hold, s.found(keys, indexes, out, answered)) {
			claimedElsewhere[indexes[n]] = !mine
		}
	}
	for i := range keys {
		switch {
		case answered[i]:
		case claimedElsewhere[i]:
			theirs = append(theirs, i)
		default:
			ours = append(ours, i)
		}
	}
	c := &s.store.counters.shared
	c.found.Add(uint64(len(answered)))
	c.theirs.Add(uint64(len(theirs)))
	c.ours.Add(uint64(len(names) - len(answered) - len(theirs)))
	return ours, theirs
}

// await waits until other processes have stored the values of some keys in the shared cache, and writes these values to out. theirs
// contains the indexes of these keys. await gives up at the deadline, or when ctx ends. It returns the indexes of the keys that
// have no value by then. await overwrites the elements of theirs.
func (s *sharedCache[K, T]) await(ctx context.Context, keys []K, theirs []int, deadline time.Time, out []reads.Result[*T]) (overdue []int) {
	defer func() { s.store.counters.shared.overdue.Add(uint64(len(overdue))) }()
	for len(theirs) > 0 {
		answered := map[int]bool{}
		names, indexes := s.names(keys, theirs)
		s.Get(ctx, s.kind, names, s.found(keys, indexes, out, answered))
		s.store.counters.shared.arrived.Add(uint64(len(answered)))
		left := theirs[:0]
		for _, i := range theirs {
			if !answered[i] {
				left = append(left, i)
			}
		}
		theirs = left
		if len(theirs) == 0 || !s.store.clock.Now().Before(deadline) {
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

// put stores results in the shared cache. results[n] belongs to keys[selected[n]]. put ends the claims of all selected keys. It
// does not store failures, partial values, or values that may be older than a change of the key.
func (s *sharedCache[K, T]) put(keys []K, selected []int, results []upstream.Result[*T], values []reads.Result[*T], from origin) {
	var records []shared.Record
	for n, i := range selected {
		name, ok := s.name(keys[i])
		if !ok {
			continue
		}
		r := shared.Record{Key: name}
		if n < len(results) && results[n].Err == nil && !values[i].Value.Stale {
			r.Value, r.Keep = s.encode(keys[i], name, results[n].Value)
		}
		records = append(records, r)
	}
	if len(records) > 0 {
		s.Put(s.kind, records, from.startedAt, s.store.clock.Now())
	}
}

// encode returns the encoded value and its lifetime in the shared cache. The encoded form of an absence is empty. If the value must
// not be stored, the lifetime is 0.
func (s *sharedCache[K, T]) encode(key K, name string, value *T) ([]byte, time.Duration) {
	if value == nil {
		return nil, s.store.notFound
	}
	text, err := json.Marshal(sharedValue[T]{name, value})
	if err != nil || s.store.ttl.Fresh == 0 || !s.store.kind.sound(key, value) {
		return nil, 0
	}
	return text, s.store.ttl.Fresh + s.store.ttl.Stale
}

// decode returns the value of a record. ok is false if the text is unreadable, belongs to another key, or has a value that no driver
// returns for the key.
func (s *sharedCache[K, T]) decode(key K, text []byte) (v sharedValue[T], ok bool) {
	if len(text) == 0 {
		return v, true
	}
	name, _ := s.name(key)
	return v, json.Unmarshal(text, &v) == nil && v.Value != nil && v.Name == name && s.store.kind.sound(key, v.Value)
}

// acceptShared stores a record of the shared cache as an entry. ok is false if the value of the record is not fresh or cannot be
// decoded, or if its times are impossible. ok is also false in three cases: the present entry is live, the present entry is at least
// as new as the record, or the record may be older than a streamed change.
func (s *store[K, T]) acceptShared(key K, text []byte, requestedAt, receivedAt time.Time) (read reads.Value[*T], ok bool) {
	slot, now := s.slotOf(key), s.clock.Now()
	v, ok := s.shared.decode(key, text)
	if !ok || receivedAt.Before(requestedAt) || receivedAt.After(now.Add(maxAhead)) {
		return read, false
	}
	if receivedAt.After(now) {
		receivedAt = now
	}
	s.mu.Lock()
	old := s.entries.get(slot)
	newer := old != nil && (old.live() || !old.read.ReceivedAt.Before(receivedAt))
	if c, known := s.changed.Get(slot); known && !requestedAt.Add(-clockError).After(c.at) {
		newer = true
	}
	s.mu.Unlock()
	if newer {
		return read, false
	}
	fresh := s.ttl.Fresh
	if v.Value == nil {
		fresh = s.notFound
	}
	read = s.accept(key, v.Value, origin{changes: s.changes.Load(), startedAt: requestedAt, receivedAt: receivedAt})
	return read, now.Before(receivedAt.Add(fresh)) && !read.Stale
}

// fetchShared reads keys from the shared cache and passes the missing keys to fetchRoutes.
func (s *store[K, T]) fetchShared(ctx context.Context, keys []K, refresh bool) []reads.Result[*T] {
	out := make([]reads.Result[*T], len(keys))
	answered := s.shared.lookup(ctx, keys, out)
	if len(answered) == 0 {
		return s.fetchRoutes(ctx, keys, refresh)
	}
	var rest []K
	var indexes []int
	for i, key := range keys {
		if !answered[i] {
			rest, indexes = append(rest, key), append(indexes, i)
		}
	}
	if len(rest) > 0 {
		for n, r := range s.fetchRoutes(ctx, rest, refresh) {
			out[indexes[n]] = r
		}
	}
	return out
}

// askShared returns the values of a batch's keys. It first takes the values that are in the shared cache, and tries to claim the
// other keys. It fetches the claimed keys from the venue. Then it waits for the values of the keys that other processes have
// claimed. If some of these values do not arrive in time, askShared fetches their keys from the venue, too.
func (c *coalescer[K, T]) askShared(b *batch[K, T], keys []K) ([]reads.Result[*T], error) {
	values := make([]reads.Result[*T], len(keys))
	until := c.store.clock.Now().Add(hold)
	if deadline, ok := c.deadline(b); ok {
		// Wait for other processes for at most a third of the time until the deadline. This process may need the rest of the time for its
		// own call.
		now := c.store.clock.Now()
		until = market.Earlier(until, now.Add(deadline.Sub(now)/3))
	}
	ours, theirs := c.store.shared.claim(b.ctx, keys, values)
	if err := c.call(b, keys, ours, values); err != nil {
		return nil, err
	}
	theirs = c.store.shared.await(b.ctx, keys, theirs, until, values)
	if err := b.ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	for i, f := range b.flights {
		f.shared = !slices.Contains(ours, i) && !slices.Contains(theirs, i)
	}
	c.mu.Unlock()
	return values, c.call(b, keys, theirs, values)
}
