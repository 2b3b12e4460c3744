package cache

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/shared"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// sharedMemory is a cache of several processes (Shared) that stores its records in memory.
type sharedMemory struct {
	mu      sync.Mutex
	down    bool
	records map[string]sharedRecord
	claims  map[string]time.Time
	dropped map[string]time.Time
	flushed []string
	gets    int
}

type sharedRecord struct {
	value       []byte
	asked, came time.Time
	until       time.Time
}

func (m *sharedMemory) Get(_ context.Context, kind string, keys []string, found shared.Found) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	for i, key := range keys {
		if r, ok := m.records[kind+key]; ok && !m.down && time.Now().Before(r.until) {
			found(i, r.value, r.asked, r.came)
		}
	}
}

func (m *sharedMemory) Claim(ctx context.Context, kind string, keys []string, hold time.Duration, found shared.Found) []bool {
	accepted := make([]bool, len(keys))
	m.Get(ctx, kind, keys, func(i int, value []byte, asked, came time.Time) bool {
		accepted[i] = found(i, value, asked, came)
		return accepted[i]
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	ours := make([]bool, len(keys))
	for i, key := range keys {
		if ours[i] = !accepted[i] && (m.down || !time.Now().Before(m.claims[kind+key])); ours[i] {
			m.claims[kind+key] = time.Now().Add(hold)
		}
	}
	return ours
}

func (m *sharedMemory) Put(kind string, records []shared.Record, asked, came time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		delete(m.claims, kind+r.Key)
		if r.Keep > 0 && !m.down && asked.After(m.dropped[kind+r.Key]) {
			m.records[kind+r.Key] = sharedRecord{r.Value, asked, came, time.Now().Add(r.Keep)}
		}
	}
}

// forgetDrops makes m forget all calls of Drop.
func (m *sharedMemory) forgetDrops() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.dropped)
}

func (m *sharedMemory) Drop(kind, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, kind+key)
	m.dropped[kind+key] = time.Now()
}

func (m *sharedMemory) Flush(kind, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushed = append(m.flushed, kind+" "+key)
}

// pair returns two caches that share one venue and one shared cache.
func pair(t *testing.T, v *testVenue) (a, b *Cache, m *sharedMemory) {
	m = &sharedMemory{records: map[string]sharedRecord{}, claims: map[string]time.Time{}, dropped: map[string]time.Time{}}
	with := func(cfg *Config) { cfg.Shared = m }
	return open(t, v, with), open(t, v, with), m
}

// TestSharedOfEveryKind checks that two processes share one call for each kind of public data except categories, and report the
// source and the times of this call. The processes must not share private data, or markets that are read by a slug or token.
func TestSharedOfEveryKind(t *testing.T) {
	for _, k := range kinds {
		for _, absent := range []bool{false, true} {
			t.Run(k.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := &testVenue{}
					v.setUnknown(k.key, absent)
					a, b, m := pair(t, v)
					first, exists, err := k.read(t.Context(), a)
					if err != nil || exists == absent && k.key != string(wallet) && k.name != "event" {
						t.Fatalf("first process: got present %v, error %v; want present %v", exists, err, !absent)
					}
					fresh := k.fresh
					if absent {
						fresh = 5 * time.Second
					}
					time.Sleep(fresh / 2)
					second, _, err := k.read(t.Context(), b)
					if err != nil {
						t.Fatal(err)
					}
					private, alias := k.key == string(wallet), strings.HasPrefix(k.name, "market by ") && k.name != "market by id"
					switch calls := len(v.calls()); {
					case private:
						if calls != 2 || len(m.records) > 0 || len(m.claims) > 0 || m.gets > 0 {
							t.Errorf("got %d calls, %d records, %d claims, %d look-ups; want 2 calls and nothing shared", calls, len(m.records), len(m.claims), m.gets)
						}
						return
					case alias:
						if calls != 2 { // each process gets the market id of a slug or token from the venue
							t.Errorf("got %d calls, want one from each process", calls)
						}
						return
					case calls != 1:
						t.Errorf("got %d calls, want 1", calls)
					case second.ReceivedAt != first.ReceivedAt || second.AsOf != first.AsOf || second.Source != first.Source:
						t.Errorf("second process: got %+v, want %+v", second, first)
					}
					time.Sleep(fresh/2 + time.Millisecond)
					if meta, _, err := k.read(t.Context(), b); err != nil || !meta.Stale && meta.ReceivedAt == first.ReceivedAt {
						t.Errorf("second process after %v: got %+v, %v; want a stale or newer value", fresh, meta, err)
					}
					synctest.Wait()
					if calls := len(v.calls()); calls != 2 {
						t.Errorf("after the value expired: got %d calls, want 2", calls)
					}
				})
			})
		}
	}
}

