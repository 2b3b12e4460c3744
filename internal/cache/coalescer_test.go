package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
)

type prices = []reads.Result[*market.Price]

// fetch reads prices in a goroutine and returns a channel with the results.
func fetch(ctx context.Context, c *Cache, keys ...string) chan prices {
	out := make(chan prices, 1)
	go func() { out <- readAll(ctx, c.Prices(), keys...) }()
	synctest.Wait()
	return out
}

// receive returns the results in ch. It fails the test if they have not arrived.
func receive(t *testing.T, ch chan prices) prices {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-ch:
		return r
	default:
		t.Fatal("no results yet")
		return nil
	}
}

// wantPending fails the test if results have arrived.
func wantPending(t *testing.T, ch chan prices) {
	t.Helper()
	synctest.Wait()
	if len(ch) > 0 {
		t.Fatalf("got results %+v, want none yet", <-ch)
	}
}

func wantPrices(t *testing.T, rs prices, keys ...string) {
	t.Helper()
	if len(rs) != len(keys) {
		t.Fatalf("got %d results, want %d", len(rs), len(keys))
	}
	for i, r := range rs {
		if r.Err != nil || r.Value.Value == nil || r.Value.Value.TokenID != keys[i] {
			t.Fatalf("%s: got %+v, want its price", keys[i], r)
		}
	}
}

func wantErrors(t *testing.T, rs prices, code market.Code) {
	t.Helper()
	for _, r := range rs {
		if market.CodeOf(r.Err) != code || r.Value.Value != nil || r.Value.Handle != nil {
			t.Fatalf("got %+v, want %s", r, code)
		}
	}
}

// wantIdle fails the test if flights, queued batches, calls or waiting callers are left.
func wantIdle[K comparable, T any](t *testing.T, c *coalescer[K, T]) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.flights) != 0 || len(c.queue) != 0 || len(c.slots) != 0 || c.waiting.Load() != 0 {
		t.Errorf("got %d flights, %d queued batches, %d calls, %d waiting callers; want none", len(c.flights), len(c.queue), len(c.slots), c.waiting.Load())
	}
}

func TestBatchSizes(t *testing.T) {
	for keys, calls := range map[int][]int{1: {1}, 40: {40}, 41: {20, 21}, 50: {25, 25}, 80: {40, 40}, 81: {27, 27, 27}, 200: {40, 40, 40, 40, 40}} {
		synctest.Test(t, func(t *testing.T) {
			v := &testVenue{}
			c := open(t, v)
			want := ids("t", 0, keys)
			wantPrices(t, readAll(t.Context(), c.Prices(), want...), want...)
			var got []int
			for _, a := range v.calls() {
				got = append(got, len(a.keys))
			}
			slices.Sort(got)
			if !slices.Equal(got, calls) {
				t.Errorf("%d keys: got calls of %v keys, want %v", keys, got, calls)
			}
			wantIdle(t, c.prices.routes[0])
		})
	}
}

// TestBatchesFillUp checks that keys of later reads join waiting batches until the batches are full.
func TestBatchesFillUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		c := open(t, v, withAdmission(a))
		first, second, third := fetch(t.Context(), c, ids("t", 0, 50)...), fetch(t.Context(), c, ids("u", 0, 30)...), fetch(t.Context(), c, "v", "v", "t000")
		if n, _, _ := a.state(); n != 3 {
			t.Fatalf("got %d waiting reservations, want 3", n)
		}
		for range 3 {
			a.verdict <- nil
		}
		wantPrices(t, receive(t, first), ids("t", 0, 50)...)
		wantPrices(t, receive(t, second), ids("u", 0, 30)...)
		wantPrices(t, receive(t, third), "v", "v", "t000")
		var sizes []int
		for _, call := range v.calls() {
			sizes = append(sizes, len(call.keys))
		}
		slices.Sort(sizes)
		if !slices.Equal(sizes, []int{1, 40, 40}) {
			t.Errorf("got calls of %v keys, want 1, 40, 40", sizes)
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestBatchesOfMissingKeys checks that Fetch requests only missing keys from the venue, and requests a repeated key once.
func TestBatchesOfMissingKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		wantPrices(t, readAll(t.Context(), c.Prices(), ids("t", 0, 10)...), ids("t", 0, 10)...)
		keys := slices.Concat(ids("t", 0, 40), ids("t", 20, 30))
		wantPrices(t, c.Prices().Fetch(t.Context(), keys), keys...)
		if calls := v.calls(); len(calls) != 2 || len(calls[1].keys) != 30 {
			t.Errorf("got %d calls, want 2, the second for 30 keys", len(calls))
		}
	})
}

func TestEachKeyIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: 20 * time.Millisecond}
		c := open(t, v)
		r := rand.New(rand.NewPCG(1, 2))
		var wg sync.WaitGroup
		for range 100 {
			var keys []string
			for _, i := range r.Perm(120)[:1+r.IntN(60)] {
				keys = append(keys, fmt.Sprintf("t%03d", i))
			}
			delay := time.Duration(r.IntN(60)) * time.Millisecond
			wg.Go(func() {
				time.Sleep(delay)
				wantPrices(t, readAll(t.Context(), c.Prices(), keys...), keys...)
			})
		}
		wg.Wait()
		for key, n := range v.counts() {
			if n != 1 {
				t.Errorf("key %s: got %d reads, want 1", key, n)
			}
		}
		if v.mostRunning > 4 {
			t.Errorf("got %d calls at once, want at most 4", v.mostRunning)
		}
		wantIdle(t, c.prices.routes[0])
	})
}

func TestRepeatedKeysOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{blocked: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		first := fetch(ctx, c, "a", "a", "b", "a")
		<-v.blocked
		wantPrices(t, receive(t, first), "a", "a", "b", "a")
		if calls := v.calls(); len(calls) != 1 || !slices.Equal(calls[0].keys, []string{"a", "b"}) {
			t.Errorf("got %+v, want one call of a and b", calls)
		}
		second := fetch(ctx, c, "c", "c")
		cancel()
		if r := receive(t, second); r[0].Err == nil || r[1].Err == nil || v.calls()[1].ctx.Err() == nil {
			t.Errorf("after a cancelled read of a repeated key: got %+v, want errors and a cancelled call", r)
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestKeysWaitForCallsInFlight checks that at most InFlight calls run at once, and that the next call reads all keys that have
// arrived meanwhile.
func TestKeysWaitForCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{blocked: make(chan struct{})}
		c := open(t, v)
		var waiting []chan prices
		for _, id := range ids("t", 0, 24) {
			waiting = append(waiting, fetch(t.Context(), c, id))
		}
		if calls := v.calls(); len(calls) != 4 {
			t.Fatalf("got %d calls in flight, want 4", len(calls))
		}
		for range 4 {
			<-v.blocked
		}
		synctest.Wait()
		calls := v.calls()
		if len(calls) != 5 || len(calls[4].keys) != 20 {
			t.Fatalf("got %d calls, the last for %d keys; want 5 calls, the last for 20 keys", len(calls), len(calls[len(calls)-1].keys))
		}
		<-v.blocked
		for i, ch := range waiting {
			wantPrices(t, receive(t, ch), fmt.Sprintf("t%03d", i))
		}
		if v.mostRunning != 4 {
			t.Errorf("got %d calls at once, want 4", v.mostRunning)
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestCallsInFlightAreBounded checks how many calls to a hung endpoint run at once, and that reads of other kinds do not wait for
// these calls. When the readers have left, no call is in flight.
func TestCallsInFlightAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		want int
		read func(ctx context.Context, c *Cache, i int)
	}{
		"markets by slug": {16, func(ctx context.Context, c *Cache, i int) {
			_, _ = readOne(ctx, c.Markets(), market.MarketRef{By: market.BySlug, Value: fmt.Sprint(i)})
		}},
		"balances": {64, func(ctx context.Context, c *Cache, i int) {
			_, _ = readOne(ctx, c.Balances(), market.Address(fmt.Sprintf("0x%040x", i)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{blocked: make(chan struct{})}
				c := open(t, v)
				ctx, leave := context.WithCancel(withCredentials(t, "a"))
				var wg sync.WaitGroup
				for i := range 3 * test.want {
					wg.Go(func() { test.read(ctx, c, i) })
				}
				synctest.Wait()
				if got := len(v.calls()); got != test.want {
					t.Errorf("%d calls are in flight, want %d", got, test.want)
				}
				wg.Go(func() { _, _ = readOne(ctx, c.Prices(), "t") })
				synctest.Wait()
				if got := len(v.calls(upstream.EndpointPrices)); got != 1 {
					t.Errorf("%d calls for a price are in flight, want 1", got)
				}
				leave()
				wg.Wait()
				synctest.Wait()
				if v.mostRunning != test.want+1 || v.running != 0 {
					t.Errorf("%d calls ran at once, want %d; %d still run", v.mostRunning, test.want+1, v.running)
				}
			})
		})
	}
}

func TestVenuePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{fail: func(ask) error { panic("boom") }}
		c := open(t, v)
		for range 2 {
			r := readAll(t.Context(), c.Prices(), "a", "b")
			wantErrors(t, r, market.CodeInternal)
			if !strings.Contains(r[0].Err.Error(), "boom") || !strings.Contains(r[0].Err.Error(), "venue_test.go") {
				t.Errorf("got %v, want the panic and its stack", r[0].Err)
			}
		}
		// The reads also end if the cache panics while it stores a result.
		v.fail = nil
		v.search = func(queries.Search) *queries.SearchPage { return &queries.SearchPage{Markets: []*market.Market{nil}} }
		if _, err := readOne(t.Context(), c.Searches(), queries.Search{}.Key()); market.CodeOf(err) != market.CodeInternal {
			t.Errorf("got %v, want INTERNAL", err)
		}
		v.search = nil
		if _, err := readOne(t.Context(), c.Searches(), queries.Search{}.Key()); err != nil {
			t.Errorf("after a panic: got %v, want no error", err)
		}
		wantIdle(t, c.prices.routes[0])
		wantIdle(t, c.searches.routes[0])
	})
}

func TestWrongNumberOfResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{short: true}
		c := open(t, v)
		wantErrors(t, readAll(t.Context(), c.Prices(), "a", "b"), market.CodeInternal)
		if s := statsOf(c, "price"); s.Entries != 0 {
			t.Errorf("got %+v, want no entries", s)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{blocked: make(chan struct{})}, newAdmission()
		c := open(t, v, withAdmission(a))
		go func() {
			for range 2 { // admit the calls for "cached" and "flying"
				a.verdict <- nil
			}
		}()
		cached := fetch(t.Context(), c, "cached")
		<-v.blocked
		wantPrices(t, receive(t, cached), "cached")
		time.Sleep(time.Second)
		flying := fetch(t.Context(), c, "flying")
		queued := fetch(t.Context(), c, "queued")
		readAll(t.Context(), c.Prices(), "cached") // the price is stale, so the read also queues a refresh
		synctest.Wait()
		if len(v.calls()) != 2 {
			t.Fatalf("got %d calls, want 2", len(v.calls()))
		}

		c.Close()
		wantErrors(t, receive(t, flying), market.CodeUpstreamUnavailable)
		wantErrors(t, receive(t, queued), market.CodeUpstreamUnavailable)
		if v.calls()[1].ctx.Err() == nil {
			t.Error("Close did not cancel the call")
		}
		wantIdle(t, c.prices.routes[0])
		wantErrors(t, receive(t, fetch(t.Context(), c, "late")), market.CodeUpstreamUnavailable)
		if r := mustRead(t, c.Prices(), "cached"); r.Value == nil {
			t.Error("a cached value was lost")
		}
		c.Close()
		if len(v.calls()) != 2 {
			t.Errorf("got %d calls, want 2", len(v.calls()))
		}
	})
}

func TestTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, leave, closed := newTasks(), make(chan struct{}), false
		if !tasks.start(func() { <-leave }) {
			t.Error("start failed before close")
		}
		go func() { tasks.close(); closed = true }()
		synctest.Wait()
		if closed || tasks.ctx.Err() == nil {
			t.Error("close returned before the task ended, or did not cancel the context of the tasks")
		}
		close(leave)
		synctest.Wait()
		if !closed {
			t.Error("close did not return")
		}
		if tasks.start(func() { t.Error("started after close") }) {
			t.Error("start succeeded after close")
		}
		synctest.Wait()
	})
}
