package cache

import (
	"context"
	"iter"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

const (
	// refreshTimeout bounds the duration of a refresh. A refresh that gives up loses its place in the queue of the rate limit.
	refreshTimeout = 75 * time.Second
	// pollInterval is the least time in nanoseconds between two reports to the Watcher that a streamed entry was read.
	pollInterval = int64(time.Second)
	// never is a time, in Unix nanoseconds, after all others.
	never = math.MaxInt64
)

// store caches one kind of data. It is safe for concurrent use.
type store[K comparable, T any] struct {
	*env
	kind kind[K, T]
	// aliased, nested and watched are the kind too. Each is nil if the kind has no such keys or values.
	aliased aliased[K]
	nested  nested[K, T]
	watched watched[K]

	name    upstream.Kind
	unkeyed bool
	ttl     TTL
	// notFound is the time for which an absence is cached. For user data, notFound is at most the fresh time.
	notFound time.Duration
	// stretch is the time for which an entry may be served after its fresh time while calls fail or are scarce; see Config.Stretch.
	stretch  time.Duration
	entries  *list[K, *entry[T]]
	absent   *list[K, *entry[T]]
	counters counters
	// routes are the ways to fetch keys; see kind.route.
	routes []*coalescer[K, T]
	// watcher and streamer are nil for kinds that are not watched, and may be nil for those that are.
	watcher  Watcher
	streamer Streamer
	// shared is the shared cache. It is nil for user data, and if no shared cache is configured.
	shared *sharedCache[K, T]

	// changed is an LRU of the last streamed change of each slot. changes counts the streamed changes of all slots. Its value after a
	// change is the number of this change.
	changed *lru.Cache[K, *change]
	changes atomic.Uint64

	// mu is held while a function checks and changes the fields entries, absent and changed. An entry may be evicted meanwhile.
	mu sync.Mutex
}

// countsPolls reports whether reads with ctx are reported to the Watcher.
func (s *store[K, T]) countsPolls(ctx context.Context) bool {
	return s.watcher != nil && !request.From(ctx).NoPoll
}

// tellWatcher reports read keys to the Watcher.
func (s *store[K, T]) tellWatcher(ctx context.Context, keys []K) {
	if len(keys) > 0 {
		channel, tokens := s.watched.topics(keys)
		s.watcher.RecordPoll(request.From(ctx).Poll, channel, tokens)
	}
}

// scarce reports whether a call for data of this kind would have to wait; see Admission.Scarce. credentials may be nil.
func (s *store[K, T]) scarce(credentials *market.Credentials) bool {
	c, scope := s.routes[0], ""
	if c.private {
		scope = s.scope.credentials(credentials)
	}
	return s.cfg.Admission.Scarce(scope, c.endpoint)
}

// Fetch fetches keys from the shared cache or the venue, and waits for the results until ctx ends. The results are in the order of
// keys. A key that several requests need at the same time is fetched once. If the venue or the rate limit makes the fetch of a key
// fail, Fetch returns the cached value until the end of the stale time. Config.Stretch replaces a shorter stale time.
func (s *store[K, T]) Fetch(ctx context.Context, keys []K) []reads.Result[*T] {
	if s.streamer != nil && !request.From(ctx).NoPoll && s.scarce(nil) {
		s.streamer.AutoWatch(s.watched.topics(keys))
	}
	out := s.fetch(ctx, keys, false)
	for i := range out {
		if out[i].Err != nil {
			s.serveStale(keys[i], &out[i])
		}
	}
	if s.countsPolls(ctx) {
		exist := make([]K, 0, len(keys))
		for i := range keys {
			if out[i].Value.Value != nil {
				exist = append(exist, keys[i])
			}
		}
		s.tellWatcher(ctx, exist)
	}
	return out
}

// serveStale replaces an error of the venue or of the rate limit with the cached value, if the cached value may still be served.
func (s *store[K, T]) serveStale(key K, r *reads.Result[*T]) {
	switch market.CodeOf(r.Err) {
	case market.CodeRateLimited, market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse:
	default:
		return
	}
	now := s.clock.Now()
	e := s.get(key)
	if e == nil || e.read.Value == nil {
		return
	}
	freshUntil, staleUntil := e.times(now, s.ttl)
	staleUntil = market.Later(staleUntil, s.stretched(e, freshUntil))
	if now.Before(staleUntil) {
		cause := reads.CauseOf(r.Err)
		*r = reads.Result[*T]{Value: e.read}
		if !now.Before(freshUntil) {
			r.Value.MarkStale(cause)
		}
		s.counters.stale.Add(1)
	}
}

// fetch fetches keys from the shared cache or the venue. If refresh is true, the calls have the lowest priority.
func (s *store[K, T]) fetch(ctx context.Context, keys []K, refresh bool) []reads.Result[*T] {
	if s.aliased != nil {
		keys = slices.Clone(keys)
		for i := range keys {
			keys[i] = s.canonicalOf(keys[i])
		}
	}
	if s.shared != nil && !request.From(ctx).Fresh && s.routes[0].unsupported == nil {
		return s.fetchShared(ctx, keys, refresh)
	}
	return s.fetchRoutes(ctx, keys, refresh)
}

// fetchRoutes fetches keys through the coalescers of their routes.
func (s *store[K, T]) fetchRoutes(ctx context.Context, keys []K, refresh bool) []reads.Result[*T] {
	split := make([][]int, len(s.routes))
	for i, key := range keys {
		l := s.kind.route(key)
		split[l] = append(split[l], i)
	}
	for l, indexes := range split {
		if len(indexes) == len(keys) {
			return s.routes[l].do(ctx, keys, refresh)
		}
	}
	out := make([]reads.Result[*T], len(keys))
	var wg sync.WaitGroup
	for l, indexes := range split {
		if len(indexes) == 0 {
			continue
		}
		wg.Go(func() {
			part := make([]K, len(indexes))
			for j, i := range indexes {
				part[j] = keys[i]
			}
			for j, r := range s.routes[l].do(ctx, part, refresh) {
				out[indexes[j]] = r
			}
		})
	}
	wg.Wait()
	return out
}

// Calls returns the number of calls that Fetch would need for keys now. It also counts keys that another request is fetching.
func (s *store[K, T]) Calls(keys []K) (calls int) {
	if len(s.routes) == 1 {
		return s.routes[0].calls(len(keys), bytesOfAll(keys))
	}
	counts, bytes := make([]int, len(s.routes)), make([]int, len(s.routes))
	for _, key := range keys {
		key = s.canonicalOf(key)
		l := s.kind.route(key)
		counts[l]++
		bytes[l] += bytesOf(key)
	}
	for i, l := range s.routes {
		calls += l.calls(counts[i], bytes[i])
	}
	return calls
}

// Batches implements reads.Source.
func (s *store[K, T]) Batches(keys []K) (batches [][]K) {
	split := make([][]K, len(s.routes))
	if len(s.routes) == 1 {
		split[0] = keys
	} else {
		for _, key := range keys {
			l := s.kind.route(s.canonicalOf(key))
			split[l] = append(split[l], key)
		}
	}
	for l, keys := range split {
		batches = slices.AppendSeq(batches, batchesOf(keys, s.routes[l].maxKeys))
	}
	return batches
}

// batchesOf returns the batches of the keys of one endpoint, whose calls can have maxKeys keys. If this is more than one, the keys
// stay together, because the coalescer then fills its calls.
func batchesOf[K any](keys []K, maxKeys int) iter.Seq[[]K] {
	if maxKeys > 1 {
		maxKeys = max(len(keys), 1)
	}
	return slices.Chunk(keys, maxKeys)
}

// answers reports whether the value of an entry contains the data for a key.
func (s *store[K, T]) answers(e *entry[T], key K) bool {
	return s.nested == nil || s.nested.covers(key, e.read.Value)
}

func (s *store[K, T]) slotOf(key K) K {
	if s.nested == nil {
		return key
	}
	return s.nested.slot(key)
}

// fresh returns the value of a key's fresh entry, or false. Coalescers call it before they fetch.
func (s *store[K, T]) fresh(key K) (reads.Value[*T], bool) {
	if e := s.get(key); e != nil && e.fresh(s.clock.Now()) {
		return e.read, true
	}
	return reads.Value[*T]{}, false
}

// freshFor returns the fresh time of a value. For public data, it returns the configured time. So values that one call has read
// expire together, and one call can refresh them. For user data, the fresh time is up to a quarter shorter, and differs from user
// to user. So values of many users that arrive together expire at different times, and the next calls for these users are spread
// over time.
func (s *store[K, T]) freshFor(key K) time.Duration {
	earlier, _ := bits.Mul64(uint64(s.ttl.Fresh/4), s.kind.shift(key))
	return s.ttl.Fresh - time.Duration(earlier)
}

// newEntry returns the entry of a value, or of an absence if value is nil. receivedAt is the time at which the response arrived.
func (s *store[K, T]) newEntry(key K, value *T, receivedAt time.Time) *entry[T] {
	e := &entry[T]{}
	e.read.Value = value
	e.read.ReceivedAt = receivedAt
	e.read.Source = market.SourceREST
	if value == nil {
		e.freshUntil = receivedAt.Add(s.notFound)
	} else {
		e.freshUntil = receivedAt.Add(s.freshFor(key))
		e.read.AsOf = s.kind.asOf(value)
	}
	e.staleUntil = e.freshUntil.Add(s.ttl.Stale)
	if value == nil || s.ttl.Fresh == 0 {
		e.staleUntil = e.freshUntil
	}
	e.read.Handle = reads.NewHandle(e.freshUntil)
	return e
}

// accept stores a fetched value, or an absence if value is nil. It returns the value to serve for the key. If the cache keeps a
// better value, such as a newer streamed value, accept returns that value.
func (s *store[K, T]) accept(key K, value *T, from origin) reads.Value[*T] {
	now := s.clock.Now()
	receivedAt := now
	if !from.receivedAt.IsZero() {
		receivedAt = from.receivedAt
	}
	key = s.kind.own(key, value)
	e := s.newEntry(key, value, receivedAt)
	if value != nil {
		s.kind.learn(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slotOf(key)
	if value != nil {
		s.absent.remove(slot)
		if s.aliased != nil {
			slot = s.slotOf(s.canonicalOf(key)) // learn may have mapped the slug or token to the market's id
			s.absent.remove(slot)
		}
	}
	old := s.entries.get(slot)
	if read, ok := s.storeUnsettled(slot, e, from); ok {
		return read
	}
	if old != nil && old.live() && (value == nil || s.answers(old, key)) {
		return old.read // REST never replaces a live streamed value
	}
	if value == nil {
		s.entries.remove(slot)
		s.replace(s.absent, slot, e)
		return e.read
	}
	if old != nil {
		if old.live() { // the live value does not cover the key
			s.replace(s.entries, s.canonicalOf(key), e)
			return e.read
		}
		if s.nested != nil && now.Before(old.freshUntil) && s.nested.keep(old.read.Value, value) {
			return old.read
		}
		if until := old.overrideEnd(now, s.ttl); now.Before(until) && s.kind.older(value, old.read.Value) {
			if !s.answers(old, key) {
				e.read.Handle.Invalidate()
				return e.read
			}
			// The venue's REST values lag behind its stream, so the streamed value stays until the REST values catch up.
			s.counters.late.Add(1)
			e.read.Value, e.read.AsOf, e.holdsUntil = old.read.Value, old.read.AsOf, until
		}
	}
	s.replace(s.entries, slot, e)
	return e.read
}

// replace stores an entry in one of the fields entries and absent. If the entry is streamed, replace also ends the flights that
// wait for its value. The calling function holds the lock.
func (s *store[K, T]) replace(on *list[K, *entry[T]], key K, e *entry[T]) {
	if e.session == nil && !e.outdated {
		s.inherit(on, key, e)
	}
	e.bytes = overhead(&key, int(unsafe.Sizeof(e))) + allocated(int(unsafe.Sizeof(key))) + allocated(int(unsafe.Sizeof(*e))) + allocated(int(unsafe.Sizeof(*e.read.Handle)))
	if e.read.Value != nil {
		e.bytes += s.kind.weight(e.read.Value)
	}
	on.put(key, e)
	if e.session != nil && len(s.routes) > 0 {
		s.resolve(key, e)
	}
}

// inherit gives a REST entry the handle of the entry that it replaces, if their values are equal. So responses that were made from the
// value stay valid. Otherwise the new handle asks the store for refreshes.
func (s *store[K, T]) inherit(on *list[K, *entry[T]], key K, e *entry[T]) {
	old := on.get(key)
	if old == nil || old.session != nil || old.outdated || !old.read.Handle.Valid() || !reflect.DeepEqual(old.read.Value, e.read.Value) {
		e.read.Handle.SetRefresher(s, key)
		e.read.Handle.Renew(e.freshUntil, e.staleUntil)
		return
	}
	e.read.Value, e.read.Handle = old.read.Value, old.read.Handle
	e.read.Handle.Renew(e.freshUntil, e.staleUntil)
	old.renewed.Store(true)
}

// resolve ends the flights of all keys whose data a streamed entry contains.
func (s *store[K, T]) resolve(slot K, e *entry[T]) {
	for _, c := range s.routes {
		if c.waiting.Load() == 0 {
			continue
		}
		if s.nested == nil {
			c.resolve(slot, e.read)
			continue
		}
		for _, key := range s.nested.keysOf(slot) {
			if s.answers(e, key) {
				c.resolve(key, e.read)
			}
		}
	}
}
