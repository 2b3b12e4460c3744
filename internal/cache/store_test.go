package cache

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

const wallet = market.Address("0x1111111111111111111111111111111111111111")

// present returns the Meta of a read, whether the read has a value, and the error.
func present[T any](r reads.Value[*T], err error) (reads.Meta, bool, error) {
	return r.Meta, r.Value != nil, err
}

// kinds lists reads of all kinds except categories, with the documented fresh and stale times.
var kinds = []struct {
	name         string
	key          string
	fresh, stale time.Duration
	read         func(ctx context.Context, c *Cache) (reads.Meta, bool, error)
}{
	{"price", "k", time.Second, 30 * time.Second, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Prices(), "k"))
	}},
	{"spread", "k", time.Second, 30 * time.Second, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Spreads(), "k"))
	}},
	{"book", "k", 500 * time.Millisecond, 10 * time.Second, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Books(), queries.Book{TokenID: "k", Depth: 20}))
	}},
	{"history", "k", time.Minute, time.Hour, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Histories(), queries.PriceHistory{TokenID: "k", From: 1, To: 2}))
	}},
	{"market by id", "k", time.Minute, time.Hour, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Markets(), market.MarketRef{By: market.ByMarketID, Value: "k"}))
	}},
	{"market by slug", "k", time.Minute, time.Hour, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Markets(), market.MarketRef{By: market.BySlug, Value: "k"}))
	}},
	{"market by token", "k", time.Minute, time.Hour, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Markets(), market.MarketRef{By: market.ByToken, Value: "k"}))
	}},
	{"event", "k", 15 * time.Second, 5 * time.Minute, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Events(), market.EventRef{EventID: "k"}))
	}},
	{"search", "k", 15 * time.Second, 5 * time.Minute, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Searches(), queries.Search{Text: "k"}.Key()))
	}},
	{"event search", "k", 15 * time.Second, 5 * time.Minute, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.EventSearches(), queries.Search{Text: "k"}.Key()))
	}},
	{"market trades", "k", 15 * time.Second, 5 * time.Minute, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.MarketTrades(), queries.MarketTrades{MarketID: "k", Limit: 10}))
	}},
	{"balance", string(wallet), 2 * time.Second, 0, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Balances(), wallet))
	}},
	{"positions", string(wallet), 2 * time.Second, 0, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Positions(), wallet))
	}},
	{"orders", string(wallet), 2 * time.Second, 0, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Orders(), wallet))
	}},
	{"trades", string(wallet), 2 * time.Second, 0, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Trades(), queries.Trades{Limit: 10}.Key(wallet)))
	}},
	{"user history", string(wallet), 2 * time.Second, 0, func(ctx context.Context, c *Cache) (reads.Meta, bool, error) {
		return present(readOne(ctx, c.Records(), queries.History{Limit: 10}.Key(wallet)))
	}},
}

