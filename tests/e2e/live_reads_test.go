package e2e

import (
	"strings"
	"testing"

	"oddsgraph/internal/demo/faults"
)

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
