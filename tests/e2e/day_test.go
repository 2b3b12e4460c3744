package e2e

import (
	"math/big"
	"testing"
	"testing/synctest"

	"oddsgraph/internal/demo/faults"
)

const dayQuery = `query ($ids: [String!]!) { tokens(tokenIds: $ids) { tokenId price { price } change24h sparkline(points: 48) short: sparkline(points: 2) } }`

// TestLastDay checks the change and the sparkline of 25 tokens against their price histories.
func TestLastDay(t *testing.T) {
	s := start(t)
	ids := s.openTokens(25)
	variables := vars{"ids": ids}
	var data any
	got := s.callsDuring(func() { data = s.ask(t, dayQuery, variables, anonymous) })
	wantCalls(t, got, calls{"prices": {1, 25}, "price-history": {25, 25}}) // a call to the demo venue returns one history
	again := s.callsDuring(func() { s.ask(t, dayQuery, variables, anonymous) })
	wantCalls(t, again, calls{})

	start := s.clock.Now().AddDate(0, 0, -1).UTC().Format("2006-01-02T15:04:05.000Z")
	for i, id := range ids {
		token := at(data, "tokens").([]any)[i]
		dayAgo, last := "", ""
		for _, p := range list(s.ask(t, `query ($id: String!) { token(tokenId: $id) { history(from: "2026-03-13", to: "2026-03-14") { points { timestamp price } } } }`, vars{"id": id}, anonymous), "token.history.points") {
			if last = text(p, "price"); text(p, "timestamp") <= start {
				dayAgo = last
			}
		}
		line := list(token, "sparkline")
		if len(line) != 48 || line[47] != last || text(token, "short.1") != last {
			t.Errorf("%s: got %d prices %v, want 48 that end with %s", id, len(line), line, last)
		}
		if want := new(big.Rat).Sub(rat(text(token, "price.price")), rat(dayAgo)); rat(text(token, "change24h")).Cmp(want) != 0 {
			t.Errorf("%s: the change is %s, want %s", id, text(token, "change24h"), want.FloatString(4))
		}
	}
}

// TestLastDayIsMissing checks that change24h and sparkline are null without an error for an unknown token. If the venue's history
// fails, or if the number of points is out of range, the fields must have an error.
func TestLastDayIsMissing(t *testing.T) {
	s := start(t)
	wantJSON(t, "an unknown token", s.ask(t, `{ token(tokenId: "1") { change24h sparkline } }`, nil, anonymous), `{"token":{"change24h":null,"sparkline":null}}`)
	for _, points := range []string{"1", "101"} {
		_, errors := s.query(t, `{ token(tokenId: "1") { sparkline(points: `+points+`) } }`, nil, anonymous)
		wantErrors(t, errors, "token.sparkline BAD_USER_INPUT")
	}
	s.setFaults(t, faults.Fault{Path: "/api/exchange/price-history", Kind: faults.Status})
	data, errors := s.query(t, dayQuery, vars{"ids": s.openTokens(1)}, anonymous)
	wantErrors(t, errors, "tokens.0.change24h UPSTREAM_UNAVAILABLE", "tokens.0.short UPSTREAM_UNAVAILABLE", "tokens.0.sparkline UPSTREAM_UNAVAILABLE")
	if at(data, "tokens.0.price.price") == nil {
		t.Errorf("the price is also null: %s", asJSON(data))
	}
}

// TestLastDayIsBatched checks that several tokens share a call if the venue can return several price histories in one call.
func TestLastDayIsBatched(t *testing.T) {
	search := func(s *service, n int) vars {
		var ids []string
		for _, m := range list(s.ask(t, `{ searchMarkets(filter: { status: [OPEN] }, first: 30) { nodes { tokens { tokenId } } } }`, nil, anonymous), "searchMarkets.nodes") {
			if id := text(m, "tokens.0.tokenId"); id != "" && len(ids) < n {
				ids = append(ids, id)
			}
		}
		if len(ids) < n {
			t.Fatalf("the search found %d tokens, want %d", len(ids), n)
		}
		return vars{"ids": ids}
	}
	known := func(data any) (n int) {
		for _, token := range list(data, "tokens") {
			if len(list(token, "sparkline")) > 0 && at(token, "change24h") != nil {
				n++
			}
		}
		return n
	}
	t.Run("polymarket", func(t *testing.T) {
		s := startPolymarket(t)
		variables := search(s.service, 25)
		var data any
		made := s.requestsDuring(func() { data = s.ask(t, dayQuery, variables, anonymous) })
		if made["POST /batch-prices-history"] != 2 || known(data) < 20 {
			t.Errorf("got the calls %v and %d tokens with a sparkline, want 2 calls for price histories", made, known(data))
		}
	})
	t.Run("kalshi", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := startOverSimulator(t, "--demo-driver=kalshi", "--venue-driver=kalshi", "--demo-markets=120", "--demo-stream=false")
			variables := search(s, 10) // the service asks for at most 5 markets in a call, because the venue bills each market
			before := s.Demo.Kalshi.Stats().Requests
			data := s.ask(t, dayQuery, variables, anonymous)
			if _, made := kalshiCalls(t, s.App, before); made["/markets/candlesticks"] != 2 || known(data) == 0 {
				t.Errorf("got the calls %v and %d tokens with a sparkline, want 2 calls for price histories", made, known(data))
			}
		})
	})
}
