package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/tests/tool"
)

const tradesPage = `trades(first: $first, after: $after) {
	edges { cursor node { id } }
	nodes { id tradeId tokenId side price size timestamp market { marketId } token { tokenId } }
	pageInfo { hasNextPage hasPreviousPage endCursor } }`

const (
	marketTrades = `query($id: String!, $first: Int, $after: String) { market(marketId: $id) { ` + tradesPage + ` } }`
	tokenTrades  = `query($id: String!, $first: Int, $after: String) { token(tokenId: $id) { ` + tradesPage + ` } }`
)

// tradedMarket is a market with two outcomes and at least 60 trades. The market belongs to a simulator, which is the demo venue in
// the format of Polymarket or Kalshi.
type tradedMarket struct {
	id     string
	tokens []string // YES and NO
	// all contains the trades of the market, and byToken the trades of each token. Each string has the token, side, price and size
	// of a trade. All lists are sorted.
	all     []string
	byToken [2][]string
}

// findTradedMarket returns a market for which the service lists at least 60 trades. The lists of the returned value come from the
// records of the demo venue, not from the service.
func (s *service) findTradedMarket(t *testing.T) (m tradedMarket) {
	t.Helper()
	engine := s.Demo.Venue
	for _, state := range engine.Markets() {
		if state.Status != "OPEN" || !state.Binary {
			continue
		}
		m = tradedMarket{id: s.simulatedID(state.MarketID), tokens: []string{s.simulatedID(state.TokenIDs[0]), s.simulatedID(state.TokenIDs[1])}}
		for i, id := range state.TokenIDs {
			for _, trade := range engine.Tape(id) {
				own, other := m.tokens[i], m.tokens[1-i]
				rowOf := func(token string, side demo.Side, price demo.Price) string {
					return fmt.Sprint(token, " ", side, " ", market.MustDecimal(price.String()).Reduce(), " ", market.MustDecimal(trade.Size.String()).Reduce())
				}
				row := rowOf(own, trade.Side, trade.Price)
				m.byToken[i] = append(m.byToken[i], row)
				if s.Demo.Kalshi != nil { // at Kalshi, a sale of one outcome is a purchase of the other outcome
					opposite := map[demo.Side]demo.Side{demo.Buy: demo.Sell, demo.Sell: demo.Buy}[trade.Side]
					mirrored := rowOf(other, opposite, 10_000-trade.Price)
					m.byToken[1-i] = append(m.byToken[1-i], mirrored)
					if trade.Side == demo.Sell {
						row = mirrored
					}
				}
				m.all = append(m.all, row)
			}
		}
		data := s.ask(t, marketTrades, vars{"id": m.id, "first": 100}, anonymous)
		if len(list(data, "market.trades.nodes")) >= 60 {
			for _, rows := range [][]string{m.all, m.byToken[0], m.byToken[1]} {
				slices.Sort(rows)
			}
			return m
		}
	}
	t.Fatal("no market has 60 trades")
	return m
}

// tradePages reads all pages of a list of trades. Each trade must appear once, and newer trades must come first.
// tradePages returns the trades as sorted texts.
func (s *service) tradePages(t *testing.T, query, path, id string, first int) (rows []string) {
	t.Helper()
	seen, last := map[string]bool{}, time.Now().AddDate(100, 0, 0)
	v := vars{"id": id, "first": first}
	for range 100 {
		s.clock.Advance(time.Second) // the rate limit allows few calls a second
		data := s.ask(t, query, v, anonymous)
		for _, n := range list(data, path+".nodes") {
			stamp, err := time.Parse(time.RFC3339, text(n, "timestamp"))
			if err != nil || stamp.After(last) || seen[text(n, "id")] || text(n, "tradeId") == "" {
				t.Errorf("the trade %s follows a trade at %v (seen before: %t, error of the timestamp: %v); want an older trade with a tradeId", asJSON(n), last, seen[text(n, "id")], err)
			}
			if seen[text(n, "id")], last = true, stamp; text(n, "token.tokenId") != text(n, "tokenId") || text(n, "market.marketId") == "" {
				t.Errorf("the trade %s has no market, or its token is not the token of its tokenId", asJSON(n))
			}
			rows = append(rows, fmt.Sprint(text(n, "tokenId"), " ", text(n, "side"), " ", market.MustDecimal(text(n, "price")).Reduce(), " ", market.MustDecimal(text(n, "size")).Reduce()))
		}
		if at(data, path+".pageInfo.hasNextPage") != true {
			slices.Sort(rows)
			return rows
		}
		v["after"] = at(data, path+".pageInfo.endCursor")
	}
	t.Fatal("the list has more than 100 pages")
	return nil
}

