package e2e

import (
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/candles"
)

func TestHistoryAndCandles(t *testing.T) {
	s := start(t)
	id := s.openTokens(1)[0]
	for _, test := range []struct{ name, from, to string }{
		{"without from and to", "", ""},
		{"one day", "2026-03-13", "2026-03-13"},
		{"a month", "2026-02-12", "2026-03-14"},
		{"from without to", "2026-03-01", ""},
		{"a year", "2025-03-14", "2026-03-14"},
		{"before the first price", "2020-01-01", "2020-01-31"},
	} {
		t.Run(test.name, func(t *testing.T) {
			last := "2026-03-14"
			if test.to != "" {
				last = test.to
			}
			first := "2026-03-08"
			if test.from != "" {
				first = test.from
			}
			want := list(s.raw(t, "/api/exchange/price-history", "startDate="+first+"&endDate="+last+"&tokenId="+id, anonymous), "history")
			slices.Reverse(want)
			v := vars{"id": id}
			if test.from != "" {
				v["from"] = test.from
			}
			if test.to != "" {
				v["to"] = test.to
			}
			s.expireCaches()
			s.clock.Advance(-3 * time.Hour) // takes back the three hours of expireCaches, so that all test cases have the same day
			var data any
			got := s.callsDuring(func() {
				data = s.ask(t, `query ($id: String!, $from: Date, $to: Date) { token(tokenId: $id) {
				  history(from: $from, to: $to) { from to points { timestamp price volume } freshness { source } }
				  newest: history(from: $from, to: $to, order: DESC) { points { timestamp } }
				  five: candles(interval: FIVE_MINUTES, from: $from, to: $to) { start open high low close volume }
				  hours: candles(interval: HOUR, from: $from, to: $to) { start open high low close volume }
				  days: candles(from: $from, to: $to) { start open high low close volume }
				  weeks: candles(interval: WEEK, from: $from, to: $to) { start open high low close volume }
				} }`, v, anonymous)
			})
			if n := got["price-history"][0]; n > 1 || len(got) > 1 {
				t.Errorf("got the calls %v, want at most one call of price-history", got)
			}
			h := at(data, "token.history")
			if text(h, "from") != first || text(h, "to") != last {
				t.Errorf("the history is from %s to %s, want from %s to %s", text(h, "from"), text(h, "to"), first, last)
			}
			points := list(h, "points")
			if len(points) != len(want) || (len(want) == 0) != (test.name == "before the first price") {
				t.Fatalf("the history has %d points, want %d", len(points), len(want))
			}
			var known []market.PricePoint
			for i, p := range want {
				if text(points[i], "timestamp") != text(p, "timestamp") {
					t.Errorf("the time of point %d is %s, want %s", i, text(points[i], "timestamp"), text(p, "timestamp"))
				}
				wantNumber(t, "price", at(points[i], "price"), number(t, at(p, "price")))
				wantNumber(t, "volume", at(points[i], "volume"), number(t, at(p, "volume")))
				when, err := time.Parse(time.RFC3339, text(p, "timestamp"))
				if err != nil {
					t.Fatal(err)
				}
				volume := market.MustDecimal(fmt.Sprint(at(p, "volume")))
				known = append(known, market.PricePoint{Timestamp: when, Price: market.MustDecimal(fmt.Sprint(at(p, "price"))), Volume: &volume})
			}
			newest := pluck(data, "token.newest.points", "timestamp")
			slices.Reverse(newest)
			if !slices.Equal(newest, pluck(h, "points", "timestamp")) {
				t.Error("the points with order: DESC are not the points of the default order in reverse")
			}
			for field, interval := range map[string]candles.Interval{"five": candles.FiveMinutes, "hours": candles.Hour, "days": candles.Day, "weeks": candles.Week} {
				wantCandles := []any{}
				for _, c := range candles.Of(known, interval) {
					wantCandles = append(wantCandles, object{"start": c.Start.Format("2006-01-02T15:04:05.000Z"), "open": c.Open.String(), "high": c.High.String(), "low": c.Low.String(),
						"close": c.Close.String(), "volume": c.Volume.String()})
				}
				wantJSON(t, field, at(data, "token."+field), asJSON(wantCandles))
			}
		})
	}
}

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
			variables := search(s, 10) // the service asks for at most 2 markets in a call, because the venue bills each market
			before := s.Demo.Kalshi.Stats().Requests
			data := s.ask(t, dayQuery, variables, anonymous)
			if _, made := kalshiCalls(t, s.App, before); made["/markets/candlesticks"] != 5 || known(data) == 0 {
				t.Errorf("got the calls %v and %d tokens with a sparkline, want 5 calls for price histories", made, known(data))
			}
		})
	})
}

