package loaders

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a Source that the test controls. Every result is a new value.
type source[K comparable, T any] struct {
	mu        sync.Mutex
	isFresh   map[K]bool // an element for each cached key: whether the value is fresh
	lookups   [][]K
	fetches   [][]K
	refreshed [][]K
	handles   map[K]*reads.Handle

	blocked chan struct{} // if not nil, each Fetch waits until the test receives from blocked, or until ctx ends
	fetch   func(ctx context.Context, keys []K) []reads.Result[*T]
	look    func(ctx context.Context)
	value   func(key K) *T
	max     int // greatest number of ids in a batch; 0 means any number
}

// prices returns a source of prices in which the given keys are cached.
func prices(cached ...string) *source[string, market.Price] {
	s := &source[string, market.Price]{value: func(key string) *market.Price { return &market.Price{TokenID: key} }}
	return s.setCached(cached...)
}

func (s *source[K, T]) setCached(keys ...K) *source[K, T] {
	s.isFresh = map[K]bool{}
	for _, k := range keys {
		s.isFresh[k] = true
	}
	return s
}

func (s *source[K, T]) answer(key K) (r reads.Result[*T]) {
	if s.handles == nil {
		s.handles = map[K]*reads.Handle{}
	}
	s.handles[key] = reads.NewHandle(time.Now().Add(time.Minute))
	if s.value != nil {
		r.Value.Value = s.value(key)
	}
	r.Value.Handle = s.handles[key]
	return r
}

func (s *source[K, T]) Lookup(ctx context.Context, keys []K, out []reads.Result[*T], missing []int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.look != nil {
		s.look(ctx)
	}
	s.lookups = append(s.lookups, slices.Clone(keys))
	for i, k := range keys {
		fresh, known := s.isFresh[k]
		if !known {
			missing = append(missing, i)
			continue
		}
		out[i] = s.answer(k)
		out[i].Value.Stale = !fresh
	}
	return missing
}

func (s *source[K, T]) Refresh(_ context.Context, keys []K) {
	s.refreshed = append(s.refreshed, slices.Clone(keys))
}

// Calls counts one call for every two keys.
func (s *source[K, T]) Calls(keys []K) int { return (len(keys) + 1) / 2 }

// Batches puts all ids into one batch, or max ids. Other keys are batches of their own, as at the venue.
func (s *source[K, T]) Batches(keys []K) [][]K {
	size := s.max
	switch any(keys).(type) {
	case []string, []market.MarketRef:
		size = cmp.Or(size, len(keys))
	}
	return slices.Collect(slices.Chunk(keys, max(size, 1)))
}

