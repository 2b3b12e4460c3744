package cache

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// TTL is how long an entry answers.
type TTL struct {
	// Fresh is how long an entry answers without a question; 0 means that it never does.
	Fresh time.Duration
	// Stale is how long past its fresh time an entry still answers while it is refreshed.
	Stale time.Duration
}

const (
	// refreshTimeout bounds the wait of a refresh for its own result, and so the life of the call that it alone wants.
	refreshTimeout = 10 * time.Second
	// refreshPatience bounds it while refreshes wait for their turn in the budget.
	refreshPatience = 75 * time.Second
	// refreshPause is the time between a refresh that failed and the next, so that a venue that fails fast is not asked
	// by every reader.
	refreshPause = time.Second
	// short and scarce are the parts of the budget below which stale data is served for longer, and below which the stream
	// is asked for what is missing and refreshes may have to wait.
	short, scarce = 0.25, 0.5
	// recency is how exactly the watcher knows when an entry that it streams was asked for, so that reading it is no writing
	// mostly.
	recency = int64(time.Second)
	// never is later than any time.
	never = math.MaxInt64
)

// entry is a value that was read, or the absence of one. It does not change after it was published.
//
// What every reader looks at comes first, so that it lies together.
type entry[T any] struct {
	// used tells that it was read, see shelf.
	used atomic.Bool
	read market.Read[*T]
	// session is that of a streamed value, whose times begin when the session ends or the value is cut off from it.
	session    *market.Session
	cut        atomic.Int64
	freshUntil time.Time
	// toldAt is when the watcher was last told of a reader, in nanoseconds since 1970.
	toldAt     atomic.Int64
	staleUntil time.Time
	// refreshAt is from when on a reader who finds the entry stale may refresh it, in nanoseconds since 1970.
	refreshAt atomic.Int64
	// overtaken tells that what was read has changed since: it answers only where the venue fails.
	overtaken bool
	// awaits is until when an overtaken entry answers all the same, since the venue would not answer otherwise; zero for not at all.
	awaits time.Time
	// bytes is what the entry takes, its key included.
	bytes int
	// held is until when a value that was streamed holds against older ones, after an answer took its place as an entry.
	held time.Time
}

// times returns until when the entry is fresh and may be served stale. A streamed entry is fresh while it is live.
func (e *entry[T]) times(now time.Time, ttl TTL) (freshUntil, staleUntil time.Time) {
	if e.session == nil {
		return e.freshUntil, e.staleUntil
	}
	end, ended := e.session.Ended()
	if cut := e.cut.Load(); cut != 0 && (!ended || cut < end.UnixNano()) {
		end, ended = time.Unix(0, cut), true
	}
	if !ended {
		end = now.Add(time.Second)
	}
	return end, end.Add(ttl.Stale)
}

// fresh reports whether the entry answers without a question, which is all that most readers need to know of its times.
func (e *entry[T]) fresh(now time.Time) bool {
	if e.session != nil {
		return e.live()
	}
	return now.Before(e.freshUntil)
}

// due reports whether it is time to tell the watcher of a reader again, which is noted then.
func (e *entry[T]) due(at int64) bool {
	before := e.toldAt.Load()
	return at-before >= recency && e.toldAt.CompareAndSwap(before, at)
}

// use notes that the entry was read.
func (e *entry[T]) use() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// live reports whether the entry is streamed and its session lasts.
func (e *entry[T]) live() bool {
	if e.session == nil || e.cut.Load() != 0 {
		return false
	}
	_, ended := e.session.Ended()
	return !ended
}

