package loaders

import (
	"bytes"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type results = []market.Result[market.Read[*string]]

// source is a Source of strings that a test decides on. Every answer is a new one.
type source struct {
	mu      sync.Mutex
	cached  map[string]bool
	lookups [][]string
	fetches [][]string
	answers int
	handles map[string]*market.Handle

	gate  chan struct{} // each fetch waits to be received from, or for its context
	fetch func(keys []string) results
	look  func()
}

func (s *source) answer(key string) market.Result[market.Read[*string]] {
	s.answers++
	value := fmt.Sprintf("%s#%d", key, s.answers)
	h := market.NewHandle(time.Now())
	if s.handles == nil {
		s.handles = map[string]*market.Handle{}
	}
	s.handles[key] = h
	return market.Result[market.Read[*string]]{Value: market.Read[*string]{Value: &value, Meta: market.Meta{Handle: h}}}
}

func (s *source) Lookup(_ context.Context, keys []string, out []market.Result[market.Read[*string]], missing []int) []int {
	if s.look != nil {
		s.look()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups = append(s.lookups, slices.Clone(keys))
	for i, k := range keys {
		if s.cached[k] {
			out[i] = s.answer(k)
		} else {
			missing = append(missing, i)
		}
	}
	return missing
}

// Refresh implements Source.
func (*source) Refresh(context.Context, []string) {}

func (s *source) Fetch(ctx context.Context, keys []string) []market.Result[market.Read[*string]] {
	s.mu.Lock()
	s.fetches = append(s.fetches, slices.Clone(keys))
	s.mu.Unlock()
	if s.gate != nil {
		select {
		case s.gate <- struct{}{}:
		case <-ctx.Done():
			out := make(results, len(keys))
			for i := range out {
				out[i].Err = ctx.Err()
			}
			return out
		}
	}
	if s.fetch != nil {
		return s.fetch(keys)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(results, len(keys))
	for i, k := range keys {
		out[i] = s.answer(k)
	}
	return out
}

func (s *source) cache(keys ...string) *source {
	s.cached = map[string]bool{}
	for _, k := range keys {
		s.cached[k] = true
	}
	return s
}

// open returns a loader over s as a response has it, and the response's recorder.
func open(ctx context.Context, s *source) (*Loader[string, string], *market.Recorder) {
	ctx, recorder := market.WithRecorder(ctx)
	return newLoader[string, string](&response{ctx: ctx, recorder: recorder}, market.KindPrice, s, true), recorder
}

func newLoader[K comparable, T any](of *response, kind market.Kind, source Source[K, T], gathers bool) *Loader[K, T] {
	l := &Loader[K, T]{}
	l.begin(of, kind, source, gathers)
	return l
}

func getMany(l *Loader[string, string], keys ...string) results {
	out := make(results, len(keys))
	l.GetMany(keys, out)
	return out
}

func values(t *testing.T, rs results) (out []string) {
	t.Helper()
	for _, r := range rs {
		if r.Err != nil || r.Value.Value == nil {
			t.Fatalf("%+v", r)
		}
		out = append(out, *r.Value.Value)
	}
	return out
}

// A list is one look-up and one fetch of what is missing, without waiting for a timer.
func TestListIsOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&source{}).cache("b", "d")
		l, _ := open(t.Context(), s)
		start := time.Now()
		got := values(t, getMany(l, "a", "b", "a", "c", "d", "b"))
		for i, key := range []string{"a", "b", "a", "c", "d", "b"} {
			if !strings.HasPrefix(got[i], key+"#") {
				t.Errorf("%s for %s", got[i], key)
			}
		}
		if got[0] != got[2] || got[1] != got[5] {
			t.Errorf("a key has two values: %v", got)
		}
		if len(s.lookups) != 1 || !slices.Equal(s.lookups[0], []string{"a", "b", "c", "d"}) {
			t.Errorf("looked up %v", s.lookups)
		}
		if len(s.fetches) != 1 || !slices.Equal(s.fetches[0], []string{"a", "c"}) {
			t.Errorf("fetched %v", s.fetches)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("waited %s", waited)
		}
		getMany(l, "d", "c", "b", "a")
		getMany(l)
		l.Prefetch(nil)
		if len(s.lookups) != 1 || len(s.fetches) != 1 {
			t.Errorf("what is known is asked for again: %v, %v", s.lookups, s.fetches)
		}
	})
}

func TestHitsNeedNoGoroutine(t *testing.T) {
	s := (&source{}).cache("a", "b")
	l, _ := open(t.Context(), s)
	values(t, getMany(l, "a", "b"))
	if _, err := l.Get("a"); err != nil || l.batch != nil {
		t.Errorf("%v, a batch %v", err, l.batch)
	}
}