func (s *source[K, T]) Fetch(ctx context.Context, keys []K) []reads.Result[*T] {
	s.mu.Lock()
	s.fetches = append(s.fetches, slices.Clone(keys))
	s.mu.Unlock()
	out := make([]reads.Result[*T], len(keys))
	if s.blocked != nil {
		select {
		case s.blocked <- struct{}{}:
		case <-ctx.Done():
			for i := range out {
				out[i].Err = market.Errorf(market.CodeUpstreamTimeout, "no answer in time").Because(ctx.Err())
			}
			return out
		}
	}
	if s.fetch != nil {
		return s.fetch(ctx, keys)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range keys {
		out[i] = s.answer(k)
	}
	return out
}

// newSet returns a Set. The test's cleanup calls Done.
func newSet(t *testing.T, sources Sources) (*Set, *request.Dependencies) {
	t.Helper()
	ctx, set, recorder := With(t.Context(), sources)
	if From(ctx) != set {
		t.Fatal("From did not return the set of With")
	}
	t.Cleanup(set.Done)
	return set, recorder
}

type results = []reads.Result[*market.Price]

func getMany(set *Set, keys ...string) results {
	out := make(results, len(keys))
	for i := range out {
		out[i].Err = errors.New("not overwritten")
	}
	set.Prices.GetMany(keys, out)
	return out
}

func fetch(t *testing.T, set *Set) {
	t.Helper()
	if err := set.Fetch(t.Context()); err != nil || set.Pending() {
		t.Fatalf("Fetch returned the error %v with pending %v, want neither", err, set.Pending())
	}
}

// wantTokens checks that the results are the prices of tokens.
func wantTokens(t *testing.T, rs results, tokens ...string) {
	t.Helper()
	for i, r := range rs {
		if r.Err != nil || r.Value.Value == nil || r.Value.Value.TokenID != tokens[i] {
			t.Errorf("token %s: got %+v, want its price", tokens[i], r)
		}
	}
}

// TestMissingKeysAreOneBatch checks that Fetch sends all missing keys in one batch, without a delay.
func TestMissingKeysAreOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := prices("hit")
		set, recorder := newSet(t, Sources{Prices: s})
		start := time.Now()
		if _, err := set.Prices.Get("hit"); err != nil || set.Pending() {
			t.Errorf("a read of a cached key: got error %v, pending %v; want neither", err, set.Pending())
		}
		if set.Prices.Prefetch([]string{"ahead", "hit"}); set.Pending() {
			t.Error("a prefetch makes the pass pending")
		}
		if _, err := set.Prices.Get("one"); err != ErrPending || !set.Pending() {
			t.Errorf("a read of a missing key: got error %v, pending %v; want ErrPending and true", err, set.Pending())
		}
		rs := getMany(set, "many", "one", "many", "hit")
		if rs[0].Err != ErrPending || rs[1].Err != ErrPending || rs[2].Err != ErrPending || rs[3].Err != nil {
			t.Errorf("GetMany: got %+v, want ErrPending for all keys but the last", rs)
		}
		if len(s.fetches) != 0 {
			t.Errorf("fetched %v before the pass ended", s.fetches)
		}
		fetch(t, set)
		want := []string{"ahead", "one", "many"}
		if len(s.fetches) != 1 || !slices.Equal(s.fetches[0], want) || time.Since(start) != 0 {
			t.Errorf("fetched %v after %s, want %v in one call at once", s.fetches, time.Since(start), want)
		}
		wantTokens(t, getMany(set, want...), want...)
		if set.Pending() || len(s.lookups) != 4 || len(s.fetches) != 1 {
			t.Errorf("got pending %v, look-ups %v, fetches %v; want false, 4 look-ups and one fetch", set.Pending(), s.lookups, s.fetches)
		}
		if got := handlesOf(recorder); len(got) != 4 {
			t.Errorf("got %d recorded handles, want 4", len(got))
		}
	})
}

// TestKeyHasOneValueInAResponse checks that a key keeps its value within a response even if the cache changes.
func TestKeyHasOneValueInAResponse(t *testing.T) {
	s := prices("hit", "other")
	set, _ := newSet(t, Sources{Prices: s})
	first := getMany(set, "hit", "miss", "hit")
	fetch(t, set)
	first = append(first[:1], getMany(set, "miss")...)
	s.setCached("miss")
	for range 3 {
		for i, key := range []string{"hit", "miss"} {
			if r, err := set.Prices.Get(key); err != nil || r.Value != first[i].Value.Value {
				t.Errorf("Get of %s: got %+v, want the earlier value %+v", key, r, first[i])
			}
		}
		if again := getMany(set, "miss", "hit"); again[0] != first[1] || again[1] != first[0] {
			t.Errorf("GetMany of miss and hit: got %+v, want the earlier values of hit and miss %+v", again, first)
		}
	}
	if fmt.Sprint(s.lookups) != "[[hit miss]]" {
		t.Errorf("got look-ups %v, want one of hit and miss", s.lookups)
	}
	next, _ := newSet(t, Sources{Prices: s})
	if r := getMany(next, "miss"); r[0].Value.Value == first[1].Value.Value {
		t.Error("the next response got the value of the previous response")
	}
}

func TestPeekReadsNothing(t *testing.T) {
	s := prices("hit")
	set, _ := newSet(t, Sources{Prices: s})
	if _, ok := set.Prices.Peek("hit"); ok || len(s.lookups) != 0 {
		t.Errorf("Peek before Prefetch: got ok %v and look-ups %v, want false and none", ok, s.lookups)
	}
	set.Prices.Prefetch([]string{"hit", "miss"})
	if read, ok := set.Prices.Peek("hit"); !ok || read.Value.TokenID != "hit" {
		t.Errorf("Peek of a cached key: got %+v, ok %v; want the price", read, ok)
	}
	if _, ok := set.Prices.Peek("miss"); ok || set.Pending() {
		t.Errorf("Peek of a missing key: got ok %v, pending %v; want neither", ok, set.Pending())
	}
}

