package cache

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// TestSharedRejected checks that a record that this process rejects is like a missing record: the process claims the key and reads
// the venue at once, and the record is replaced.
func TestSharedRejected(t *testing.T) {
	replace := func(from, to string) func(*sharedRecord) {
		return func(r *sharedRecord) {
			if !strings.Contains(string(r.value), from) {
				t.Errorf("the record %s has no %s", r.value, from)
			}
			r.value = []byte(strings.Replace(string(r.value), from, to, 1))
		}
	}
	for name, spoil := range map[string]func(*sharedRecord){
		"out of date":       func(r *sharedRecord) { r.asked, r.came = r.asked.Add(-5*time.Second), r.came.Add(-5*time.Second) },
		"unreadable":        func(r *sharedRecord) { r.value = []byte("{bad") },
		"from the future":   func(r *sharedRecord) { r.came = r.came.Add(time.Hour) },
		"before the call":   func(r *sharedRecord) { r.came = r.asked.Add(-time.Millisecond) },
		"of another key":    replace(`"Name":"`, `"Name":"0`),
		"negative price":    replace(`"Price":"0"`, `"Price":"-0.281"`),
		"no value":          func(r *sharedRecord) { r.value = []byte(`{"Value":null}`) },
		"of another token":  replace(`"TokenID":"t"`, `"TokenID":"u"`),
		"of unknown origin": replace(`"Basis":"VENUE"`, `"Basis":""`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{latency: 100 * time.Millisecond}
				a, b, m := pair(t, v)
				mustRead(t, a.Prices(), "t")
				for key, r := range m.records {
					spoil(&r)
					m.records[key] = r
				}
				began := time.Now()
				if r := mustRead(t, b.Prices(), "t"); time.Since(began) != v.latency || r.Stale || !r.ReceivedAt.Equal(time.Now()) {
					t.Errorf("got %+v after %v, want a value of the venue after %v", r.Meta, time.Since(began), v.latency)
				}
				if got, want := *b.prices.stats().Shared, (SharedStats{Misses: 1, Ours: 1}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if calls, third := len(v.calls()), open(t, v, func(cfg *Config) { cfg.Shared = m }); calls != 2 {
					t.Errorf("got %d calls, want 2", calls)
				} else if mustRead(t, third.Prices(), "t"); len(v.calls()) != 2 {
					t.Error("the rejected record was not replaced")
				}
			})
		})
	}
}

// TestSound checks the values that a driver never returns.
func TestSound(t *testing.T) {
	negative, level := market.MustDecimal("-0.1"), func(price, size string) market.Level {
		return market.Level{Price: market.MustDecimal(price), Size: market.MustDecimal(size)}
	}
	book := func(bids ...market.Level) *market.Book {
		return &market.Book{TokenID: "t", Depth: 20, Bids: market.NewSide(bids)}
	}
	history := queries.PriceHistory{TokenID: "t", From: 1, To: 2}
	m := func(status market.Status, outcomes ...market.Outcome) *market.Market {
		return &market.Market{MarketID: "m", Status: status, Outcomes: outcomes}
	}
	at, unread := time.Unix(9, 0), market.LeftOut{errors.New("a row")}
	for name, test := range map[string]struct{ got, want bool }{
		"price":                                 {priceKind{}.sound("t", &market.Price{TokenID: "t", Price: one, Basis: market.BasisLast}), true},
		"price above 1":                         {priceKind{}.sound("t", &market.Price{TokenID: "t", Price: market.MustDecimal("1e64"), Basis: market.BasisLast}), false},
		"spread":                                {spreadKind{}.sound("t", &market.Spread{TokenID: "t", BestBid: &one, Spread: &negative}), true},
		"negative bid":                          {spreadKind{}.sound("t", &market.Spread{TokenID: "t", BestBid: &negative}), false},
		"book":                                  {bookKind{}.sound(queries.Book{TokenID: "t"}, book(level("0.5", "1"), level("0.4", "2"))), true},
		"negative size":                         {bookKind{}.sound(queries.Book{TokenID: "t"}, book(level("0.5", "-7372.66"))), false},
		"unsorted book":                         {bookKind{}.sound(queries.Book{TokenID: "t"}, book(level("0.4", "1"), level("0.5", "2"))), false},
		"repeated level":                        {bookKind{}.sound(queries.Book{TokenID: "t"}, book(level("0.4", "1"), level("0.4", "2"))), false},
		"history":                               {historyKind{}.sound(history, &market.PriceHistory{TokenID: "t", From: 1, To: 2, Points: []market.PricePoint{{Timestamp: at}}}), true},
		"history of other day":                  {historyKind{}.sound(history, &market.PriceHistory{TokenID: "t", From: 1, To: 3}), false},
		"unsorted history":                      {historyKind{}.sound(history, &market.PriceHistory{TokenID: "t", From: 1, To: 2, Points: []market.PricePoint{{Timestamp: at.Add(1)}, {Timestamp: at}}}), false},
		"market":                                {marketKind{}.sound(market.MarketRef{Value: "m"}, m(market.StatusOpen, market.Outcome{Label: "Yes", TokenID: "t"})), true},
		"market without state":                  {marketKind{}.sound(market.MarketRef{Value: "m"}, m("")), false},
		"another market":                        {marketKind{}.sound(market.MarketRef{Value: "n"}, m(market.StatusOpen)), false},
		"outcome without name":                  {marketKind{}.sound(market.MarketRef{Value: "m"}, m(market.StatusOpen, market.Outcome{TokenID: "t"})), false},
		"page with null":                        {searchKind{}.sound(queries.SearchKey{}, &queries.SearchPage{Markets: []*market.Market{nil}}), false},
		"event with null":                       {eventKind{}.sound(market.EventRef{EventID: "e"}, &market.Event{EventID: "e", Markets: []*market.Market{nil}}), false},
		"events with null":                      {eventSearchKind{}.sound(queries.SearchKey{}, &queries.EventPage{Events: []queries.FoundEvent{{}}}), false},
		"negative count":                        {categoriesKind{}.sound("", &queries.Categories{List: []queries.Category{{Name: "c", OpenMarkets: -1}}}), false},
		"trade":                                 {marketTradesKind{}.sound(queries.MarketTrades{}, &queries.TradePage{Trades: []market.Trade{{Side: market.SideBuy, Timestamp: at}}}), true},
		"trade without side":                    {marketTradesKind{}.sound(queries.MarketTrades{}, &queries.TradePage{Trades: []market.Trade{{Timestamp: at}}}), false},
		"page of events with an unreadable row": {eventSearchKind{}.sound(queries.SearchKey{}, &queries.EventPage{LeftOut: unread}), false},
		"page of trades with an unreadable row": {marketTradesKind{}.sound(queries.MarketTrades{}, &queries.TradePage{LeftOut: unread}), false},
		"event with an unreadable row":          {eventKind{}.sound(market.EventRef{EventID: "e"}, &market.Event{EventID: "e", LeftOut: unread}), false},
		"history with an unreadable row":        {historyKind{}.sound(history, &market.PriceHistory{TokenID: "t", From: 1, To: 2, LeftOut: unread}), false},
		"another kind":                          {balanceKind{}.sound(userKey{}, &market.Balance{}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
}
