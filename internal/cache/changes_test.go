package cache

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

var marketM = market.MarketRef{By: market.ByMarketID, Value: "m"}

// marketSetter returns a function that sets the status and the description of the market that v returns.
func marketSetter(v *venue) (setMarket func(status market.Status, description string)) {
	return func(status market.Status, description string) {
		v.market = func(string) *market.Market {
			return &market.Market{MarketID: "m", Status: status, Description: description, Outcomes: []market.Outcome{{TokenID: "yes", Label: "YES"}, {TokenID: "no", Label: "NO"}}}
		}
	}
}

// TestResponseOlderThanChange checks that a response from an HTTP cache is stale if the response is older than a change of the
// market. A read must fetch the market again as soon as the HTTP cache can have a newer response.
func TestResponseOlderThanChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		setMarket := marketSetter(v)
		setMarket(market.StatusOpen, "old")
		c := open(t, v)
		mustRead(t, c.Markets(), marketM)
		c.StreamMarket(new(market.Session), "m", nil)
		v.age = market.Age{Known: true, Least: 3 * time.Second, Most: 4 * time.Second, Renewed: 7 * time.Second}
		for range 3 { // only the first read makes a call
			if r := mustRead(t, c.Markets(), marketM); !r.Stale || r.Handle.Version() == 0 || r.Handle.Age().Renewed != 7*time.Second || len(v.calls()) != 2 {
				t.Fatalf("after the change: got %+v, %d calls; want a stale market and 2 calls", r, len(v.calls()))
			}
			c.Markets().Refresh(t.Context(), []market.MarketRef{marketM})
			synctest.Wait()
			time.Sleep(2 * time.Second)
		}
		// The next change causes a call at once.
		setMarket(market.StatusOpen, "new")
		c.StreamMarket(new(market.Session), "m", nil)
		if r := mustRead(t, c.Markets(), marketM); !r.Stale || r.Value.Description != "new" || len(v.calls()) != 3 {
			t.Errorf("after the next change: got %+v, %d calls; want the new market, stale, and 3 calls", r, len(v.calls()))
		}
		time.Sleep(7 * time.Second)
		if r := mustRead(t, c.Markets(), marketM); r.Stale || len(v.calls()) != 4 {
			t.Errorf("after the wait: got %+v, %d calls; want a fresh market and 4", r, len(v.calls()))
		}
		if r := mustRead(t, c.Markets(), marketM); r.Stale || len(v.calls()) != 4 {
			t.Errorf("later: got %+v, %d calls; want a fresh market and 4", r, len(v.calls()))
		}
	})
}

// TestStatusOfStream checks when reads return the status that the stream sent, and when they return the status of REST.
func TestStatusOfStream(t *testing.T) {
	closed := &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed}
	for name, test := range map[string]struct {
		changes []*market.MarketChange
		rest    market.Status
		age     market.Age
		end     bool // whether the session ends right after the change
		after   time.Duration
		want    market.Status
		stale   bool
	}{
		"REST lags behind the stream":                  {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, false, 0, market.StatusClosed, true},
		"REST lags behind the stream for an hour":      {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, false, time.Hour, market.StatusClosed, true},
		"50 s after the end of the stream":             {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, true, 50 * time.Second, market.StatusClosed, true},
		"2 minutes after the end of the stream":        {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{}, true, 2 * time.Minute, market.StatusOpen, false},
		"REST response made right after the change":    {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{Known: true}, false, time.Second, market.StatusClosed, true},
		"REST response made a minute after the change": {[]*market.MarketChange{closed}, market.StatusOpen, market.Age{Known: true}, false, time.Minute, market.StatusOpen, false},
		"REST shows a later status":                    {[]*market.MarketChange{closed}, market.StatusResolved, market.Age{}, false, 0, market.StatusClosed, true},
		"REST shows a later status after 2 minutes":    {[]*market.MarketChange{closed}, market.StatusResolved, market.Age{}, false, 2 * time.Minute, market.StatusResolved, false},
		"further changes without a status":             {[]*market.MarketChange{closed, {Kind: "METADATA"}, nil}, market.StatusOpen, market.Age{}, false, 0, market.StatusClosed, true},
		"two changes of the status":                    {[]*market.MarketChange{closed, {Kind: "STATUS", Status: market.StatusOpen}}, market.StatusClosed, market.Age{}, false, 0, market.StatusOpen, true},
		"change to an unknown status":                  {[]*market.MarketChange{{Kind: "STATUS", Status: market.StatusUnknown, StatusRaw: "HALTED"}}, market.StatusOpen, market.Age{}, false, 0, market.StatusOpen, false},
		"REST has the status of the stream":            {[]*market.MarketChange{closed}, market.StatusClosed, market.Age{}, false, 0, market.StatusClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &venue{age: test.age}
				marketSetter(v)(test.rest, "")
				c, session := open(t, v), new(market.Session)
				for _, change := range test.changes {
					c.StreamMarket(session, "m", change)
				}
				if test.end {
					session.End(time.Now())
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
		v := &venue{}
		setMarket := marketSetter(v)
		setMarket(market.StatusOpen, "")
		c := open(t, v)
		mustRead(t, c.Markets(), marketM)
		c.StreamMarket(new(market.Session), "m", &market.MarketChange{Kind: "RESOLVED", WinningTokenID: "no"})
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

// TestRESTContradictsStream checks that the cache reads a market at growing intervals while REST contradicts the stream.
func TestRESTContradictsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		marketSetter(v)(market.StatusOpen, "")
		c := open(t, v)
		c.StreamMarket(new(market.Session), "m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
		for range 3600 {
			mustRead(t, c.Markets(), marketM)
			time.Sleep(time.Second)
		}
		if n := len(v.calls()); n < 15 || n > 25 || c.markets.stats().Late != uint64(n) {
			t.Errorf("got %d calls in an hour and %d late responses, want 15 to 25 of both", n, c.markets.stats().Late)
		}
	})
}

// TestChangesOfManyMarkets checks that the first of many changes still overrides REST if Config.Changes is large enough. With the
// default of Config.Changes, the cache must forget the first change.
func TestChangesOfManyMarkets(t *testing.T) {
	const markets = 2500
	for changes, want := range map[int]market.Status{0: market.StatusOpen, markets: market.StatusClosed} {
		synctest.Test(t, func(t *testing.T) {
			v := &venue{}
			marketSetter(v)(market.StatusOpen, "")
			c, session := open(t, v, func(cfg *Config) { cfg.Changes = changes }), new(market.Session)
			c.StreamMarket(session, "m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
			for i := range markets - 1 {
				c.StreamMarket(session, strconv.Itoa(i), nil)
			}
			if r := mustRead(t, c.Markets(), marketM); r.Value.Status != want {
				t.Errorf("with Changes %d and %d changed markets, the status of the first market is %s, want %s", changes, markets, r.Value.Status, want)
			}
		})
	}
}

// TestStatusAfterGap checks that a REST response does not replace a streamed status right after StreamStale, but replaces it two
// minutes later.
func TestStatusAfterGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		marketSetter(v)(market.StatusOpen, "")
		c, session := open(t, v), new(market.Session)
		c.StreamMarket(session, "m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
		c.StreamStale(messages.Topic{Channel: messages.ChannelMarket, ID: "m"})
		c.StreamMarket(session, "m", nil)
		if r := mustRead(t, c.Markets(), marketM); r.Value.Status != market.StatusClosed || !r.Stale {
			t.Errorf("right after the gap: got %+v, want closed and stale", r)
		}
		time.Sleep(2 * time.Minute)
		if r := mustRead(t, c.Markets(), marketM); r.Value.Status != market.StatusOpen || r.Stale {
			t.Errorf("two minutes later: got %+v, want open and fresh", r)
		}
	})
}

