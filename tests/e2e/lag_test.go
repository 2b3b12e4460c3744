package e2e

import (
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
)

const queryMarket = `query($id: String!) { market(marketId: $id) { status description resolution { winningOutcome } tokens { outcome winner } freshness { stale } } }`

// shownMarket returns the market in the response to queryMarket.
func (s *service) shownMarket(t *testing.T, id string) any {
	t.Helper()
	return at(s.ask(t, queryMarket, vars{"id": id}, anonymous), "market")
}

// TestAMarketChangesUnderLag checks markets of a venue whose REST responses lag up to three seconds behind its stream. Queries and
// events must show the streamed change at once. The market must be stale until a REST response has the change.
func TestAMarketChangesUnderLag(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, v *demo.Venue, id string) error
		// shows reports whether a market has the change.
		shows func(m any) bool
	}{
		"status": {
			func(_ *testing.T, v *demo.Venue, id string) error { return v.SetStatus(id, "CLOSED") },
			func(m any) bool { return text(m, "status") == "CLOSED" },
		},
		"resolution": {
			func(t *testing.T, v *demo.Venue, id string) error {
				tokens := v.Tokens()
				return v.Resolve(id, tokens[slices.IndexFunc(tokens, func(x demo.Token) bool { return x.MarketID == id })].TokenID)
			},
			func(m any) bool {
				return text(m, "status") == "RESOLVED" && slices.Contains(pluck(m, "tokens", "winner"), "true")
			},
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
				if !test.shows(at(v, "market")) {
					t.Fatalf("the event shows the market from before its change: %s", asJSON(v))
				}
				if m := s.shownMarket(t, id); !test.shows(m) {
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
