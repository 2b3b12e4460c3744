package cache

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

var marketM = market.MarketRef{By: market.ByMarketID, Value: "m"}

// marketSetter returns a function that sets the status and the description of the market that v returns.
func marketSetter(v *testVenue) (setMarket func(status market.Status, description string)) {
	return func(status market.Status, description string) {
		v.market = func(string) *market.Market {
			return &market.Market{MarketID: "m", Status: status, Description: description, Outcomes: []market.Outcome{{TokenID: "yes", Label: "YES"}, {TokenID: "no", Label: "NO"}}}
		}
	}
}

// TestStatusOfStream checks that reads return the status that the stream sent if the response contradicts it and was requested less
// than a minute later, and the status of REST otherwise.
func TestStatusOfStream(t *testing.T) {
	closed := &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed}
	for name, test := range map[string]struct {
		changes []*market.MarketChange
		rest    market.Status
		after   time.Duration
		want    market.Status
		stale   bool
	}{
		"REST lags behind the stream":              {[]*market.MarketChange{closed}, market.StatusOpen, 0, market.StatusClosed, true},
		"59 seconds after the change":              {[]*market.MarketChange{closed}, market.StatusOpen, 59 * time.Second, market.StatusClosed, true},
		"a minute after the change":                {[]*market.MarketChange{closed}, market.StatusOpen, time.Minute, market.StatusOpen, false},
		"REST shows a later status":                {[]*market.MarketChange{closed}, market.StatusResolved, 0, market.StatusClosed, true},
		"REST shows a later status after a minute": {[]*market.MarketChange{closed}, market.StatusResolved, time.Minute, market.StatusResolved, false},
		"further changes without a status":         {[]*market.MarketChange{closed, {Kind: "METADATA"}, nil}, market.StatusOpen, 0, market.StatusClosed, true},
		"two changes of the status":                {[]*market.MarketChange{closed, {Kind: "STATUS", Status: market.StatusOpen}}, market.StatusClosed, 0, market.StatusOpen, true},
		"change to an unknown status":              {[]*market.MarketChange{{Kind: "STATUS", Status: market.StatusUnknown, StatusRaw: "HALTED"}}, market.StatusOpen, 0, market.StatusOpen, false},
		"REST has the status of the stream":        {[]*market.MarketChange{closed}, market.StatusClosed, 0, market.StatusClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{}
				marketSetter(v)(test.rest, "")
				c := open(t, v)
				for _, change := range test.changes {
					c.StreamMarket("m", change)
				}
				time.Sleep(test.after)
				if r := mustRead(t, c.Markets(), marketM); r.Value.Status != test.want || r.Stale != test.stale {
					t.Errorf("got status %s, stale %v; want %s, %v", r.Value.Status, r.Stale, test.want, test.stale)
				}
			})
		})
	}
}

// TestWinnerOfStream checks that reads return the streamed winner of a market even if REST has no winner yet or fails.
func TestWinnerOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		setMarket := marketSetter(v)
		setMarket(market.StatusOpen, "")
		c := open(t, v)
		mustRead(t, c.Markets(), marketM)
		c.StreamMarket("m", &market.MarketChange{Kind: "RESOLVED", WinningTokenID: "no"})
		want := func(when string) {
			t.Helper()
			r := mustRead(t, c.Markets(), marketM)
			if w := r.Value.Winner(); !r.Stale || r.Value.Status != market.StatusResolved || w == nil || w.TokenID != "no" {
				t.Errorf("%s: got %+v, want resolved with winner no", when, r.Value)
			}
		}
		v.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }
		want("while the venue fails")
		v.fail = nil
		want("while REST lags behind the stream")
	})
}

// TestRESTContradictsStream checks that the cache reads a market at growing intervals while REST contradicts the stream, and at once
// after the next change.
func TestRESTContradictsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		marketSetter(v)(market.StatusOpen, "")
		c := open(t, v)
		c.StreamMarket("m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
		for range 50 {
			if r := mustRead(t, c.Markets(), marketM); !r.Stale || r.Handle.Valid() || r.Value.Status != market.StatusClosed {
				t.Fatalf("got %+v, want a stale closed market", r)
			}
			c.Markets().Refresh(t.Context(), []market.MarketRef{marketM})
			time.Sleep(time.Second)
		}
		if n := len(v.calls()); n != 5 || c.markets.stats().Late != 5 { // after 0, 2, 6, 14 and 30 seconds
			t.Errorf("got %d calls and %d late responses, want 5 of both", n, c.markets.stats().Late)
		}
		c.StreamMarket("m", nil)
		if mustRead(t, c.Markets(), marketM); len(v.calls()) != 6 {
			t.Errorf("after the next change: got %d calls, want 6", len(v.calls()))
		}
	})
}