// TestSharedEncoding checks that values of most kinds of public data do not change when they are encoded for the shared cache and
// decoded again.
func TestSharedEncoding(t *testing.T) {
	price := market.MustDecimal("0.650")
	yes := true
	for _, value := range []any{
		&market.Market{MarketID: "m", Tags: []string{}, AcceptingOrders: &yes, StartsAt: time.Unix(1, 5).UTC(), Volume: &price,
			Outcomes: []market.Outcome{{TokenID: "t", Price: &price, Winner: &yes}}, Resolution: &market.Resolution{Outcome: "Yes"}},
		&market.Price{TokenID: "t", Price: price}, &market.Spread{TokenID: "t", BestBid: &price, FromBook: true},
		&market.Book{TokenID: "t", Bids: market.NewSide([]market.Level{{Price: price, Size: price}}), Epoch: "e", Seq: 7, Depth: 20},
		&market.PriceHistory{TokenID: "t", From: 1, To: 2, Points: []market.PricePoint{{Timestamp: time.Unix(9, 0).UTC(), Price: price}}},
		&market.Event{EventID: "e", Markets: []*market.Market{{MarketID: "m"}}}, &queries.SearchPage{Markets: []*market.Market{{MarketID: "m", Summary: true}}, Next: "n"},
		&queries.TradePage{Trades: []market.Trade{{TradeID: "t", Side: market.SideBuy, Price: price, Size: price, Fee: &price, Timestamp: time.Unix(9, 0).UTC(), Ordinal: 1}}, Next: "n"},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		again := reflect.New(reflect.TypeOf(value).Elem()).Interface()
		if err := json.Unmarshal(text, again); err != nil {
			t.Fatalf("%T: %v", value, err)
		}
		if got, err := json.Marshal(again); err != nil || string(got) != string(text) {
			t.Errorf("%T: got\n%s, want\n%s", value, got, text)
		}
	}
}

// TestSharedFlight checks that the venue gets each key once if two processes read overlapping lists at the same time. The second
// process must count the common keys as shared.
func TestSharedFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: 100 * time.Millisecond}
		a, b, _ := pair(t, v)
		var g sync.WaitGroup
		for i, c := range []*Cache{a, b} {
			g.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond)
				log := &request.Log{}
				ctx := request.WithLog(t.Context(), log)
				for _, r := range readAll(ctx, c.Prices(), ids("t", 10*i, 20+10*i)...) {
					if r.Err != nil || r.Value.Value == nil {
						t.Errorf("got %+v, want a price", r)
					}
				}
				if n := log.Counts(upstream.KindPrice).Shared; n != uint32(10*i) {
					t.Errorf("process %d: got %d shared reads, want %d", i, n, 10*i)
				}
			})
		}
		g.Wait()
		for token, n := range v.counts() {
			if n != 1 {
				t.Errorf("%s: got %d reads, want 1", token, n)
			}
		}
	})
}

// TestSharedCounts checks SharedStats for four keys: a stored key, a claimed key that is stored soon, a claimed key that is never
// stored, and a key that the shared cache does not know.
func TestSharedCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: 100 * time.Millisecond}
		a, b, m := pair(t, v)
		readAll(t.Context(), a.Prices(), "known")
		lost, _ := a.prices.shared.name("lost")
		m.Claim(t.Context(), "price", []string{lost}, time.Hour, nil)
		var g sync.WaitGroup
		g.Go(func() { readAll(t.Context(), a.Prices(), "coming") })
		time.Sleep(time.Millisecond)
		readAll(t.Context(), b.Prices(), "known", "coming", "lost", "cold")
		g.Wait()
		for name, test := range map[string]struct{ got, want SharedStats }{
			"the first":  {*a.prices.stats().Shared, SharedStats{Misses: 2, Ours: 2}},
			"the second": {*b.prices.stats().Shared, SharedStats{Hits: 1, Misses: 3, Ours: 1, Theirs: 2, Arrived: 1, Overdue: 1}},
		} {
			if test.got != test.want {
				t.Errorf("%s process: got %+v, want %+v", name, test.got, test.want)
			}
		}
		if shared := a.balances.stats().Shared; shared != nil {
			t.Errorf("balances: got %+v, want nil", shared)
		}
	})
}

// TestSharedClaimWithoutValue checks that a read calls the venue if another process has claimed the key and never stores a value.
func TestSharedClaimWithoutValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: 100 * time.Millisecond}
		a, b, m := pair(t, v)
		name, _ := a.prices.shared.name("t")
		m.Claim(t.Context(), "price", []string{name}, time.Hour, nil)
		began := time.Now()
		mustRead(t, b.Prices(), "t")
		if took := time.Since(began); took < hold || took > hold+100*time.Millisecond+2*pollEvery {
			t.Errorf("the read took %v, want the duration of a claim and of one call", took)
		}
	})
}