// TestTimesOfEveryKind checks that a fresh value is served, a stale value is served and refreshed once, and an expired value is
// read again.
func TestTimesOfEveryKind(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{}
				c := open(t, v)
				expect := func(when string, calls int, stale bool) reads.Meta {
					t.Helper()
					meta, there, err := k.read(t.Context(), c)
					if err != nil || !there || meta.Stale != stale || meta.Source != market.SourceREST || meta.Handle == nil {
						t.Fatalf("%s: got %+v, present %v, error %v; want a value with stale %v", when, meta, there, err, stale)
					}
					synctest.Wait() // wait for the refresh
					if n := len(v.calls()); n != calls {
						t.Fatalf("%s: got %d calls, want %d", when, n, calls)
					}
					return meta
				}
				first := expect("cold", 1, false)
				fresh := time.Until(time.Unix(0, first.Handle.FreshUntil()))
				if user := k.stale == 0; fresh > k.fresh || fresh < k.fresh*3/4 || !user && fresh < k.fresh || !first.ReceivedAt.Equal(time.Now()) {
					t.Errorf("got fresh time %s and ReceivedAt %s, want about %s and %s", fresh, first.ReceivedAt, k.fresh, time.Now())
				}
				time.Sleep(fresh - 1)
				if again := expect("fresh", 1, false); again != first || !first.Handle.Valid() {
					t.Errorf("fresh entry: got %+v, want %+v", again, first)
				}
				time.Sleep(time.Nanosecond)
				if k.stale == 0 {
					second := expect("gone", 2, false)
					if !first.Handle.Valid() || second.Handle != first.Handle {
						t.Error("the entry of an equal value has another handle")
					}
					return
				}
				if stale := expect("stale", 2, true); stale.Handle != first.Handle || !stale.ReceivedAt.Equal(first.ReceivedAt) {
					t.Errorf("stale: got %+v, want %+v", stale, first)
				}
				if second := expect("refreshed", 2, false); second.Handle != first.Handle || !second.Handle.Valid() {
					t.Error("the entry of an equal value has another handle")
				}
				time.Sleep(k.fresh + k.stale - 1)
				expect("stale to the last", 3, true)
				time.Sleep(k.fresh + k.stale)
				expect("gone", 4, false)
			})
		})
	}
}

// TestAbsenceOfEveryKind checks that an absence is cached for at most 5 seconds, and that handles change when a value appears or
// disappears.
func TestAbsenceOfEveryKind(t *testing.T) {
	for _, k := range kinds {
		if k.name == "positions" || k.name == "orders" {
			continue // an unknown user has an empty list, which is a value
		}
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{}
				c := open(t, v)
				read := func(when string, calls int, there bool) reads.Meta {
					t.Helper()
					meta, found, err := k.read(t.Context(), c)
					if err != nil || found != there || meta.Stale || meta.Handle == nil || meta.ReceivedAt.IsZero() {
						t.Fatalf("%s: got %+v, present %v, error %v; want present %v", when, meta, found, err, there)
					}
					if n := len(v.calls()); n != calls {
						t.Fatalf("%s: got %d calls, want %d", when, n, calls)
					}
					return meta
				}
				absentFor := 5 * time.Second
				if k.name == "balance" || k.name == "trades" || k.name == "user history" {
					absentFor = k.fresh // an absence of user data is not fresh for longer than a value
				}
				v.setUnknown(k.key, true)
				absent := read("unknown", 1, false)
				if at := time.Unix(0, absent.Handle.FreshUntil()); !at.Equal(time.Now().Add(absentFor)) {
					t.Errorf("got an absence that is fresh until %s, want %s", at, time.Now().Add(absentFor))
				}
				time.Sleep(absentFor - 1)
				if again := read("still unknown", 1, false); again.Handle != absent.Handle || !absent.Handle.Valid() {
					t.Error("a cached absence has another handle")
				}
				v.setUnknown(k.key, false)
				time.Sleep(time.Nanosecond)
				value := read("known at last", 2, true)
				if absent.Handle.Valid() || !value.Handle.Valid() {
					t.Error("the handle of the absence does not show the value")
				}
				v.setUnknown(k.key, true)
				time.Sleep(k.fresh + k.stale)
				gone := read("unknown again", 3, false)
				if value.Handle.Valid() || !gone.Handle.Valid() {
					t.Error("the handle of the value does not show the absence")
				}
			})
		})
	}
}

func TestRefreshFindsAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		first := mustRead(t, c.Prices(), "k")
		v.setUnknown("k", true)
		time.Sleep(time.Second)
		if r := mustRead(t, c.Prices(), "k"); r.Value == nil || !r.Stale {
			t.Errorf("during the refresh: got %+v, want a stale price", r)
		}
		synctest.Wait()
		if r := mustRead(t, c.Prices(), "k"); r.Value != nil || first.Handle.Valid() || len(v.calls()) != 2 {
			t.Errorf("after the refresh: got %+v, want an absence", r)
		}
	})
}