// store keeps one kind of data. It is safe for concurrent use.
type store[K comparable, T any] struct {
	kind     reqctx.Kind
	ttl      TTL
	notFound time.Duration
	clock    market.Clock
	entries  *shelf[K, T]
	absent   *shelf[K, T]
	counters counters
	tasks    *tasks

	// lanes are the ways to fetch keys, lane picks one; nil means the first.
	lanes []*coalescer[K, T]
	lane  func(K) int
	// canonical returns the key under which a key is known best, so that equal reads meet; nil means the key itself.
	canonical func(K) K
	// alias reports whether a key may mean what another key means; nil means that none does.
	alias func(K) bool
	// slot returns the key that the entry of a canonical key is stored under; nil means the key itself.
	slot func(K) K
	// learn is told of every fetched value before it is stored; nil means that there is nothing to learn.
	learn func(*T)
	// widen returns the key to refresh a stale value by, where it knows more than it was asked for; nil means the key.
	widen func(K, *T) K
	// covers reports whether a value can answer for a key; nil means that it always can.
	covers func(K, *T) bool
	// keep reports whether a fresh old value is to be kept although a new one has arrived, for whose key it can answer
	// too; nil means never.
	keep func(old, fetched *T) bool
	// own returns a key that holds on to nothing but itself and the value that was fetched for it, which is nil where there is none.
	own func(key K, value *T) K
	// weigh returns about how many bytes a value takes.
	weigh func(*T) int
	// asOf returns the venue's time of a value.
	asOf func(*T) time.Time
	// older reports whether a is an older state than b; only kinds that are streamed have it.
	older func(a, b *T) bool
	// asked is told which of the keys that were asked for exist, and must not keep them; nil where nobody wants to know.
	asked func(demand uint64, caller string, keys []K)
	// urge is told which keys are missing while the budget is scarce; nil where nothing else could answer them.
	urge func(caller string, keys []K)
	// queries returns the canonical keys whose entries may lie in a slot; nil means the slot itself.
	queries func(slot K) []K
	// stretch is how long past its fresh time an entry is served while the budget is short, left is what is left of that.
	stretch time.Duration
	left    func() float64

	// changed holds, by slot, the last change that the stream announced of it, numbered by changes; nil where it announces none.
	changed *lru.Cache[K, *change]
	changes atomic.Uint64
	// amend returns a value with the stream's words in it, the same where it agrees. later reports that the value is further on.
	amend func(w *words, value *T) (amended *T, later bool)

	// mu orders replacements, so that every entry that goes is told so.
	mu sync.Mutex
}

// tell says which of the keys that were asked for exist.
func (s *store[K, T]) tell(ctx context.Context, keys []K, results []market.Result[market.Read[*T]]) {
	if s.asked == nil || !reqctx.CountsAsPoll(ctx) {
		return
	}
	exist := keys
	for i := range keys {
		if results[i].Value.Value == nil {
			exist = existing(keys, results)
			break
		}
	}
	if len(exist) > 0 {
		s.asked(reqctx.PollFrom(ctx), reqctx.CallerFrom(ctx), exist)
	}
}

// existing returns the keys that a value was found for.
func existing[K comparable, T any](keys []K, results []market.Result[market.Read[*T]]) []K {
	var exist []K
	for i := range keys {
		if results[i].Value.Value != nil {
			exist = append(exist, keys[i])
		}
	}
	return exist
}

// Fetch asks the venue for keys, aligned with them, and waits under ctx. Equal keys of all callers are asked once. What the
// venue fails to answer is served from memory within its stale time, and within the longer one when the budget is why.
func (s *store[K, T]) Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]] {
	if s.urge != nil && reqctx.CountsAsPoll(ctx) && s.left() < scarce {
		s.urge(reqctx.CallerFrom(ctx), keys)
	}
	out := s.fetch(ctx, keys, false)
	for i := range out {
		if out[i].Err != nil {
			s.excuse(keys[i], &out[i])
		}
	}
	s.tell(ctx, keys, out)
	return out
}

// excuse puts a stale value in the place of an error, where there is one that may be served.
func (s *store[K, T]) excuse(key K, r *market.Result[market.Read[*T]]) {
	var limited bool
	switch market.CodeOf(r.Err) {
	case market.CodeRateLimited:
		limited = true
	case market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse:
	default:
		return
	}
	now := s.clock.Now()
	e := s.get(key)
	if e == nil || e.read.Value == nil {
		return
	}
	freshUntil, staleUntil := e.times(now, s.ttl)
	if long := s.stretched(e, freshUntil); limited && long.After(staleUntil) {
		staleUntil = long
	}
	if now.Before(staleUntil) {
		e.use()
		*r = market.Result[market.Read[*T]]{Value: e.read}
		r.Value.Stale = !now.Before(freshUntil)
		s.counters.stale.Add(1)
	}
}