// TestDoneRefreshesStaleKeys checks that Done refreshes all stale keys with one call of Refresh, each key
// once.
func TestDoneRefreshesStaleKeys(t *testing.T) {
	s := prices("fresh", "a", "b")
	s.isFresh["a"], s.isFresh["b"] = false, false
	_, set, _ := With(t.Context(), Sources{Prices: s})
	for _, key := range []string{"a", "fresh", "b", "a", "miss"} {
		_, _ = set.Prices.Get(key)
	}
	fetch(t, set)
	_, _ = set.Prices.Get("a")
	if len(s.refreshed) != 0 {
		t.Errorf("before Done: got refreshes of %v, want none", s.refreshed)
	}
	set.Done()
	if fmt.Sprint(s.refreshed) != "[[a b]]" {
		t.Errorf("after Done: got refreshes of %v, want one of a and b", s.refreshed)
	}
}

// TestReadsAreCountedOnce checks that each key counts once, however often it is read.
func TestReadsAreCountedOnce(t *testing.T) {
	s := prices("hit", "stale", "absent")
	s.isFresh["stale"] = false
	s.value = func(key string) *market.Price {
		if key == "absent" {
			return nil
		}
		return &market.Price{TokenID: key}
	}
	s.fetch = func(_ context.Context, keys []string) results {
		out := make(results, len(keys))
		for i, key := range keys {
			out[i] = s.answer(key)
			out[i].Value.Stale = true
		}
		return out
	}
	var j request.Log
	ctx, set, _ := With(request.WithLog(t.Context(), &j), Sources{Prices: s})
	defer set.Done()
	set.Complete(ctx, func() {
		for range 2 {
			getMany(set, "hit", "stale", "absent", "miss")
		}
	})
	if got, want := j.Counts(upstream.KindPrice), (request.CacheCounts{Hits: 1, Stale: 1, Absent: 1, Misses: 1, Excused: 1}); got != want {
		t.Errorf("got counts %+v, want %+v", got, want)
	}
}

// TestErrorsEndWithTheResponse checks that Dependencies.Snapshot returns false after a failed read, and that the next response
// fetches the key again.
func TestErrorsEndWithTheResponse(t *testing.T) {
	s := prices()
	s.fetch = func(_ context.Context, keys []string) results {
		return slices.Repeat(results{{Err: market.Errorf(market.CodeUpstreamUnavailable, "down")}}, len(keys))
	}
	set, recorder := newSet(t, Sources{Prices: s})
	getMany(set, "a", "b")
	fetch(t, set)
	for _, r := range getMany(set, "a", "b") {
		if market.CodeOf(r.Err) != market.CodeUpstreamUnavailable || set.Pending() {
			t.Errorf("got %+v, pending %v; want UPSTREAM_UNAVAILABLE and false", r, set.Pending())
		}
	}
	if _, ok := recorder.Snapshot(); ok || len(s.fetches) != 1 {
		t.Errorf("after a failed read: Snapshot returned ok %v and %v was fetched, want false and one call", ok, s.fetches)
	}
	s.fetch = nil
	next, recorder := newSet(t, Sources{Prices: s})
	getMany(next, "a")
	fetch(t, next)
	wantTokens(t, getMany(next, "a"), "a")
	if _, ok := recorder.Snapshot(); !ok {
		t.Error("Snapshot returned false for a response without failed reads")
	}
}

// TestBadSources checks that only the reads of the fetched keys fail if a source panics or returns a wrong number of results.
func TestBadSources(t *testing.T) {
	var printed bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&printed)
	for name, bad := range map[string]func(keys []string) results{
		"panic":               func([]string) results { panic("boom") },
		"one result too few":  func(keys []string) results { return make(results, len(keys)-1) },
		"one result too many": func(keys []string) results { return make(results, len(keys)+1) },
		"no results":          func([]string) results { return nil },
	} {
		s := prices()
		s.fetch = func(_ context.Context, keys []string) results { return bad(keys) }
		set, _ := newSet(t, Sources{Prices: s})
		getMany(set, "a", "b")
		fetch(t, set)
		rs := getMany(set, "a", "b")
		for _, r := range rs {
			if market.CodeOf(r.Err) != market.CodeInternal || r.Value.Value != nil {
				t.Errorf("source %q: got %+v, want INTERNAL and no value", name, r)
			}
		}
		if name == "panic" && (!strings.Contains(rs[0].Err.Error(), "boom") || !strings.Contains(rs[0].Err.Error(), "loaders_test.go")) {
			t.Errorf("got error %v, want the text of the panic and its stack", rs[0].Err)
		}
		s.fetch = nil
		getMany(set, "c")
		fetch(t, set)
		wantTokens(t, getMany(set, "c"), "c")
	}
	if printed.Len() > 0 {
		t.Errorf("package log printed %q, want nothing", &printed)
	}
}