// TestSharedFailure checks that a failed call ends its claims and that other processes do not get its error.
func TestSharedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{fail: func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }}
		a, b, m := pair(t, v)
		if _, err := readOne(t.Context(), a.Prices(), "t"); err == nil {
			t.Fatal("no error")
		}
		if len(m.claims)+len(m.records) > 0 {
			t.Errorf("after a failure: got %d claims and %d records, want none", len(m.claims), len(m.records))
		}
		v.fail = nil
		mustRead(t, b.Prices(), "t")
	})
}

// TestSharedIncompleteResult checks that other processes do not get an incomplete result.
func TestSharedIncompleteResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{search: func(queries.Search) *queries.SearchPage {
			return &queries.SearchPage{LeftOut: market.LeftOut{errors.New("a market")}}
		}}
		a, b, _ := pair(t, v)
		mustRead(t, a.Searches(), queries.Search{Text: "k"}.Key())
		mustRead(t, b.Searches(), queries.Search{Text: "k"}.Key())
		if calls := len(v.calls()); calls != 2 {
			t.Errorf("got %d calls, want 2", calls)
		}
	})
}

// TestSharedInvalidation checks that, after a change of a market, a process does not serve the result of a call that another
// process started before the change.
func TestSharedInvalidation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: time.Second}
		status := market.StatusOpen
		v.market = func(id string) *market.Market { return &market.Market{MarketID: id, Status: status} }
		a, b, m := pair(t, v)
		var g sync.WaitGroup
		g.Go(func() { mustRead(t, a.Markets(), byID("m1")) })
		time.Sleep(500 * time.Millisecond)
		b.StreamMarket("m1", nil)
		g.Wait() // the shared cache rejects the result of process a, because Drop came after the start of the call
		status = market.StatusClosed
		if r := mustRead(t, b.Markets(), byID("m1")); r.Value.Status != market.StatusClosed {
			t.Errorf("with Drop: got %s, want closed", r.Value.Status)
		}
		// After forgetDrops, the shared cache returns the old record. Process b must reject the record, because the call of process a
		// started before the change.
		m.forgetDrops()
		status = market.StatusOpen
		g.Go(func() { mustRead(t, a.Markets(), byID("m2")) })
		time.Sleep(500 * time.Millisecond)
		b.StreamMarket("m2", nil)
		m.forgetDrops()
		g.Wait()
		status = market.StatusClosed
		if r := mustRead(t, b.Markets(), byID("m2")); r.Value.Status != market.StatusClosed {
			t.Errorf("without Drop: got %s, want closed", r.Value.Status)
		}
	})
}

// TestSharedFresh checks that a read with WithFresh calls the venue although the shared cache has the value. If the shared cache is
// down, a read without WithFresh must also call the venue.
func TestSharedFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		a, b, m := pair(t, v)
		mustRead(t, a.Prices(), "t")
		b.Prices().Fetch(request.WithFresh(t.Context()), []string{"t"})
		if calls := len(v.calls()); calls != 2 {
			t.Errorf("got %d calls, want 2", calls)
		}
		m.down = true
		c := open(t, v, func(cfg *Config) { cfg.Shared = m })
		mustRead(t, c.Prices(), "t")
		if calls := len(v.calls()); calls != 3 {
			t.Errorf("without a shared cache: got %d calls, want 3", calls)
		}
	})
}

// TestSharedJoins lets the race detector check concurrent fetches of one key. The callers have different deadlines, and every
// second caller needs a new response.
func TestSharedJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := pair(t, &testVenue{latency: time.Millisecond})
		for range 50 {
			var g sync.WaitGroup
			for i := range 8 {
				g.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(5+i)*time.Second)
					defer cancel()
					if i%2 == 1 {
						ctx = request.WithFresh(ctx)
					}
					if r := a.Prices().Fetch(ctx, []string{"t"}); r[0].Err != nil {
						t.Error(r[0].Err)
					}
				})
			}
			g.Wait()
			time.Sleep(time.Hour) // after this time, the price is no longer fresh
		}
	})
}

// TestSharedOutage checks that, while the venue fails, a process serves a stale record that another process has stored.
func TestSharedOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		a, b, _ := pair(t, v)
		mustRead(t, a.Prices(), "t")
		time.Sleep(5 * time.Second)
		v.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }
		if r := mustRead(t, b.Prices(), "t"); !r.Stale {
			t.Errorf("got %+v, want a stale price", r.Meta)
		}
	})
}

// TestSharedFlush checks that flushes of public data reach the shared cache, and that FlushLocal removes entries of the local
// cache.
func TestSharedFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, m := pair(t, &testVenue{})
		for _, kind := range []string{"price", "event_search", "market_trades", "balance"} {
			if _, err := a.Flush(kind, ""); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"price ", "event_search ", "market_trades "}; !slices.Equal(m.flushed, want) {
			t.Errorf("got flushes %q, want %q", m.flushed, want)
		}
		mustRead(t, b.Prices(), "t")
		b.FlushLocal("price", "")
		if n := b.Stats()[0].Entries; n != 0 {
			t.Errorf("after a flush: got %d prices, want 0", n)
		}
	})
}