// fetch asks the venue for keys. A refresh is what nobody waits for.
func (s *store[K, T]) fetch(ctx context.Context, keys []K, refresh bool) []market.Result[market.Read[*T]] {
	if s.canonical != nil {
		keys = slices.Clone(keys)
		for i := range keys {
			keys[i] = s.canonical(keys[i])
		}
	}
	split := make([][]int, len(s.lanes))
	for i, key := range keys {
		l := s.laneOf(key)
		split[l] = append(split[l], i)
	}
	for l, indexes := range split {
		if len(indexes) == len(keys) {
			return s.lanes[l].do(ctx, keys, refresh)
		}
	}
	out := make([]market.Result[market.Read[*T]], len(keys))
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
			for j, r := range s.lanes[l].do(ctx, part, refresh) {
				out[indexes[j]] = r
			}
		})
	}
	wg.Wait()
	return out
}

// Calls returns the number of upstream calls that fetching keys takes at present. Keys that are on their way for others count, too.
func (s *store[K, T]) Calls(keys []K) (calls int) {
	if len(s.lanes) == 1 {
		return s.lanes[0].calls(len(keys), bytesOfAll(keys))
	}
	counts, bytes := make([]int, len(s.lanes)), make([]int, len(s.lanes))
	for _, key := range keys {
		if s.canonical != nil {
			key = s.canonical(key)
		}
		l := s.laneOf(key)
		counts[l]++
		bytes[l] += bytesOf(key)
	}
	for i, l := range s.lanes {
		calls += l.calls(counts[i], bytes[i])
	}
	return calls
}

func (s *store[K, T]) laneOf(key K) int {
	if s.lane == nil {
		return 0
	}
	return s.lane(key)
}

// Refresh fetches the stale entries of keys in the background, with as few calls as carry them. Keys whose entry is fresh or
// being refreshed are left out, as are those whose refresh has just failed.
func (s *store[K, T]) Refresh(ctx context.Context, keys []K) {
	now := s.clock.Now()
	var due []K
	var stale []*entry[T]
	for i, key := range keys {
		e := s.get(key)
		if e == nil || e.fresh(now) || !e.claimRefresh(now) {
			continue
		}
		if s.widen != nil {
			key = s.widen(key, e.read.Value)
		}
		if due == nil {
			due, stale = make([]K, 0, len(keys)-i), make([]*entry[T], 0, len(keys)-i)
		}
		due, stale = append(due, key), append(stale, e)
	}
	if len(due) > 0 {
		s.refresh(ctx, due, stale)
	}
}

// claimRefresh reports whether the caller is to refresh the entry. Nobody else is until the refresh has failed.
func (e *entry[T]) claimRefresh(now time.Time) bool {
	due := e.refreshAt.Load()
	return now.UnixNano() >= due && e.refreshAt.CompareAndSwap(due, never)
}

// refresh fetches the keys of stale entries in the background. It waits at most refreshTimeout. Where refreshes wait for their
// turn in the budget it waits for refreshPatience, because one that gave up would lose its turn.
func (s *store[K, T]) refresh(ctx context.Context, keys []K, stale []*entry[T]) {
	caller := reqctx.CallerFrom(ctx)
	var credentials *market.Credentials
	if s.lanes[0].scope != nil { // else nobody looks who asks, and the reader's recorder is not told that somebody did
		credentials = reqctx.CredentialsFrom(ctx)
	}
	s.tasks.start(func() {
		timeout := refreshTimeout
		if s.left() < scarce {
			timeout = refreshPatience
		}
		wait, cancel := context.WithTimeout(s.tasks.ctx, timeout)
		defer cancel()
		wait = reqctx.WithCaller(wait, caller)
		if credentials != nil {
			wait = reqctx.WithCredentials(wait, credentials)
		}
		s.fetch(wait, keys, true)
		again := s.clock.Now().Add(refreshPause).UnixNano()
		for _, e := range stale {
			e.refreshAt.Store(again) // matters where the refresh has failed and the entry still stands
		}
	})
}

// answers reports whether an entry's value can answer for a key.
func (s *store[K, T]) answers(e *entry[T], key K) bool {
	return s.covers == nil || s.covers(key, e.read.Value)
}

func (s *store[K, T]) slotOf(key K) K {
	if s.slot == nil {
		return key
	}
	return s.slot(key)
}