// TestSettlement checks positions in markets that are resolved in several ways. All fields of a position must agree.
func TestSettlement(t *testing.T) {
	markets := map[string]string{
		"late":     `{"marketId":"late","closed":true,"active":true,"resolution":"YES","tokens":[{"token_id":"T1","outcome":"YES","winner":false},{"token_id":"T2","outcome":"NO","winner":false}]}`,
		"void":     `{"marketId":"void","status":"RESOLVED","outcomes":[{"tokenId":"T3","outcome":"YES","winner":false},{"tokenId":"T4","outcome":"NO","winner":false}]}`,
		"refunded": `{"marketId":"refunded","status":"RESOLVED","outcomes":[{"tokenId":"T5","outcome":"YES","winner":false},{"tokenId":"T6","outcome":"NO","winner":false}],"resolution":{"outcome":"REFUND"}}`,
		"flagged":  `{"marketId":"flagged","status":"RESOLVED","outcomes":[{"tokenId":"T7","outcome":"YES","winner":true},{"tokenId":"T8","outcome":"NO"}],"resolution":"NO"}`,
		"early":    `{"marketId":"early","status":"CLOSED","outcomes":[{"tokenId":"T9","outcome":"YES","winner":true},{"tokenId":"T0","outcome":"NO","winner":false}]}`,
	}
	rows := map[string]object{}
	for id, text := range markets {
		var m object
		decode(t, text, &m)
		rows[id] = m
	}
	prices := map[string]object{}
	for _, token := range []string{"T1", "T2", "T3", "T5", "T7", "T8", "T9"} {
		prices[token] = object{"tokenId": token, "price": 0.5}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){
		"positions": func(url.Values) (int, any) {
			return http.StatusOK, `{"positions":[
				{"marketId":"late","tokenId":"T1","outcome":"YES","size":10,"avgPrice":0.4,"currentPrice":1},
				{"marketId":"late","tokenId":"T2","outcome":"NO","size":10,"avgPrice":0.4,"currentPrice":0},
				{"marketId":"void","tokenId":"T3","outcome":"YES","size":10,"avgPrice":0.4,"currentPrice":0.5},
				{"marketId":"refunded","tokenId":"T5","outcome":"YES","size":10,"avgPrice":0.4},
				{"marketId":"flagged","tokenId":"T7","outcome":"YES","size":10,"avgPrice":0.4},
				{"marketId":"flagged","tokenId":"T8","outcome":"NO","size":10,"avgPrice":0.4},
				{"marketId":"early","tokenId":"T9","outcome":"YES","size":10,"avgPrice":0.4}]}`
		},
		"balance": func(url.Values) (int, any) {
			return http.StatusOK, `{"portfolioValue":35,"cashBalance":0,"totalValue":35}`
		},
		"orders":         func(url.Values) (int, any) { return http.StatusOK, `{"orders":[]}` },
		"market-details": pick("markets", "ids", "id", rows),
		"prices":         pick("prices", "tokenIds", "tokenId", prices),
	})
	s := start(t, "--venue-url="+v.URL)
	data := s.ask(t, `{ user(address: "`+addressOfAny+`") {
	  portfolio { positionsValue unrealizedPnl unpricedPositions }
	  positions { nodes { redeemable valuation { price basis } token { winner } market { status resolution { winningOutcome winningToken { tokenId } } } } }
	} }`, nil, keyOfAny)
	resolution := func(outcome, token string) string {
		if token != "null" {
			token = `{"tokenId":"` + token + `"}`
		}
		return `{"status":"RESOLVED","resolution":{"winningOutcome":` + outcome + `,"winningToken":` + token + `}}`
	}
	for i, want := range []string{
		`{"redeemable":true,"valuation":{"price":"1","basis":"SETTLEMENT"},"token":{"winner":true},"market":` + resolution(`"YES"`, "T1") + `}`,
		`{"redeemable":false,"valuation":{"price":"0","basis":"SETTLEMENT"},"token":{"winner":false},"market":` + resolution(`"YES"`, "T1") + `}`,
		`{"redeemable":null,"valuation":{"price":"0.5","basis":"VENUE"},"token":{"winner":null},"market":` + resolution("null", "null") + `}`,
		`{"redeemable":null,"valuation":{"price":"0.5","basis":"VENUE"},"token":{"winner":null},"market":` + resolution(`"REFUND"`, "null") + `}`,
		`{"redeemable":true,"valuation":{"price":"1","basis":"SETTLEMENT"},"token":{"winner":true},"market":` + resolution(`"YES"`, "T7") + `}`,
		`{"redeemable":false,"valuation":{"price":"0","basis":"SETTLEMENT"},"token":{"winner":false},"market":` + resolution(`"YES"`, "T7") + `}`,
		`{"redeemable":false,"valuation":{"price":"0.5","basis":"VENUE"},"token":{"winner":null},"market":{"status":"CLOSED","resolution":null}}`,
	} {
		wantJSON(t, "position "+string(rune('1'+i)), list(data, "user.positions.nodes")[i], want)
	}
	wantJSON(t, "portfolio", at(data, "user.portfolio"), `{"positionsValue":"35","unrealizedPnl":"7","unpricedPositions":0}`)
	for redeemable, want := range map[string]string{"true": "2", "false": "3"} {
		data := s.ask(t, `{ user(address: "`+addressOfAny+`") { positions(redeemable: `+redeemable+`) { totalCount } } }`, nil, keyOfAny)
		wantJSON(t, "the number of positions with redeemable: "+redeemable, at(data, "user.positions.totalCount"), want)
	}
}
