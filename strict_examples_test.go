package main

import (
	"maps"
	"slices"
	"testing"
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
			s := start(t, "--demo-strict")
			var data any
			got := s.counted(func() { data = s.ask(t, read(t, "examples/"+name+".graphql"), variables, keyOf50) })
			for _, path := range missing(data, "") {
				if !slices.Contains(want.absent, path) {
					t.Errorf("there is nothing at %s", path)
				}
			}
			calls := map[string]int64{}
			for endpoint, n := range got {
				calls[endpoint] = n[0]
			}
			// On a busy machine positions and orders arrive apart, and what hangs on them leaves in one call more.
			if !maps.EqualFunc(calls, want.calls, func(got, want int64) bool { return got == want || got == want+1 }) {
				t.Errorf("calls %v, want %v", got, want.calls)
			}
		})
	}
}