// TestStaleKeysAreRefreshedOnce checks that Lookup makes no call, and that several calls of Refresh together make one call for all
// stale keys.
func TestStaleKeysAreRefreshedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		keys := ids("t", 0, 40)
		readAll(t.Context(), c.Prices(), keys...)
		time.Sleep(time.Second)
		v.blocked = make(chan struct{})
		for range 5 {
			out := make([]reads.Result[*market.Price], len(keys))
			if missing := c.Prices().Lookup(t.Context(), keys, out, nil); len(missing) != 0 {
				t.Fatalf("got missing indexes %v, want none, because Lookup serves stale entries", missing)
			}
			for i, r := range out {
				if r.Err != nil || r.Value.Value.TokenID != keys[i] || !r.Value.Stale {
					t.Fatalf("%s: got %+v, want a stale price", keys[i], r)
				}
			}
		}
		synctest.Wait()
		if n := len(v.calls()); n != 1 {
			t.Fatalf("got %d calls without a Refresh, want 1", n)
		}
		for range 5 {
			c.Prices().Refresh(t.Context(), keys)
			synctest.Wait()
		}
		if calls := v.calls(); len(calls) != 2 || len(calls[1].keys) != 40 {
			t.Fatalf("got %d calls, want 2, the second for all stale keys", len(calls))
		}
		if s := statsOf(c, "price"); s.Stale != 200 || s.Coalesced != 0 {
			t.Errorf("got %+v, want one refresh of each key", s)
		}
		<-v.blocked
		synctest.Wait()
		for _, r := range readAll(t.Context(), c.Prices(), keys...) {
			if r.Value.Stale {
				t.Fatal("got a stale price after the refresh")
			}
		}
		c.Prices().Refresh(t.Context(), append(keys, "never read"))
		synctest.Wait()
		if n := len(v.calls()); n != 2 {
			t.Errorf("got %d calls, want 2", n)
		}
	})
}

// TestRefreshIsNotPersonal checks that the refresh of a public value does not mark the reader's response as personal.
func TestRefreshIsNotPersonal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &testVenue{})
		readAll(t.Context(), c.Prices(), "a")
		time.Sleep(time.Second)
		recorder := &request.Dependencies{}
		ctx := request.With(withCredentials(t, "reader"), func(r *request.Request) { r.Respond(recorder) })
		if r := readAll(ctx, c.Prices(), "a")[0]; !r.Value.Stale {
			t.Fatalf("got %+v, want a stale price", r)
		}
		synctest.Wait()
		if b, ok := recorder.Snapshot(); !ok || b.Personal {
			t.Errorf("got snapshot %+v, %t; want a snapshot that is not personal", b, ok)
		}
	})
}

// TestFailedRefreshIsRetried checks that a failed refresh keeps the stale value, and that many reads repeat the refresh only once
// in each reads.RefreshPause.
func TestFailedRefreshIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		first := mustRead(t, c.Prices(), "k")
		v.fail = func(ask) error { return errors.New("down") }
		time.Sleep(time.Second)
		for try := range 3 {
			for range 10 {
				if r := mustRead(t, c.Prices(), "k"); !r.Stale || r.Handle != first.Handle || !first.Handle.Valid() {
					t.Fatalf("got %+v, want the stale price", r)
				}
				synctest.Wait()
			}
			if n := len(v.calls()); n != 2+try {
				t.Fatalf("got %d calls after %d failed refreshes, want %d", n, try+1, 2+try)
			}
			time.Sleep(reads.RefreshPause)
		}
		v.fail = nil
		mustRead(t, c.Prices(), "k")
		synctest.Wait()
		if r := mustRead(t, c.Prices(), "k"); r.Stale || r.Handle != first.Handle || !first.Handle.Valid() {
			t.Errorf("after a refresh: got %+v, want a fresh price", r)
		}
		v.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }
		time.Sleep(15*time.Minute + time.Second - 1)
		if r := mustRead(t, c.Prices(), "k"); !r.Stale || r.Cause != reads.CauseUpstreamDown {
			t.Errorf("while the venue is down: got %+v, want a stale price", r)
		}
		time.Sleep(time.Nanosecond)
		if r, err := readOne(t.Context(), c.Prices(), "k"); market.CodeOf(err) != market.CodeUpstreamUnavailable || r.Value != nil {
			t.Errorf("expired: got %+v, %v; want UPSTREAM_UNAVAILABLE", r, err)
		}
	})
}

