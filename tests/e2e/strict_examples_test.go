package e2e

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
)

// TestExamplesOnStrictVenue runs the queries in examples/ against a strict venue, and checks the calls and the missing values. The
// venue accepts lists of tokens for prices and spreads, but only one market per call.
func TestExamplesOnStrictVenue(t *testing.T) {
	for name, want := range map[string]struct {
		// calls counts the calls to each endpoint. A refused call for a list of markets or tokens counts too.
		calls map[string]int64
		// absent holds the paths, without list indexes, of values that may be null. The books of this venue have no time and no
		// sequence number. An open market has no resolution.
		absent []string
	}{
		"event-page":          {calls: map[string]int64{"market-search": 1, "prices": 1}},
		"price-board":         {calls: map[string]int64{"market-details": 8, "prices": 1, "spreads": 1}},
		"search":              {calls: map[string]int64{"market-search": 1, "prices": 1}},
		"history-and-candles": {calls: map[string]int64{"market-details": 1, "price-history": 1}},
		"trade-ticket": {
			calls:  map[string]int64{"market-details": 1, "orderbook": 1, "spreads": 1},
			absent: []string{"token.fillEstimate.freshness.asOf"},
		},
		"market-page": {
			calls:  map[string]int64{"market-details": 1, "orderbook": 3, "prices": 1, "spreads": 1},
			absent: []string{"market.resolution", "market.tokens.orderbook.sequence"},
		},
		// The venue may cut a list after 50 rows. The service therefore reads positions and orders once more, with an offset.
		"portfolio": {calls: map[string]int64{"balance": 1, "market-details": 49, "orders": 2, "positions": 2, "prices": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var variables vars
			decode(t, read(t, "examples/"+name+".json"), &variables)
			var data any
			calls := map[string]int64{}
			synctest.Test(t, func(t *testing.T) {
				s := startInBubble(t, startTime, "--demo-strict")
				got := s.callsDuring(func() { data = s.ask(t, read(t, "examples/"+name+".graphql"), variables, keyOf50) })
				for endpoint, n := range got {
					calls[endpoint] = n[0]
				}
			})
			for _, path := range missing(data, "") {
				if !slices.Contains(want.absent, path) {
					t.Errorf("the response has no value at %s", path)
				}
			}
			if !maps.Equal(calls, want.calls) {
				t.Errorf("got the calls %v, want %v", calls, want.calls)
			}
		})
	}
}
