package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

const queryStatus = `{ serviceStatus { stream { state connections reconnects watchedTokens } } }`

// firstEvents starts seven subscriptions that work without the stream, and takes the first event of each.
func (s *service) firstEvents(t testing.TB, k *socket, token, marketID, address string) map[string]*events {
	t.Helper()
	all := map[string]*events{
		"prices":    k.subscribe(t, subPrices, vars{"ids": []string{token}}),
		"book":      k.subscribe(t, subBook, vars{"id": token, "deltas": true}),
		"markets":   k.subscribe(t, subMarkets, vars{"ids": []string{marketID}}),
		"portfolio": k.subscribe(t, subPortfolio, vars{"a": address}),
		"orders":    k.subscribe(t, subOrders, vars{"a": address}),
		"trades":    k.subscribe(t, subUserTrades, vars{"a": address}),
		"balance":   k.subscribe(t, subBalance, vars{"a": address}),
	}
	for _, sub := range all {
		sub.reason(t, "INITIAL")
	}
	return all
}

func TestTheStreamIsSwitchedOff(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // the test mostly waits
	s := startLive(t, "--demo-stream=false")
	wantText(t, s.ask(t, queryStatus, nil, anonymous), "serviceStatus.stream.state", "DISCONNECTED")
	id, marketID := s.openTokens(1)[0], s.openMarkets(1)[0]
	k := s.dial(t, keyOf3)
	wantText(t, k.subscribe(t, subStatus, nil).value(t), "state", "DISCONNECTED")
	subs := s.firstEvents(t, k, id, marketID, addressOf3)
	k.subscribe(t, subTrades, vars{"ids": []string{id}}).wantEnd(t, "UNSUPPORTED")
	price := s.move(t, id)
	wantText(t, subs["prices"].change(t), "price.price", plain(price))
	wantBook(t, subs["book"].change(t), "book.", s.bookOf(t, id, 20))
	if err := s.venue.SetStatus(marketID, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	wantText(t, subs["markets"].change(t), "market.status", "CLOSED")
}

func TestTheStreamDropsUnderSubscribers(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	id, marketID := s.openTokens(1)[0], s.openMarkets(2)[1]
	k := s.dial(t, keyOf3)
	status := k.subscribe(t, subStatus, nil)
	status.until(t, "the live stream", func(v any) bool { return text(v, "state") == "LIVE" })
	subs := s.firstEvents(t, k, id, marketID, addressOf3)
	tape := k.subscribe(t, subTrades, vars{"ids": []string{id}})
	tape.reason(t, "INITIAL")
	eventually(t, "the prices of the positions are streamed", func() bool {
		data := s.ask(t, `query($a: Address!) { user(address: $a) { positions(first: 10) { nodes { token { price { freshness { source } } } } } } }`, vars{"a": addressOf3}, keyOf3)
		return slices.Equal(pluck(data, "user.positions.nodes", "token.price.freshness.source"), []string{"STREAM", "STREAM", "STREAM"})
	})

	s.setFaults(t, faults.Fault{On: faults.OnOpens, Kind: faults.Status, Status: http.StatusServiceUnavailable})
	s.venue.Restart(demo.CloseSlow)
	stalePaths := map[string]string{ // the path of the field stale in the events of each subscription
		"prices": "price.freshness.stale", "book": "book.freshness.stale", "markets": "market.freshness.stale",
		"portfolio": "summary.freshness.stale", "balance": "balance.freshness.stale", "orders": "", "trades": "",
	}
	for name, sub := range subs {
		path, seen := stalePaths[name], map[string]bool{}
		sub.until(t, name+": a FRESHNESS event with stale values", func(v any) bool {
			if name == "portfolio" { // each price becomes stale at its own time
				noteStale(v, seen)
				return at(v, path) == true && len(seen) == 3
			}
			return text(v, "reason") == "FRESHNESS" && (path == "" || at(v, path) == true)
		})
	}
	tape.until(t, "FRESHNESS of the trades", func(v any) bool { return text(v, "reason") == "FRESHNESS" })
	status.until(t, "the loss of the stream", func(v any) bool { return text(v, "state") == "DISCONNECTED" })
	eventually(t, "queries fall back to REST", func() bool {
		return text(s.ask(t, queryLive, vars{"id": id}, anonymous), "token.price.freshness.source") == "REST"
	})
	s.move(t, id)
	if err := s.venue.Trade(addressOf2000, id, demo.Buy, 700); err != nil {
		t.Fatal(err)
	}

	s.setFaults(t)
	for name, sub := range subs {
		v := sub.until(t, name+": RESYNC", func(v any) bool { return text(v, "reason") == "RESYNC" })
		switch path := stalePaths[name]; {
		case path == "" || at(v, path) == false:
		case name == "portfolio": // the account may be fresh before the prices of its positions are fresh
			sub.until(t, "a portfolio of fresh prices", func(v any) bool { return at(v, path) == false })
		default:
			t.Errorf("%s: stale after the RESYNC: %s", name, asJSON(v))
		}
	}
	v := tape.reason(t, "RESYNC")
	wantText(t, v, fmt.Sprintf("trades.%d.size", len(list(v, "trades"))-1), "7")
	status.until(t, "the return of the stream", func(v any) bool { return text(v, "state") == "LIVE" })
}

// noteStale records the ids of those positions in an event that have a stale valuation.
func noteStale(v any, stale map[string]bool) {
	for _, p := range list(v, "changed") {
		if at(p, "valuation.freshness.stale") == true {
			stale[text(p, "id")] = true
		}
	}
}

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

// TestEachReadOfASubscriptionFails checks the first event of a subscription while endpoints fail or hang. If the service can do
// without these endpoints, the event must be INITIAL. Otherwise the event must be an error, and an INITIAL event must follow when
// the endpoints work again.
func TestEachReadOfASubscriptionFails(t *testing.T) {
	const (
		initial   = "INITIAL"
		down      = "UPSTREAM_UNAVAILABLE"
		positions = "/api/user/positions"
		details   = "/api/exchange/market-details"
		prices    = "/api/exchange/prices"
		spreads   = "/api/exchange/spreads"
		books     = "/api/exchange/orderbook"
	)
	midpoint := strings.Replace(subPortfolio, "address: $a", "address: $a, basis: MIDPOINT", 1)
	for name, test := range map[string]struct {
		query string
		fail  []string
		want  string // the reason or the error code of the first event; if the endpoints hang, the code is UPSTREAM_TIMEOUT
	}{
		"prices":                       {subPrices, []string{prices}, down},
		"price lists":                  {subPriceLists, []string{prices}, down},
		"book":                         {subBook, []string{books}, down},
		"market":                       {subMarkets, []string{details}, down},
		"orders":                       {subOrders, []string{"/api/user/orders"}, down},
		"trades":                       {subUserTrades, []string{"/api/user/trades"}, down},
		"balance":                      {subBalance, []string{"/api/user/balance"}, down},
		"portfolio: positions":         {subPortfolio, []string{positions}, down},
		"portfolio: markets":           {subPortfolio, []string{details}, down},
		"portfolio: prices":            {subPortfolio, []string{prices}, down},
		"portfolio: spreads":           {subPortfolio, []string{spreads}, initial}, // spreads are not read if there are prices
		"midpoints: markets":           {midpoint, []string{details}, initial},     // markets are not used for the valuation
		"midpoints: spreads":           {midpoint, []string{spreads}, initial},     // spreads are computed from books
		"midpoints: books":             {midpoint, []string{books}, initial},
		"midpoints: spreads and books": {midpoint, []string{spreads, books}, down},
	} {
		for how, kind := range map[string]faults.Kind{"fails": faults.Status, "hangs": faults.Delay} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				s, _ := startLiveRigged(t, withoutRetries, "--demo-stream=false", "--request-timeout=15s", "--venue-timeout=4s", "--venue-public-per-minute=100000", "--venue-key-per-minute=100000")
				var rules []faults.Fault
				for _, path := range test.fail {
					rules = append(rules, faults.Fault{Path: path, Kind: kind})
				}
				s.setFaults(t, rules...)
				v := vars{"a": addressOf3, "id": s.openTokens(1)[0], "ids": s.openTokens(1)}
				if test.query == subMarkets {
					v["ids"] = s.openMarkets(1)
				}
				sub := s.dial(t, keyOf3).subscribe(t, test.query, v)
				if test.want == initial {
					wantText(t, at(sub.next(t).data, "portfolioChanged"), "reason", "INITIAL") // fields of the event may be null
					return
				}
				want := test.want
				if kind == faults.Delay {
					want = "UPSTREAM_TIMEOUT"
				}
				if ev := sub.next(t); ev.ended || ev.data != nil || len(ev.errors) != 1 || ev.errors[0].Extensions.Code != want {
					t.Fatalf("got %+v, want the error %s", ev, want)
				}
				s.setFaults(t)
				for { // calls that started while the endpoints failed may fail, too
					if ev := sub.next(t); ev.data != nil {
						wantText(t, sub.valueOf(t, ev), "reason", "INITIAL")
						return
					}
				}
			})
		}
	}
}

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
