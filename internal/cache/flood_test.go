package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/ratelimit"
)

// meter is a venue that allows limit calls in 60 seconds and refuses more.
type meter struct {
	venue
	limit   int
	mu      sync.Mutex
	times   []time.Time
	refused atomic.Int64
}

// newMeter returns a venue whose calls take 30 ms.
func newMeter(limit int) *meter {
	m := &meter{limit: limit}
	m.latency = 30 * time.Millisecond
	m.fail = func(a ask) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		now := time.Now()
		for len(m.times) > 0 && !m.times[0].Add(time.Minute).After(now) {
			m.times = m.times[1:]
		}
		if len(m.times) >= m.limit {
			m.refused.Add(1)
			until := m.times[0].Add(time.Minute)
			reqctx.ReportThrottled(a.ctx, until)
			return reqctx.RateLimited(until.Sub(now))
		}
		m.times = append(m.times, now)
		return nil
	}
	return m
}

// most returns the greatest number of calls within 60 seconds.
func (m *meter) most() (most int) {
	calls := m.calls()
	slices.SortFunc(calls, func(a, b ask) int { return a.at.Compare(b.at) })
	first := 0
	for i := range calls {
		for calls[i].at.Sub(calls[first].at) > time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// outcomes counts the results of clients.
type outcomes struct {
	fresh, stale, refused, failed atomic.Int64
	oldest                        atomic.Int64
}

func (o *outcomes) note(m market.Meta, err error) {
	switch {
	case market.CodeOf(err) == market.CodeRateLimited:
		o.refused.Add(1)
	case err != nil:
		o.failed.Add(1)
	case m.Stale:
		o.stale.Add(1)
		for age, was := int64(time.Since(m.ReceivedAt)), o.oldest.Load(); age > was && !o.oldest.CompareAndSwap(was, age); was = o.oldest.Load() {
		}
	default:
		o.fresh.Add(1)
	}
}

func (o *outcomes) String() string {
	return fmt.Sprintf("%d fresh, %d stale (the oldest %s), %d refused, %d failed", o.fresh.Load(), o.stale.Load(), time.Duration(o.oldest.Load()), o.refused.Load(), o.failed.Load())
}

// board reads the prices of 50 tokens, as one client's tokenPrices.
func board(ctx context.Context, c *Cache, first int, o *outcomes) {
	keys := make([]string, 50)
	for i := range keys {
		keys[i] = fmt.Sprintf("t%03d", (first+i)%500)
	}
	for _, r := range readAll(ctx, c.Prices(), keys...) {
		o.note(r.Value.Meta, r.Err)
	}
}

// page reads a market and two books, as one client's market page.
func page(ctx context.Context, c *Cache, n int, o *outcomes) {
	if r, err := readOne(ctx, c.Markets(), market.MarketRef{Value: fmt.Sprint("m", n)}); err != nil || r.Value == nil {
		o.note(r.Meta, err) // successes do not count, since markets may be an hour old
	}
	for _, b := range readAll(ctx, c.Books(), queries.Book{TokenID: fmt.Sprint("y", n), Depth: 20}, queries.Book{TokenID: fmt.Sprint("n", n), Depth: 20}) {
		o.note(b.Value.Meta, b.Err)
	}
}

// For two minutes, 150 boards and 20 market pages are read every second. The venue allows 100 calls in 60 seconds. It
// never gets more and refuses none. Every client gets fresh or stale data. Then the venue wants no calls. Stale data is
// served for five minutes, then clients get RATE_LIMITED.
func TestManyClientsWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newMeter(100)
		c, b := openLimited(t, v, ratelimit.Config{})
		run := func(d time.Duration, clients int) *outcomes {
			o, start := &outcomes{}, time.Now()
			var wg sync.WaitGroup
			for i := range clients + 20 {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				wg.Go(func() {
					time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
					for time.Since(start) < d {
						ctx, cancel := context.WithTimeout(reqctx.WithCaller(t.Context(), fmt.Sprint("client", i)), 10*time.Second)
						next := time.Now().Add(time.Second)
						if i < 20 {
							page(ctx, c, i, o)
						} else {
							board(ctx, c, i*37, o)
						}
						cancel()
						time.Sleep(time.Until(next))
					}
				})
			}
			wg.Wait()
			return o
		}
		o := run(2*time.Minute, 150)
		t.Logf("%s; %d calls, at most %d in 60 seconds, %d refused by the venue", o, len(v.calls()), v.most(), v.refused.Load())
		if v.most() > 100 || v.refused.Load() != 0 {
			t.Errorf("got %d calls in 60 seconds and %d refused, want at most 100 and 0", v.most(), v.refused.Load())
		}
		if o.refused.Load()+o.failed.Load() != 0 || o.stale.Load() == 0 || time.Duration(o.oldest.Load()) > 2*time.Minute {
			t.Errorf("got %s, want no errors, some stale values, none older than two minutes", o)
		}
		if n := len(v.calls()); n < 180 {
			t.Errorf("got %d calls, want at least 180", n)
		}

		k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})
		k.Throttled(time.Now().Add(5 * time.Minute))
		o = run(3*time.Minute, 10)
		k.Throttled(time.Now().Add(5 * time.Minute))
		k.Release(false)
		if o.refused.Load()+o.failed.Load()+o.fresh.Load() >= o.stale.Load() || o.refused.Load()+o.failed.Load() != 0 {
			t.Errorf("throttled: got %s, want mostly stale values and no errors", o)
		}
		time.Sleep(2 * time.Minute)
		calls := len(v.calls())
		o = run(time.Minute, 10)
		t.Logf("after five minutes: %s", o)
		if o.refused.Load() == 0 || o.failed.Load() != 0 || o.stale.Load()+o.fresh.Load() != 0 || len(v.calls()) != calls {
			t.Errorf("after five minutes: got %s and %d calls, want refusals and no calls", o, len(v.calls())-calls)
		}
	})
}

