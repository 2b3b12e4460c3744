package main

import (
	"slices"
	"testing"
)

// TestExamplesOnStrictVenue runs examples against a venue that does only what its description shows. What is listed here is
// missing there, by paths without indexes: an order book of the description has no time.
func TestExamplesOnStrictVenue(t *testing.T) {
	for name, absent := range map[string][]string{
		"event-page":          {},
		"price-board":         {},
		"search":              {},
		"history-and-candles": {},
		"trade-ticket":        {"token.fillEstimate.freshness.asOf"},
	} {
		t.Run(name, func(t *testing.T) {
			var variables vars
			decode(t, read(t, "examples/"+name+".json"), &variables)
			s := start(t, "--demo-strict")
			var data any
			got := s.counted(func() { data = s.ask(t, read(t, "examples/"+name+".graphql"), variables, keyOf50) })
			for _, path := range missing(data, "") {
				if !slices.Contains(absent, path) {
					t.Errorf("there is nothing at %s", path)
				}
			}
			// The description has lists of tokens for prices, so they are one call.
			if prices, ok := got["prices"]; ok && prices[0] != 1 {
				t.Errorf("calls %v", got)
			}
		})
	}
}