// TestPanicInALookup checks that GetMany does not recover a panic in Lookup, and that later reads of the same keys return an
// error.
func TestPanicInALookup(t *testing.T) {
	s := prices("a", "b")
	s.look = func(context.Context) { panic("boom") }
	set, _ := newSet(t, Sources{Prices: s})
	func() {
		defer func() { _ = recover() }()
		getMany(set, "a", "b")
		t.Error("GetMany did not panic")
	}()
	s.look = nil
	for _, key := range []string{"a", "b"} {
		if r, err := set.Prices.Get(key); market.CodeOf(err) != market.CodeInternal || set.Pending() {
			t.Errorf("key %s: got %+v, error %v; want INTERNAL", key, r, err)
		}
	}
	if r, err := set.Prices.Get("c"); err != ErrPending {
		t.Errorf("key c: got %+v, error %v; want ErrPending", r, err)
	}
}

// TestGetFresh checks that GetFresh reads a stale value again once, also if the new value is stale, and that it reads nothing after Fail.
func TestGetFresh(t *testing.T) {
	s := prices("fresh", "stale", "old")
	s.isFresh["stale"], s.isFresh["old"] = false, false
	s.fetch = func(_ context.Context, keys []string) results {
		out := make(results, len(keys))
		for i, key := range keys {
			out[i] = s.answer(key)
			out[i].Value.Stale = key == "old"
		}
		return out
	}
	_, set, _ := With(t.Context(), Sources{Prices: s})
	if first := getMany(set, "stale"); !first[0].Value.Stale {
		t.Errorf("Get: got %+v, want a stale value", first[0])
	}
	for key, want := range map[string]error{"fresh": nil, "stale": ErrPending, "old": ErrPending} {
		if _, err := set.Prices.GetFresh(key); err != want {
			t.Errorf("%s: got the error %v, want %v", key, err, want)
		}
	}
	fetch(t, set)
	for key, stale := range map[string]bool{"fresh": false, "stale": false, "old": true} {
		if r, err := set.Prices.GetFresh(key); err != nil || r.Stale != stale {
			t.Errorf("%s after Fetch: got %+v and the error %v, want stale %v", key, r, err, stale)
		}
	}
	set.Done()
	if len(s.fetches) != 1 || len(s.fetches[0]) != 2 || s.refreshed != nil {
		t.Errorf("got the fetches %v and refreshes %v, want one fetch of two keys", s.fetches, s.refreshed)
	}

	_, set, _ = With(t.Context(), Sources{Prices: s})
	defer set.Done()
	set.Fail(context.Canceled)
	if r, err := set.Prices.GetFresh("stale"); err != nil || !r.Stale {
		t.Errorf("after Fail: got %+v and the error %v, want the stale value", r, err)
	}
}

// TestGetFreshAfterAWait checks that GetFresh reads a value again, once, whose fresh time has ended since the response has read it.
func TestGetFreshAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := prices()
		s.fetch = func(_ context.Context, keys []string) results {
			r := s.answer(keys[0])
			r.Value.ReceivedAt, r.Value.Handle = time.Now(), reads.NewHandle(time.Now().Add(time.Second))
			return results{r}
		}
		set, _ := newSet(t, Sources{Prices: s})
		read := func(want error, stale bool) {
			t.Helper()
			if r, err := set.Prices.GetFresh("a"); err != want || r.Stale != stale {
				t.Errorf("got %+v and the error %v, want the error %v and stale %v", r, err, want, stale)
			}
		}
		read(ErrPending, false)
		fetch(t, set)
		read(nil, false)
		time.Sleep(time.Second)
		read(ErrPending, false)
		fetch(t, set)
		read(nil, false)
		time.Sleep(time.Second)
		read(nil, true)
	})
}