// TestResponseOlderThanEndOfStream checks that a REST response that is older than the end of a session does not replace the value
// that the session streamed.
func TestResponseOlderThanEndOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{age: market.Age{Known: true, Least: 10 * time.Second, Most: 11 * time.Second, Renewed: 10 * time.Second}}
		c, session := open(t, v), new(market.Session)
		ctx := withCredentials(t, "alice")
		topic := messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: c.Scope(ctx, wallet)}
		streamed := &market.Balance{}
		c.StreamAccount(session, topic, nil, nil, streamed, market.Meta{ReceivedAt: time.Now(), Source: market.SourceStream})
		time.Sleep(time.Minute)
		session.End(time.Now())
		for range 4 {
			time.Sleep(2 * time.Second)
			if r, err := readOne(ctx, c.Balances(), wallet); err != nil || r.Value != streamed {
				t.Errorf("response from before the end: got %+v, %v; want the streamed balance", r, err)
			}
		}
		time.Sleep(4 * time.Second)
		if r, err := readOne(ctx, c.Balances(), wallet); err != nil || r.Value == streamed {
			t.Errorf("response from after the end: got %+v, %v; want the balance of REST", r, err)
		}
	})
}

// TestChangedMarketWhileVenueFails checks that a changed market is served stale until the end of its stale time if the venue fails.
func TestChangedMarketWhileVenueFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		byID := market.MarketRef{By: market.ByMarketID, Value: "m"}
		first := mustRead(t, c.Markets(), byID)
		c.StreamMarket(new(market.Session), "other", nil)
		if mustRead(t, c.Markets(), byID); len(v.calls()) != 1 || first.Handle.Version() != 0 {
			t.Errorf("after a change of another market: got %d more calls, want 0", len(v.calls())-1)
		}
		for range 3 {
			c.StreamMarket(new(market.Session), "m", nil)
		}
		if first.Handle.Version() == 0 {
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
				v, hold := &venue{}, make(chan struct{})
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
				before := make(chan market.Read[*market.Market], 1)
				go func() { before <- mustRead(t, c.Markets(), asked) }()
				synctest.Wait()
				c.StreamMarket(new(market.Session), "m", nil)
				setMarket(market.StatusClosed)
				// A later caller makes a new call. The result of the old call does not replace the result of the new call.
				after := make(chan market.Read[*market.Market], 1)
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
				if r := <-before; !r.Stale || r.Value.Status != market.StatusOpen || r.Handle.Version() == 0 {
					t.Errorf("before the change: got %+v, stale %v, version %d; want open and stale", r.Value.Status, r.Stale, r.Handle.Version())
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
		v := &venue{blocked: make(chan struct{})}
		c := open(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = readOne(ctx, c.Markets(), market.MarketRef{By: market.ByMarketID, Value: "m"}) }()
		synctest.Wait()
		c.StreamMarket(new(market.Session), "m", nil)
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
