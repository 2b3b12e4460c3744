package e2e

import (
	"testing"
)

const queryLive = `query($id: String!) { token(tokenId: $id) {
	price { price freshness { source stale } }
	spread { bestBid bestAsk freshness { source } }
	near: orderbook(depth: 5) { bids { price size } asks { price size } freshness { source } }
	far: orderbook(depth: 200) { bids { price size } asks { price size } freshness { source } }
	fillEstimate(side: BUY, size: "500") { filledSize cost freshness { source } }
} }`

// TestRecentPricesAreThoseOfTheStream checks that a token has the stream's recent prices if a client subscribes to the token, and
// none otherwise.
func TestRecentPricesAreThoseOfTheStream(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	ids := s.openTokens(2)
	const query = `query($ids: [String!]!) { tokens(tokenIds: $ids) { recentPrices { timestamp price volume } } }`
	prices := s.dial(t, anonymous).subscribe(t, subPrices, vars{"ids": ids[:1]})
	prices.reason(t, "INITIAL")
	heard := make(map[string]bool)
	var recent []any
	got := s.callsDuring(func() {
		eventually(t, "the token has four recent prices", func() bool {
			s.move(t, ids[0])
			heard[text(prices.reason(t, "CHANGE"), "price.price")] = true
			data := s.ask(t, query, vars{"ids": ids}, anonymous)
			recent = list(data, "tokens.0.recentPrices")
			if at(data, "tokens.1.recentPrices") != nil {
				t.Fatalf("got recent prices of a token without watches: %s", asJSON(data))
			}
			return len(recent) >= 4
		})
	})
	wantCalls(t, got, calls{})
	q, _ := s.venue.Quote(ids[0])
	wantText(t, recent[len(recent)-1], "price", plain(q.Price))
	for i, p := range recent[1:] {
		if !heard[text(p, "price")] || at(p, "volume") != nil {
			t.Errorf("the recent price %s did not come from the stream", asJSON(p))
		}
		if now, before := text(p, "timestamp"), text(recent[i], "timestamp"); now <= before {
			t.Errorf("the recent price of the time %s follows the price of the time %s, want a later time", now, before)
		}
	}
}