// Within a response a key has one value, whatever becomes of the cache.
func TestKeyHasOneValueInAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&source{}).cache("hit")
		l, _ := open(t.Context(), s)
		first := values(t, getMany(l, "hit", "miss"))
		s.cache("miss") // and each answer is another
		for range 3 {
			for i, key := range []string{"hit", "miss"} {
				if r, err := l.Get(key); err != nil || *r.Value != first[i] {
					t.Errorf("%s is %s now; was %s", key, *r.Value, first[i])
				}
			}
			if again := values(t, getMany(l, "miss", "hit")); again[0] != first[1] || again[1] != first[0] {
				t.Errorf("%v now; was %v", again, first)
			}
		}
		if next, _ := open(t.Context(), s); values(t, getMany(next, "miss"))[0] == first[1] {
			t.Error("another response has the value of this one")
		}
	})
}

// Keys that are asked for alone gather for a millisecond.
func TestStragglersGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		l, _ := open(t.Context(), s)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 19 * time.Microsecond) // the last at 0.93 ms
				key := fmt.Sprint(i % 40)
				if r, err := l.Get(key); err != nil || !strings.HasPrefix(*r.Value, key+"#") {
					t.Errorf("%s: %+v, %v", key, r, err)
				}
			})
		}
		wg.Wait()
		if len(s.fetches) != 1 || len(s.fetches[0]) != 40 {
			t.Errorf("fetched %v", s.fetches)
		}
		if waited := time.Since(start); waited != stragglers {
			t.Errorf("waited %s", waited)
		}
	})
}

// A list that leaves takes the stragglers along, also when it has no key of its own to send for.
func TestListTakesStragglersAlong(t *testing.T) {
	for _, keys := range [][]string{{"b", "c"}, {"a"}} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{}
			l, _ := open(t.Context(), s)
			start := time.Now()
			go func() { _, _ = l.Get("a") }()
			synctest.Wait()
			values(t, getMany(l, keys...))
			if len(s.fetches) != 1 || s.fetches[0][0] != "a" || time.Since(start) != 0 {
				t.Errorf("fetched %v after %s", s.fetches, time.Since(start))
			}
			synctest.Wait()
		})
	}
}

func TestLoneReadsOfWhatCannotTravelTogetherLeaveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		l := newLoader[string, string](&response{ctx: t.Context()}, market.KindPrice, s, false)
		start := time.Now()
		for _, key := range []string{"a", "b"} {
			if _, err := l.Get(key); err != nil {
				t.Error(err)
			}
		}
		if len(s.fetches) != 2 || time.Since(start) != 0 {
			t.Errorf("fetched %v after %s", s.fetches, time.Since(start))
		}
	})
}

func TestPrefetchDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{gate: make(chan struct{})}
		l, recorder := open(t.Context(), s)
		l.Prefetch([]string{"a", "b"})
		l.Prefetch([]string{"b", "c"})
		synctest.Wait()
		slices.SortFunc(s.fetches, slices.Compare) // two batches that have left at the same instant
		if len(s.fetches) != 2 || !slices.Equal(s.fetches[0], []string{"a", "b"}) || !slices.Equal(s.fetches[1], []string{"c"}) {
			t.Fatalf("fetched %v", s.fetches)
		}
		<-s.gate
		<-s.gate
		values(t, getMany(l, "a", "c"))
		if len(s.fetches) != 2 {
			t.Errorf("fetched %v", s.fetches)
		}
		// The recorder holds what was read: b was only sent for.
		got := recorder.Handles()
		if len(got) != 2 || !slices.Contains(got, s.handles["a"]) || !slices.Contains(got, s.handles["c"]) {
			t.Errorf("recorded %v of %v", got, s.handles)
		}
	})
}

func TestRecorderHoldsWhatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&source{}).cache("hit", "unread")
		s.fetch = func(keys []string) results {
			out := make(results, len(keys))
			for i, k := range keys {
				if out[i] = s.answer(k); k == "absent" {
					out[i].Value.Value = nil
				} else if k == "bad" {
					out[i] = results{{Err: errors.New("bad")}}[0]
				}
			}
			return out
		}
		l, recorder := open(t.Context(), s)
		l.Prefetch([]string{"unread", "hit", "miss", "absent", "bad"})
		if n := len(recorder.Handles()); n != 0 {
			t.Fatalf("%d handles of what nobody has read", n)
		}
		r := getMany(l, "hit", "miss", "absent", "bad", "hit")
		if r[2].Err != nil || r[2].Value.Value != nil || r[3].Err == nil {
			t.Errorf("%+v", r)
		}
		got := recorder.Handles()
		for _, key := range []string{"hit", "miss", "absent"} {
			if !slices.Contains(got, s.handles[key]) {
				t.Errorf("%s is not recorded", key)
			}
		}
		if len(got) != 3 {
			t.Errorf("%d handles", len(got))
		}
		synctest.Wait()
	})
}

// An error is the response's: the next one asks again.
func TestErrorsEndWithTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{fetch: func(keys []string) results {
			return slices.Repeat(results{{Err: market.Errorf(market.CodeUpstreamUnavailable, "down")}}, len(keys))
		}}
		l, recorder := open(t.Context(), s)
		for range 2 {
			for _, r := range getMany(l, "a", "b") {
				if market.CodeOf(r.Err) != market.CodeUpstreamUnavailable {
					t.Errorf("%+v", r)
				}
			}
		}
		if len(s.fetches) != 1 || len(recorder.Handles()) != 0 {
			t.Errorf("fetched %v", s.fetches)
		}
		s.fetch = nil
		next, _ := open(t.Context(), s)
		values(t, getMany(next, "a", "b"))
	})
}

func TestCancelledResponseEndsItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{gate: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		l, _ := open(ctx, s)
		other, _ := open(t.Context(), s)
		var mine, theirs results
		go func() { mine = getMany(l, "a") }()
		synctest.Wait()
		go func() { theirs = getMany(other, "a") }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if mine == nil || !errors.Is(mine[0].Err, context.Canceled) || theirs != nil {
			t.Fatalf("mine %+v, theirs %+v", mine, theirs)
		}
		<-s.gate
		synctest.Wait()
		values(t, theirs)
	})
}

// A source that panics or answers wrongly costs the keys their values and nothing else, and nothing is written past our log.
func TestBadSources(t *testing.T) {
	var printed bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&printed)
	for name, fetch := range map[string]func(keys []string) results{
		"panic":    func([]string) results { panic("boom") },
		"short":    func(keys []string) results { return make(results, len(keys)-1) },
		"too long": func(keys []string) results { return make(results, len(keys)+1) },
		"nothing":  func([]string) results { return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &source{fetch: fetch}
			l, _ := open(t.Context(), s)
			for range 2 {
				rs := getMany(l, "a", "b")
				for _, r := range rs {
					if market.CodeOf(r.Err) != market.CodeInternal || r.Value.Value != nil {
						t.Errorf("%s: %+v", name, r)
					}
				}
				if name == "panic" && (!strings.Contains(rs[0].Err.Error(), "boom") || !strings.Contains(rs[0].Err.Error(), "loaders_test.go")) {
					t.Errorf("the log would not say where: %v", rs[0].Err)
				}
			}
			s.fetch = nil
			if got := values(t, getMany(l, "c")); !strings.HasPrefix(got[0], "c#") || len(s.fetches) != 2 {
				t.Errorf("%s: afterwards %v, fetched %v", name, got, s.fetches)
			}
			synctest.Wait()
		})
	}
	if printed.Len() > 0 {
		t.Errorf("written past our log: %s", &printed)
	}
}

// A look-up that panics is the reader's panic, and does not make the key absent for the next one.
func TestPanicInALookup(t *testing.T) {
	s := &source{look: func() { panic("boom") }}
	l, _ := open(t.Context(), s)
	func() {
		defer func() { _ = recover() }()
		getMany(l, "a")
		t.Error("no panic")
	}()
	if r, err := l.Get("a"); err == nil {
		t.Errorf("a is %+v", r)
	}
}

func TestConcurrentReaders(t *testing.T) {
	s := (&source{}).cache("k1", "k3", "k5")
	l, recorder := open(t.Context(), s)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			keys := []string{fmt.Sprint("k", i%10), fmt.Sprint("k", i%7), fmt.Sprint("k", i%3)}
			switch i % 3 {
			case 0:
				l.Prefetch(keys)
			case 1:
				for j, r := range getMany(l, keys...) {
					if r.Err != nil || !strings.HasPrefix(*r.Value.Value, keys[j]+"#") {
						t.Errorf("%s: %+v", keys[j], r)
					}
				}
			default:
				if r, err := l.Get(keys[0]); err != nil || !strings.HasPrefix(*r.Value, keys[0]+"#") {
					t.Errorf("%s: %+v", keys[0], r)
				}
			}
		})
	}
	wg.Wait()
	asked := map[string]int{}
	for _, f := range s.fetches {
		for _, k := range f {
			asked[k]++
		}
	}
	for k, n := range asked {
		if n != 1 {
			t.Errorf("%s was fetched %d times", k, n)
		}
	}
	_ = recorder.Handles()
	l.GetMany(slices.Sorted(func(yield func(string) bool) {
		for k := range asked {
			if !yield(k) {
				return
			}
		}
	}), make(results, len(asked))) // what was only sent for has arrived when the test ends
}

func TestPeekTellsWhatIsAtHandOnly(t *testing.T) {
	s := (&source{}).cache("hit")
	l, recorder := open(t.Context(), s)
	if _, ok := l.Peek("hit"); ok || len(s.lookups) != 0 {
		t.Errorf("peeking at what nobody asked for: %t, looked up %v", ok, s.lookups)
	}
	l.Prefetch([]string{"hit", "miss"})
	read, ok := l.Peek("hit")
	if !ok || *read.Value != values(t, getMany(l, "hit"))[0] {
		t.Errorf("the value at hand is %v, %t", read, ok)
	}
	getMany(l, "miss")
	if _, ok := l.Peek("miss"); ok {
		t.Error("what has to be fetched is not at hand")
	}
	other, recorder2 := open(t.Context(), s)
	other.Prefetch([]string{"hit"})
	other.Peek("hit")
	if n := len(recorder2.Handles()); n != 0 || len(recorder.Handles()) != 2 {
		t.Errorf("a peek is recorded: %d", n)
	}
}