// TestChangesOfManyMarkets checks that the first of many changes still overrides REST if Config.Changes is large enough. With the
// default of Config.Changes, the cache must forget the first change.
func TestChangesOfManyMarkets(t *testing.T) {
	const markets = 2500
	for changes, want := range map[int]market.Status{0: market.StatusOpen, markets: market.StatusClosed} {
		synctest.Test(t, func(t *testing.T) {
			v := &testVenue{}
			marketSetter(v)(market.StatusOpen, "")
			c := open(t, v, func(cfg *Config) { cfg.Changes = changes })
			c.StreamMarket("m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
			for i := range markets - 1 {
				c.StreamMarket(strconv.Itoa(i), nil)
			}
			if r := mustRead(t, c.Markets(), marketM); r.Value.Status != want {
				t.Errorf("with Changes %d and %d changed markets, the status of the first market is %s, want %s", changes, markets, r.Value.Status, want)
			}
		})
	}
}

// TestChangedMarketWhileVenueFails checks that a changed market is served stale until the end of its stale time if the venue fails.
func TestChangedMarketWhileVenueFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		byID := market.MarketRef{By: market.ByMarketID, Value: "m"}
		first := mustRead(t, c.Markets(), byID)
		c.StreamMarket("other", nil)
		if mustRead(t, c.Markets(), byID); len(v.calls()) != 1 || !first.Handle.Valid() {
			t.Errorf("after a change of another market: got %d more calls, want 0", len(v.calls())-1)
		}
		for range 3 {
			c.StreamMarket("m", nil)
		}
		if first.Handle.Valid() {
			t.Error("the handle does not show the change")
		}
		v.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }
		r := mustRead(t, c.Markets(), byID)
		if !r.Stale || r.Value != first.Value || len(v.calls()) != 2 {
			t.Errorf("got %+v after %d calls, want the stale market after 2 calls", r, len(v.calls()))
		}
		time.Sleep(2 * time.Hour)
		if r, err := readOne(t.Context(), c.Markets(), byID); market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Errorf("past its stale time: got %+v, %v; want UPSTREAM_UNAVAILABLE", r, err)
		}
		v.fail = nil
		if r := mustRead(t, c.Markets(), byID); r.Stale || r.Value == first.Value {
			t.Errorf("after the recovery: got %+v, want a fresh market", r)
		}
	})
}

// TestCallBeforeChangeIsNotFresh checks that the result of a call that started before a change of the market is never fresh.
func TestCallBeforeChangeIsNotFresh(t *testing.T) {
	byID := market.MarketRef{By: market.ByMarketID, Value: "m"}
	for name, asked := range map[string]market.MarketRef{"by id": byID, "by slug": {By: market.BySlug, Value: "slug"}, "by token": byToken("yes")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, hold := &testVenue{}, make(chan struct{})
				c := open(t, v)
				// The first call returns when the test closes the channel hold. Its response says that the market is open.
				v.fail = func(ask) error {
					if len(v.calls()) == 1 {
						<-hold
					}
					return nil
				}
				setMarket := func(s market.Status) {
					v.market = func(string) *market.Market {
						return &market.Market{MarketID: "m", Slug: "slug", Status: s, Outcomes: []market.Outcome{{TokenID: "yes"}}}
					}
				}
				before := make(chan reads.Value[*market.Market], 1)
				go func() { before <- mustRead(t, c.Markets(), asked) }()
				synctest.Wait()
				c.StreamMarket("m", nil)
				setMarket(market.StatusClosed)
				// A later caller makes a new call. The result of the old call does not replace the result of the new call.
				after := make(chan reads.Value[*market.Market], 1)
				go func() { after <- mustRead(t, c.Markets(), asked) }()
				synctest.Wait()
				select {
				case r := <-after:
					if r.Stale || r.Value.Status != market.StatusClosed {
						t.Errorf("after the change: got %+v, stale %v; want closed and fresh", r.Value.Status, r.Stale)
					}
				default:
					t.Error("a read after the change waits for the call that started before the change")
				}
				setMarket(market.StatusOpen)
				close(hold)
				if r := <-before; !r.Stale || r.Value.Status != market.StatusOpen || r.Handle.Valid() {
					t.Errorf("before the change: got %+v, stale %v, valid %v; want open and stale", r.Value.Status, r.Stale, r.Handle.Valid())
				}
				synctest.Wait()
				setMarket(market.StatusClosed)
				if r := mustRead(t, c.Markets(), byID); r.Stale || r.Value.Status != market.StatusClosed || len(v.calls()) != 2 {
					t.Errorf("after the old result: got %+v, stale %v, %d calls; want closed, fresh, 2", r.Value.Status, r.Stale, len(v.calls()))
				}
				for _, l := range c.markets.routes {
					wantIdle(t, l)
				}
			})
		})
	}
}

// TestCallBeforeChangeIsCancelled checks that the cache cancels a call that started before a change when the call has no waiting
// callers.
func TestCallBeforeChangeIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{blocked: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = readOne(ctx, c.Markets(), market.MarketRef{By: market.ByMarketID, Value: "m"}) }()
		synctest.Wait()
		c.StreamMarket("m", nil)
		if synctest.Wait(); v.calls()[0].ctx.Err() != nil {
			t.Error("the change cancelled a call with a waiter")
		}
		cancel()
		if synctest.Wait(); v.calls()[0].ctx.Err() == nil {
			t.Error("a call without waiters was not cancelled")
		}
		wantIdle(t, c.markets.routes[0])
	})
}
