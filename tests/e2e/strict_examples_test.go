package e2e

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestExamplesOnStrictVenue runs examples against a venue that does only what its description shows, and counts its calls. The
// description has lists of tokens for prices and spreads; a market takes a call of its own, and the first list of markets or
// tokens is refused once.
func TestExamplesOnStrictVenue(t *testing.T) {
	for name, want := range map[string]struct {
		// calls are those to each endpoint, refused ones included.
		calls map[string]int64
		// absent are the paths, without indexes, at which nothing is: a book of the description has no time and no
		// number, and an open market has no resolution.
		absent []string
	}{
		"event-page":          {calls: map[string]int64{"market-search": 1, "prices": 1}},
		"price-board":         {calls: map[string]int64{"market-details": 9, "prices": 1, "spreads": 1}},
		"search":              {calls: map[string]int64{"market-search": 1, "prices": 1}},
		"history-and-candles": {calls: map[string]int64{"market-details": 2, "price-history": 1}},
		"trade-ticket": {
			calls:  map[string]int64{"market-details": 2, "orderbook": 1, "spreads": 1},
			absent: []string{"token.fillEstimate.freshness.asOf"},
		},
		"market-page": {
			calls:  map[string]int64{"market-details": 1, "orderbook": 3, "prices": 1, "spreads": 1},
			absent: []string{"market.resolution", "market.tokens.orderbook.sequence"},
		},
		// Lists of 50 rows may have been cut, so positions and orders are probed once with an offset.
		"portfolio": {calls: map[string]int64{"balance": 1, "market-details": 50, "orders": 2, "positions": 2, "prices": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var variables vars
			decode(t, read(t, "examples/"+name+".json"), &variables)
			var data any
			calls := map[string]int64{}
			synctest.Test(t, func(t *testing.T) {
				s := startInBubble(t, time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), "--demo-strict")
				got := s.counted(func() { data = s.ask(t, read(t, "examples/"+name+".graphql"), variables, keyOf50) })
				for endpoint, n := range got {
					calls[endpoint] = n[0]
				}
			})
			for _, path := range missing(data, "") {
				if !slices.Contains(want.absent, path) {
					t.Errorf("there is nothing at %s", path)
				}
			}
			if !maps.Equal(calls, want.calls) {
				t.Errorf("calls %v, want %v", calls, want.calls)
			}
		})
	}
}
