package e2e

import (
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

const queryMarket = `query($id: String!) { market(marketId: $id) { status description resolution { winningOutcome } tokens { outcome winner } freshness { stale } } }`

// shownMarket returns the market in the response to queryMarket.
func (s *service) shownMarket(t *testing.T, id string) any {
	t.Helper()
	return at(s.ask(t, queryMarket, vars{"id": id}, anonymous), "market")
}

// TestAMarketChangesUnderLag checks markets of a venue whose REST responses lag up to three seconds behind its stream. If the
// stream sends the whole change, queries must show the change at once. Otherwise the market must be stale until a REST response has
// the change.
func TestAMarketChangesUnderLag(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, v *demo.Venue, id string) error
		// shows reports whether a market has the change.
		shows func(m any) bool
		// announced is true if the stream sends the whole change.
		announced bool
	}{
		"status": {
			func(_ *testing.T, v *demo.Venue, id string) error { return v.SetStatus(id, "CLOSED") },
			func(m any) bool { return text(m, "status") == "CLOSED" }, true,
		},
		"description": {
			func(_ *testing.T, v *demo.Venue, id string) error { return v.Reword(id, "new words") },
			func(m any) bool { return text(m, "description") == "new words" }, false,
		},
		"resolution": {
			func(t *testing.T, v *demo.Venue, id string) error {
				tokens := v.Tokens()
				return v.Resolve(id, tokens[slices.IndexFunc(tokens, func(x demo.Token) bool { return x.MarketID == id })].TokenID)
			},
			func(m any) bool {
				return text(m, "status") == "RESOLVED" && slices.Contains(pluck(m, "tokens", "winner"), "true")
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startLive(t, "--demo-lag=3s")
			s.waitForStream(t)
			id := s.openMarkets(30)[25]
			query := strings.Replace(subMarkets, "marketId status", "marketId status resolution { winningOutcome } outcomes: tokens { outcome }", 1)
			sub := s.dial(t, anonymous).subscribe(t, query, vars{"ids": []string{id}})
			sub.until(t, "an event with the fresh market", func(v any) bool { return at(v, "market.freshness.stale") == false })
			s.shownMarket(t, id)
			before := s.venue.Stats()
			if err := test.change(t, s.venue, id); err != nil {
				t.Fatal(err)
			}
			sub.until(t, "the change", func(v any) bool {
				fresh := at(v, "market.freshness.stale") == false
				if shows := test.shows(at(v, "market")); !shows && (fresh || test.announced) {
					t.Fatalf("the event shows the market from before its change: %s", asJSON(v))
				}
				if m := s.shownMarket(t, id); !test.shows(m) && (at(m, "freshness.stale") == false || test.announced) {
					t.Fatalf("a query shows the market from before its change: %s", asJSON(m))
				}
				return fresh
			})
			m := s.shownMarket(t, id)
			if !test.shows(m) || at(m, "freshness.stale") != false {
				t.Errorf("after the change, a query shows %s, want the changed market and stale false", asJSON(m))
			}
			const path = "/api/exchange/market-details"
			if n := s.venue.Stats().Requests[path] - before.Requests[path]; n > 4 {
				t.Errorf("the change caused %d calls for markets, want at most 4", n)
			}
		})
	}
}

// TestTradesUnderLag checks that a new subscription shows a trade that the stream has sent and REST responses do not have yet.
func TestTradesUnderLag(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	s := startLive(t, "--demo-lag=3s")
	s.waitForStream(t)
	k := s.dial(t, keyOf50)
	read := func(name string) *events { // with different aliases, the subscriptions do not share an execution
		return k.subscribe(t, strings.Replace(subUserTrades, "gap", "gap "+name+": reason", 1), vars{"a": addressOf50})
	}
	read("learning").reason(t, "INITIAL") // the first REST call also finds out how the venue pages trades
	first := read("first")
	first.reason(t, "INITIAL")
	token := s.sell(t, 300)
	shows := func(v any) bool {
		return slices.ContainsFunc(list(v, "trades"), func(x any) bool { return text(x, "tokenId") == token && text(x, "size") == "3" })
	}
	first.until(t, "the trade", shows)
	second := read("second")
	second.until(t, "the trade", shows)
}

// sell sells shares of the first position of addressOf50 for which the venue accepts the sale. size is in hundredths of a share.
// sell returns the position's token.
func (s *service) sell(t *testing.T, size demo.Size) string {
	t.Helper()
	for _, x := range s.venue.Positions(addressOf50) {
		if s.venue.Trade(addressOf50, x.TokenID, demo.Sell, size) == nil {
			return x.TokenID
		}
	}
	t.Fatal("the venue accepts no sale of any position")
	return ""
}

// TestAnAccountUnderLag checks that a balance does not go back to an older value from REST when the stream closes. In the end, an
// event must have the venue's current balance.
func TestAnAccountUnderLag(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	s := startLive(t, "--demo-lag=8s")
	s.waitForStream(t)
	const query = `query($a: Address!) { user(address: $a) { balance { cashBalance } } }`
	cash := func() string {
		return text(s.ask(t, query, vars{"a": addressOf50}, keyOf50), "user.balance.cashBalance")
	}
	old := cash() // REST responses may have this balance for eight more seconds
	sub := s.dial(t, keyOf50).subscribe(t, subBalance, vars{"a": addressOf50})
	sub.until(t, "the stream's balance", func(v any) bool { return text(v, "balance.freshness.source") == "STREAM" })
	s.sell(t, 300)
	sub.until(t, "the change", func(v any) bool { return text(v, "balance.cashBalance") != old })
	s.setFaults(t, demo.Fault{Path: demo.StreamPath, Kind: demo.FaultClose, Channel: "user"},
		demo.Fault{Path: demo.StreamPath, Kind: demo.FaultStatus, Status: 503})
	s.sell(t, 500)
	balance, _ := s.venue.Balance(addressOf50)
	sub.until(t, "the venue's current balance", func(v any) bool {
		if now, asked := text(v, "balance.cashBalance"), cash(); now == old || asked == old {
			t.Fatalf("the balance is the old %s again: an event shows %s, a query %s", old, now, asked)
		}
		return text(v, "balance.cashBalance") == plain(balance.CashBalance)
	})
}