// TestRefreshOutlivesItsReader checks that a refresh continues after the context of its reader is cancelled. The refresh must be
// cancelled after 10 seconds.
func TestRefreshOutlivesItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		mustRead(t, c.Prices(), "k")
		time.Sleep(time.Second)
		v.blocked = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		if r, err := readOne(ctx, c.Prices(), "k"); err != nil || !r.Stale {
			t.Fatalf("got %+v, %v; want a stale price", r, err)
		}
		synctest.Wait()
		cancel()
		time.Sleep(refreshTimeout - 1)
		call := v.calls()[1]
		if call.ctx.Err() != nil {
			t.Fatal("the refresh was cancelled with its reader")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if call.ctx.Err() == nil {
			t.Error("the refresh was not cancelled after 10 seconds")
		}
	})
}

func TestErrorsAreNotCached(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{fail: func(ask) error { return market.Errorf(market.CodeForbidden, "no") }}
				c := open(t, v)
				for range 2 {
					if meta, there, err := k.read(t.Context(), c); market.CodeOf(err) != market.CodeForbidden || there || meta.Handle != nil {
						t.Fatalf("got %+v, %v, %v; want FORBIDDEN", meta, there, err)
					}
				}
				v.fail = nil
				if _, there, err := k.read(t.Context(), c); err != nil || !there || len(v.calls()) != 3 {
					t.Errorf("got %v, %v, %d calls; want a value after 3 calls", there, err, len(v.calls()))
				}
			})
		})
	}
}

// TestBadElement checks that a bad element of a list fails alone.
func TestBadElement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		for range 2 {
			r := readAll(t.Context(), c.Prices(), "a", "bad", "b")
			if r[0].Err != nil || r[0].Value.Value == nil || market.CodeOf(r[1].Err) != market.CodeUpstreamBadResponse || r[2].Err != nil {
				t.Fatalf("got %+v, want an error for the second key only", r)
			}
		}
		if n := v.counts(); n["a"] != 1 || n["bad"] != 2 || n["b"] != 1 {
			t.Errorf("got reads %v, want two of bad and one of the others", n)
		}
	})
}

func TestHitsDoNotAllocate(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Price.Fresh = time.Hour // the test uses the wall clock
	c := New(&testVenue{}, cfg)
	defer c.Close()
	keys := ids("t", 0, 50)
	readAll(t.Context(), c.Prices(), keys...)
	out, missing := make([]reads.Result[*market.Price], len(keys)), make([]int, 0, len(keys))
	if n := testing.AllocsPerRun(100, func() { missing = c.Prices().Lookup(t.Context(), keys, out, missing[:0]) }); n != 0 || len(missing) != 0 {
		t.Errorf("got %v allocations and %d missing, want 0 and 0", n, len(missing))
	}
}

// TestLongList checks that Lookup returns the right result for each key of a long list.
func TestLongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		keys := ids("t", 0, 100)
		v.setUnknown(keys[7], true)
		c := open(t, v)
		readAll(t.Context(), c.Prices(), keys...)
		out := make([]reads.Result[*market.Price], len(keys)+2)
		missing := c.Prices().Lookup(t.Context(), slices.Concat([]string{"x"}, keys, []string{"y"}), out, nil)
		if !slices.Equal(missing, []int{0, len(out) - 1}) {
			t.Fatalf("got missing indexes %v, want the first and the last", missing)
		}
		for i, key := range keys {
			if p := out[i+1].Value.Value; (p == nil) != (i == 7) || p != nil && p.TokenID != key {
				t.Errorf("%s: got price %+v, want the price of this token, or none for the unknown token", key, p)
			}
		}
		if s := statsOf(c, "price"); s.Hits != uint64(len(keys)-1) || s.NotFound != 1 || s.Misses != uint64(len(keys)+2) {
			t.Errorf("got %+v, want %d hits, 1 absence and %d misses", s, len(keys)-1, len(keys)+2)
		}
	})
}