// An attacker reads 40 random ids at a time, as fast as possible, beside 50 honest clients with 40 tokens each. The
// honest clients notice nothing, hot entries stay cached, and the attacker gets its share of the budget and no watch.
func TestRandomIDAttacker(t *testing.T) {
	run := func(t *testing.T, attackers int) (o *outcomes, c *Cache, v *meter, b *ratelimit.Budget, s *streamer, junk int) {
		v, s = newMeter(100), &streamer{}
		c, b = openLimited(t, v, ratelimit.Config{}, func(cfg *Config) { cfg.Price.Size, cfg.NotFoundSize = 100, 200 })
		c.SetStreamer(s)
		o = &outcomes{}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				for time.Since(start) < 3*time.Minute {
					ctx, cancel := context.WithTimeout(reqctx.WithCaller(t.Context(), fmt.Sprint("honest", i)), 10*time.Second)
					for _, r := range readAll(ctx, c.Prices(), ids("t", 0, 40)...) {
						o.note(r.Value.Meta, r.Err)
					}
					cancel()
					time.Sleep(time.Second)
				}
			})
		}
		for i := range 4 * attackers { // the connections of one client
			r := rand.New(rand.NewPCG(9, uint64(i)))
			wg.Go(func() {
				time.Sleep(2 * time.Second)
				for time.Since(start) < 3*time.Minute {
					ctx, cancel := context.WithTimeout(reqctx.WithCaller(t.Context(), "attacker"), 10*time.Second)
					keys := make([]string, 40)
					for i := range keys {
						keys[i] = fmt.Sprintf("junk%x", r.Uint64())
						v.setUnknown(keys[i], true)
					}
					readAll(ctx, c.Prices(), keys...)
					cancel()
					time.Sleep(40 * time.Millisecond) // the round trip
				}
			})
		}
		wg.Wait()
		for _, call := range v.calls() {
			if len(call.keys[0]) > 8 && len(call.keys[len(call.keys)-1]) > 8 {
				junk++
			}
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		alone, _, _, _, _, _ := run(t, 0)
		time.Sleep(2 * window)
		beside, c, v, b, s, junk := run(t, 1)
		t.Logf("alone:  %s", alone)
		t.Logf("beside: %s; %d calls, %d for junk, %+v", beside, len(v.calls()), junk, b.Status())
		for i, o := range []*outcomes{alone, beside} {
			if o.refused.Load()+o.failed.Load() != 0 || time.Duration(o.oldest.Load()) > 5*time.Second {
				t.Errorf("run %d: got %s, want no errors and no value older than 5 s", i, o)
			}
		}
		if v.refused.Load() != 0 || v.most() > 100 || junk > 4*24 {
			t.Errorf("got %d calls in 60 seconds, %d refused, %d for junk", v.most(), v.refused.Load(), junk)
		}
		for _, token := range s.wanted() {
			if len(token) > 8 {
				t.Fatalf("got a watch on junk %s", token)
			}
		}
		if n := c.prices.entries.len(); n != 40 {
			t.Errorf("got %d cached prices, want 40", n)
		}
		if e := c.prices.entries.get("t000"); e == nil || e.read.Handle.Version() != 0 {
			t.Error("a hot entry was evicted")
		}
	})
}
