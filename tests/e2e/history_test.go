package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

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
