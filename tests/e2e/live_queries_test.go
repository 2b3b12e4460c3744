package e2e

import (
	"fmt"
	"math/big"
	"testing"

	"oddsgraph/internal/demo"
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
	t.Parallel()
	s := startLive(t, "--cache-market-fresh=1h") // with the default of one minute, the market could expire during the queries
	s.streaming(t)
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
							return text(v, "token.price.price") == plain(q.Price) && same(ladderOf(v, "token.near."), s.bookOf(t, id, 5))
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
	s.streaming(t)
	ids := s.openTokens(2)
	const query = `query($ids: [String!]!) { tokens(tokenIds: $ids) { recentPrices { timestamp price volume } } }`
	prices := s.dial(t, anonymous).subscribe(t, subPrices, vars{"ids": ids[:1]})
	prices.reason(t, "INITIAL")
	heard := make(map[string]bool)
	var recent []any
	got := s.callsDuring(func() {
		eventually(t, "three seconds of prices are kept", func() bool {
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
			t.Errorf("the stream did not bring %s", asJSON(p))
		}
		if now, before := text(p, "timestamp"), text(recent[i], "timestamp"); now <= before {
			t.Errorf("%s follows %s", now, before)
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

func TestQueriesThatAskAgainAreStreamed(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.streaming(t)
	ids := s.openTokens(2)
	for range 2 {
		s.ask(t, `query($id: String!) { token(tokenId: $id) { price { price } } }`, vars{"id": ids[1]}, anonymous)
	}
	if n := s.venue.Stats().Stream.Subscribes["prices"]; n != 0 {
		t.Errorf("%d tokens are streamed after two queries", n)
	}
	asked := 0
	eventually(t, "the token is streamed", func() bool { asked++; return s.isLive(t, ids[0]) })
	t.Logf("streamed after %d queries", asked)
	got := s.callsDuring(func() {
		for range 1000 {
			s.wantLive(t, ids[0], s.ask(t, queryLive, vars{"id": ids[0]}, anonymous))
		}
	})
	wantCalls(t, got, calls{})
	if topics := s.venue.Stats().Stream.Topics; topics["prices"] != 1 || topics["orderbook"] != 1 {
		t.Errorf("topics are %v, want one price and one book", topics)
	}
}

// TestManySubscribersShareATopic checks that 1,000 subscriptions to one token share one topic of the venue's stream.
func TestManySubscribersShareATopic(t *testing.T) {
	s := startLive(t)
	s.streaming(t)
	id := s.openTokens(1)[0]
	before := goroutines(t)
	sockets := make([]*socket, 10)
	var subs []*events
	for i := range sockets {
		sockets[i] = s.dial(t, anonymous)
		for range 100 {
			subs = append(subs, sockets[i].subscribe(t, `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) { reason price { price } } }`, vars{"ids": []string{id}}))
		}
	}
	for _, sub := range subs {
		sub.reason(t, "INITIAL")
	}
	stats := s.venue.Stats().Stream
	if stats.Topics["prices"] != 1 || stats.Subscriptions["prices"] != 1 || stats.Subscribes["prices"] != 1 {
		t.Errorf("1,000 subscribers of a token make topics %v, subscriptions %v, subscribes %v", stats.Topics, stats.Subscriptions, stats.Subscribes)
	}
	for range 5 {
		to := s.move(t, id)
		for _, sub := range subs {
			wantText(t, sub.reason(t, "CHANGE"), "price.price", plain(to))
		}
	}
	for i, k := range sockets {
		if i%2 == 0 { // half of the clients first end their subscriptions, the other half only disconnects
			for n := range 100 {
				subs[100*i+n].stop()
			}
		}
		k.close()
		<-k.done
	}
	eventually(t, "the topic is closed", func() bool { return len(s.venue.Stats().Stream.Topics) == 0 })
	eventually(t, fmt.Sprintf("goroutines are down to %d", before), func() bool { return goroutines(t) <= before+2 })
}

// TestASlowSubscriberDelaysNobody checks that clients get every trade while another client reads nothing. The service must
// disconnect the client that reads nothing.
func TestASlowSubscriberDelaysNobody(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.streaming(t)
	ids := s.openTokens(1)
	query := `subscription($ids: [String!]!) { tradesAdded(tokenIds: $ids) { reason gap trades { tradeId size } } }`
	unread := s.dialUnread(t, anonymous)
	for n := range 50 {
		payload := asJSON(vars{"query": subBook, "variables": vars{"id": ids[0], "depth": 200}})
		unread.send(t, frame{ID: fmt.Sprint("b", n), Type: "subscribe", Payload: []byte(payload)})
		unread.send(t, frame{ID: fmt.Sprint("t", n), Type: "subscribe", Payload: []byte(asJSON(vars{"query": query, "variables": vars{"ids": ids}}))})
	}
	readers := []*events{s.dial(t, anonymous).subscribe(t, query, vars{"ids": ids}), s.dial(t, anonymous).subscribe(t, query, vars{"ids": ids})}
	for _, r := range readers {
		r.reason(t, "INITIAL")
	}
	eventually(t, "the client that does not read is subscribed", func() bool { return s.venue.Stats().Stream.Topics["orderbook"] == 1 })
	const trades = 2000
	for n := range trades {
		if err := s.venue.Trade(addressOf2000, ids[0], []demo.Side{demo.Buy, demo.Sell}[n%2], demo.Size(100+n)); err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			s.move(t, ids[0])
		}
		for _, r := range readers { // each reader gets every trade once, and in order
			v := r.reason(t, "CHANGE")
			if got := pluck(v, "trades", "size"); len(got) != 1 || got[0] != plain(demo.Size(100+n)) || at(v, "gap") != false {
				t.Fatalf("trade %d: got %s", n, asJSON(v))
			}
		}
	}
	for _, r := range readers {
		r.quiet(t)
	}
	if c := s.API.Stats().Groups.Conflated; c == 0 {
		t.Error("nothing was conflated for the client that does not read: it is not held up")
	}
	eventually(t, "the client that does not read is cut off", func() bool { return s.venue.Stats().Stream.Topics["orderbook"] == 0 })
}
