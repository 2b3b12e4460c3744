package e2e

import (
	"math/big"
	"testing"

	"oddsgraph/tests/tool"
)

const queryLive = `query($id: String!) { token(tokenId: $id) {
	price { price freshness { source stale } }
	spread { bestBid bestAsk freshness { source } }
	near: orderbook(depth: 5) { bids { price size } asks { price size } freshness { source } }
	far: orderbook(depth: 200) { bids { price size } asks { price size } freshness { source } }
	fillEstimate(side: BUY, size: "500") { filledSize cost freshness { source } }
} }`

// wantLive compares the data of queryLive with the quote and the book at the demo venue. The price, the spread and both books must
// come from the stream.
func (s *service) wantLive(t testing.TB, id string, v any) {
	t.Helper()
	q, _ := s.venue.Quote(id)
	wantText(t, v, "token.price.price", plain(q.Price))
	wantText(t, v, "token.spread.bestBid", plain(q.BestBid))
	wantText(t, v, "token.spread.bestAsk", plain(q.BestAsk))
	wantBook(t, v, "token.near.", s.bookOf(t, id, 5))
	wantBook(t, v, "token.far.", s.bookOf(t, id, 200))
	book, _ := s.venue.Book(id)
	cost, left := new(big.Rat), big.NewRat(500, 1)
	for _, l := range book.Asks {
		n := rat(l.Size.String())
		if n.Cmp(left) > 0 {
			n = left
		}
		cost.Add(cost, mul(n, rat(l.Price.String())))
		left = sub(left, n)
	}
	wantNumber(t, "cost", at(v, "token.fillEstimate.cost"), cost)
	for _, part := range []string{"price", "spread", "near", "far"} {
		wantText(t, v, "token."+part+".freshness.source", "STREAM")
	}
	if at(v, "token.price.freshness.stale") != false {
		t.Errorf("a live price is stale: %s", asJSON(v))
	}
}

func TestQueriesOfWatchedTokensCostTheVenueNothing(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	s := startLive(t, "--cache-market-fresh=1h") // with the default of one minute, the market could expire during the queries
	s.waitForStream(t)
	id := s.openTokens(1)[0]
	for _, query := range []struct {
		name, text string
		variables  vars
	}{
		{"priceChanged", subPrices, vars{"ids": []string{id}}},
		{"orderbookChanged", subBook, vars{"id": id}},
	} {
		t.Run(query.name, func(t *testing.T) {
			k := s.dial(t, anonymous)
			sub := k.subscribe(t, query.text, query.variables)
			sub.reason(t, "INITIAL")
			eventually(t, "price and book are streamed", func() bool { return s.isLive(t, id) })
			got := s.callsDuring(func() {
				for n := range 1000 {
					if n%50 == 0 {
						s.move(t, id)
						q, _ := s.venue.Quote(id)
						eventually(t, "the new price has arrived", func() bool {
							v := s.ask(t, queryLive, vars{"id": id}, anonymous)
							return text(v, "token.price.price") == plain(q.Price) && equalLadders(ladderOf(v, "token.near."), s.bookOf(t, id, 5))
						})
					}
					s.wantLive(t, id, s.ask(t, queryLive, vars{"id": id}, anonymous))
				}
			})
			wantCalls(t, got, calls{})
		})
	}
}

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

// isLive reports whether the price, the spread and both books in the data of queryLive come from the stream.
func (s *service) isLive(t testing.TB, id string) bool {
	t.Helper()
	v := s.ask(t, queryLive, vars{"id": id}, anonymous)
	for _, part := range []string{"price", "spread", "near", "far"} {
		if text(v, "token."+part+".freshness.source") != "STREAM" {
			return false
		}
	}
	return true
}