func statsOf(c *Cache, kind string) Stats {
	for _, s := range c.Stats() {
		if s.Kind == kind {
			return s
		}
	}
	panic("no kind " + kind)
}

func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		expect := func(when string, want Stats) {
			t.Helper()
			synctest.Wait()
			got := statsOf(c, "price")
			got.Bytes = 0 // TestWeights checks Bytes
			if want.Kind = "price"; got != want {
				t.Errorf("%s: got %+v, want %+v", when, got, want)
			}
		}
		v.setUnknown("x", true)
		readAll(t.Context(), c.Prices(), ids("t", 0, 41)...)
		expect("cold", Stats{Misses: 41, Calls: 2, Keys: 41, Entries: 41})
		readAll(t.Context(), c.Prices(), ids("t", 0, 10)...)
		expect("hits", Stats{Hits: 10, Misses: 41, Calls: 2, Keys: 41, Entries: 41})
		readAll(t.Context(), c.Prices(), "x")
		readAll(t.Context(), c.Prices(), "x")
		expect("absent", Stats{Hits: 10, NotFound: 1, Misses: 42, Calls: 3, Keys: 42, Entries: 42})
		time.Sleep(time.Second)
		readAll(t.Context(), c.Prices(), ids("t", 0, 5)...)
		expect("stale", Stats{Hits: 10, NotFound: 1, Stale: 5, Misses: 42, Calls: 4, Keys: 47, Entries: 42})
		v.setUnknown("t000", true)
		time.Sleep(31 * time.Second)
		readAll(t.Context(), c.Prices(), "t000")
		expect("gone", Stats{Hits: 10, NotFound: 1, Stale: 5, Misses: 43, Calls: 5, Keys: 48, Entries: 42})
		v.blocked = make(chan struct{})
		for range 3 {
			go readAll(t.Context(), c.Prices(), "y", "z")
			synctest.Wait()
		}
		<-v.blocked
		expect("joined", Stats{Hits: 10, NotFound: 1, Stale: 5, Misses: 49, Coalesced: 4, Calls: 6, Keys: 50, Entries: 44})
	})
}

func TestConfigDefaults(t *testing.T) {
	c := New(&testVenue{}, Config{})
	defer c.Close()
	if c.prices.notFound != 0 {
		t.Errorf("absences are cached for %s, want 0", c.prices.notFound)
	}
	if l := c.prices.routes[0]; l.maxKeys != 40 || cap(l.slots) != 4 || c.books.routes[0].maxKeys != 1 || cap(c.books.routes[0].slots) != 16 || cap(c.balances.routes[0].slots) != 64 {
		t.Errorf("got %d keys in a call and %d calls at once for prices, want 40 and 4; or other bounds than 1 and 16 for books, or 64 for balances", l.maxKeys, cap(l.slots))
	}
	// If the fresh time and the stale time are 0, nothing is cached. A size of 0 must not cause a panic.
	for range 2 {
		if r, err := readOne(t.Context(), c.Prices(), "k"); err != nil || r.Value == nil || r.Stale {
			t.Errorf("got %+v, %v; want a fresh price", r, err)
		}
	}
	if n := len(c.venue.(*testVenue).calls()); n != 2 {
		t.Errorf("got %d calls, want 2", n)
	}
	names := map[string]bool{}
	for _, s := range c.Stats() {
		names[s.Kind] = true
	}
	if len(names) != upstream.Kinds {
		t.Errorf("got kinds %v, want %d kinds", names, upstream.Kinds)
	}
}