// onEachDriver runs a test with the simulator of each driver in capabilities.
func onEachDriver(t *testing.T, test func(t *testing.T, s *service)) {
	for _, venue := range capabilities {
		if !venue.Trades {
			t.Fatalf("%s serves no trades", venue.Driver)
		}
		t.Run(venue.Driver, func(t *testing.T) {
			if venue.Driver == "kalshi" {
				test(t, startKalshi(t))
				return
			}
			test(t, start(t, "--demo-driver="+venue.Driver, "--venue-driver="+venue.Driver))
		})
	}
}

// simulatorCalls counts the calls, by method and path, that the simulator received while the function f ran.
func (s *service) simulatorCalls(t *testing.T, f func()) map[string]int64 {
	t.Helper()
	if s.Demo.Polymarket != nil {
		return polymarketService{s, s.Demo.Polymarket}.requestsDuring(f)
	}
	before, _ := kalshiCalls(t, s.App, nil)
	f()
	_, newCalls := kalshiCalls(t, s.App, before)
	made := map[string]int64{}
	for path, n := range newCalls {
		made["GET "+path] = int64(n)
	}
	return made
}

// TestPublicTrades checks that pages of trades have the trades that the demo venue recorded, for a market and for its tokens.
func TestPublicTrades(t *testing.T) {
	onEachDriver(t, func(t *testing.T, s *service) {
		for range 40 {
			s.Demo.Venue.Step() // makes trades with the same timestamp
		}
		m := s.findTradedMarket(t)
		for _, first := range []int{3, 7, 100} {
			if got := s.tradePages(t, marketTrades, "market.trades", m.id, first); !slices.Equal(got, m.all) {
				t.Errorf("pages of %d have %d trades of the market; want %d\n got %q\nwant %q", first, len(got), len(m.all), got, m.all)
			}
			for i, id := range m.tokens {
				if got := s.tradePages(t, tokenTrades, "token.trades", id, first); !slices.Equal(got, m.byToken[i]) {
					t.Errorf("pages of %d have %d trades of the token; want %d\n got %q\nwant %q", first, len(got), len(m.byToken[i]), got, m.byToken[i])
				}
			}
		}
	})
}

// TestPublicTradesAreShared checks that the service reads a market once for the trades of its two tokens. A second client must get
// the cached data.
func TestPublicTradesAreShared(t *testing.T) {
	onEachDriver(t, func(t *testing.T, s *service) {
		m := s.findTradedMarket(t)
		s.expireCaches()
		read := func(credentials string) {
			data := s.ask(t, `query($ids: [String!]!) { tokens(tokenIds: $ids) { trades(first: 5) { nodes { tokenId } } } }`, vars{"ids": m.tokens}, credentials)
			for i, id := range m.tokens {
				if tokenID := text(data, fmt.Sprintf("tokens.%d.trades.nodes.4.tokenId", i)); tokenID != id {
					t.Errorf("got the trades %s, want five of token %s", asJSON(data), id)
				}
			}
		}
		markets, trades := "GET /markets/keyset", "GET /v2/trades"
		if s.Demo.Kalshi != nil {
			markets, trades = "GET /markets", "GET /markets/trades"
		}
		if made := s.simulatorCalls(t, func() { read(anonymous) }); made[markets] != 1 || made[trades] != 2 || len(made) != 2 {
			t.Errorf("got the calls %v, want one for markets and two for trades", made)
		}
		if made := s.simulatorCalls(t, func() { read(keyOf50) }); len(made) > 0 {
			t.Errorf("a second client caused the calls %v, want none", made)
		}
	})
}