// fresh returns the value of a key whose entry is fresh; coalescers ask before they fetch.
func (s *store[K, T]) fresh(key K) (market.Read[*T], bool) {
	if e := s.get(key); e != nil && e.fresh(s.clock.Now()) {
		return e.read, true
	}
	return market.Read[*T]{}, false
}

// accept stores what was fetched for a key, nil meaning that there is nothing, and returns it as read.
func (s *store[K, T]) accept(key K, value *T, from origin) market.Read[*T] {
	now := s.clock.Now()
	key = s.own(key, value)
	e := &entry[T]{}
	e.read.Value = value
	e.read.ReceivedAt = now
	e.read.Source = market.SourceREST
	if value == nil {
		e.freshUntil = now.Add(s.notFound)
	} else {
		e.freshUntil = now.Add(s.ttl.Fresh)
		e.read.AsOf = s.asOf(value)
	}
	e.staleUntil = e.freshUntil.Add(s.ttl.Stale)
	if value == nil || s.ttl.Fresh == 0 {
		e.staleUntil = e.freshUntil
	}
	e.read.Handle = market.NewHandleOfAge(e.freshUntil, from.age)

	if value != nil && s.learn != nil {
		s.learn(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slotOf(key)
	if value != nil {
		s.absent.remove(slot)
		if s.canonical != nil {
			slot = s.slotOf(s.canonical(key)) // the value itself may have taught a better one
			s.absent.remove(slot)
		}
	}
	old := s.entries.get(slot)
	if read, ok := s.unsettled(slot, e, from); ok {
		return read
	}
	if old != nil && old.live() && (value == nil || s.answers(old, key)) {
		return old.read // what is streamed is never overwritten
	}
	if value == nil {
		s.entries.remove(slot)
		s.replace(s.absent, slot, e)
		return e.read
	}
	if old != nil {
		if old.live() { // and does not reach as far
			if s.canonical != nil {
				key = s.canonical(key)
			}
			s.replace(s.entries, key, e)
			return e.read
		}
		if s.keep != nil && now.Before(old.freshUntil) && s.keep(old.read.Value, value) {
			return old.read
		}
		if until := old.holds(now, s.ttl); now.Before(until) && (s.older != nil && s.older(value, old.read.Value) || from.before(now, until.Add(-trailing))) {
			if !s.answers(old, key) {
				e.read.Handle.Invalidate()
				return e.read
			}
			// The venue's REST answers lag behind what it streamed: it is that which holds until they catch up.
			s.counters.late.Add(1)
			e.read.Value, e.read.AsOf, e.held = old.read.Value, old.read.AsOf, until
		}
	}
	s.replace(s.entries, slot, e)
	return e.read
}

// replace puts an entry in the place of another, and lets those know who wait for it.
func (s *store[K, T]) replace(on *shelf[K, T], key K, e *entry[T]) {
	e.bytes = overhead[K, T]() + keyTexts(key)
	if e.read.Value != nil {
		e.bytes += s.weigh(e.read.Value)
	}
	if n := on.put(key, e); n > 0 {
		s.counters.evictions.Add(uint64(n))
	}
	if e.session != nil && len(s.lanes) > 0 {
		s.land(key, e)
	}
}

// land answers those who wait for the venue by a streamed entry.
func (s *store[K, T]) land(slot K, e *entry[T]) {
	for _, c := range s.lanes {
		if c.waiting.Load() == 0 {
			continue
		}
		if s.queries == nil {
			c.land(slot, e.read)
			continue
		}
		for _, key := range s.queries(slot) {
			if s.answers(e, key) {
				c.land(key, e.read)
			}
		}
	}
}

// said counts what a look-up gave.
func (c *counters) said(r reqctx.CacheCounts) {
	for _, n := range [...]struct {
		counter *atomic.Uint64
		keys    uint32
	}{{&c.hits, r.Hits}, {&c.stale, r.Stale}, {&c.notFound, r.Absent}, {&c.misses, r.Misses}} {
		if n.keys > 0 {
			n.counter.Add(uint64(n.keys))
		}
	}
}

// counters count what became of keys.
type counters struct {
	hits, stale, misses, notFound, coalesced, calls, keys, late, evictions atomic.Uint64
}