func TestArgumentsOfPublicTrades(t *testing.T) {
	onEachDriver(t, func(t *testing.T, s *service) {
		m := s.findTradedMarket(t)
		marketCursor := text(s.ask(t, marketTrades, vars{"id": m.id, "first": 1}, anonymous), "market.trades.pageInfo.endCursor")
		for _, bad := range []vars{{"first": 0}, {"first": 101}, {"after": "x"}, {"after": marketCursor}} {
			bad["id"] = m.tokens[0]
			if _, errors := s.query(t, tokenTrades, bad, anonymous); len(errors) != 1 || errors[0].Extensions.Code != "BAD_USER_INPUT" {
				t.Errorf("the arguments %v got the errors %v, want one BAD_USER_INPUT", bad, errors)
			}
		}
		data := s.ask(t, tokenTrades, vars{"id": "KXNONE-1:yes"}, anonymous)
		if at(data, "token.trades") != nil {
			t.Errorf("the trades of an unknown token are %s, want null", asJSON(data))
		}
	})
}

// TestPublicTradesAreUnsupported checks that trades give the error UNSUPPORTED if the venue's API has no list of trades. For
// Token.trades, the service must make no call.
func TestPublicTradesAreUnsupported(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		query, id, path string
		calls           calls
	}{
		{tokenTrades, s.openTokens(1)[0], "token.trades", calls{}},
		{marketTrades, s.openMarkets(1)[0], "market.trades", calls{"market-details": {1, 1}}},
	} {
		var data any
		var errors []graphError
		wantCalls(t, s.callsDuring(func() { data, errors = s.query(t, test.query, vars{"id": test.id}, anonymous) }), test.calls)
		if at(data, test.path) != nil || len(errors) != 1 || errors[0].Extensions.Code != "UNSUPPORTED" || errors[0].String() != test.path+" UNSUPPORTED" {
			t.Errorf("%s: got %s and the errors %v, want null and one UNSUPPORTED", test.path, asJSON(data), errors)
		}
	}
}

// TestPublicTradesAreStreamed checks that a trade has the same values in a subscription and in a list.
func TestPublicTradesAreStreamed(t *testing.T) {
	tool.CheckTier(t)
	for _, venue := range capabilities {
		t.Run(venue.Driver, func(t *testing.T) {
			s := startLive(t, "--venue-driver="+venue.Driver, "--demo-driver="+venue.Driver, "--demo-control=false", "--demo-markets=60")
			s.waitForStream(t)
			positions := s.Demo.Venue.Positions(addressOf2000)
			i := slices.IndexFunc(positions, func(p demo.Position) bool {
				return s.Demo.Venue.Trade(addressOf2000, p.TokenID, demo.Buy, 100) == nil // an error means that the market is not open
			})
			id := s.simulatedID(positions[i].TokenID)
			sub := s.dial(t, anonymous).subscribe(t, subTrades, vars{"ids": []string{id}})
			sub.reason(t, "INITIAL")
			sub.reason(t, "RESYNC") // has the trades of REST; a trade before it would be no CHANGE
			for range 3 {
				if err := s.Demo.Venue.Trade(addressOf2000, positions[i].TokenID, demo.Buy, 250); err != nil {
					t.Fatal(err)
				}
				want := at(sub.until(t, "a trade", func(v any) bool { return text(v, "reason") == "CHANGE" && len(list(v, "trades")) > 0 }), "trades.0")
				if _, err := s.Venue.Cache.Flush("market_trades", ""); err != nil {
					t.Fatal(err)
				}
				got := at(s.ask(t, `query($id: String!) { token(tokenId: $id) { trades(first: 1) { nodes { tradeId tokenId price size side } } } }`,
					vars{"id": id}, anonymous), "token.trades.nodes.0")
				for _, field := range []string{"tradeId", "tokenId", "side"} {
					wantText(t, got, field, text(want, field))
				}
				for _, field := range []string{"price", "size"} {
					if number(t, at(got, field)).Cmp(number(t, at(want, field))) != 0 {
						t.Errorf("%s differs: REST has %s, the stream has %s", field, asJSON(got), asJSON(want))
					}
				}
			}
		})
	}
}
