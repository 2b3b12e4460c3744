package cache

import (
	"strconv"
	"testing"

	"oddsgraph/internal/market"
)

// BenchmarkLookup looks up a list of 40 cached prices.
func BenchmarkLookup(b *testing.B) {
	c := New(&venue{}, DefaultConfig())
	defer c.Close()
	tokens := make([]string, 40)
	for i := range tokens {
		tokens[i] = strconv.Itoa(i)
	}
	prices := c.Prices()
	prices.Fetch(b.Context(), tokens)
	out, missing := make([]market.Result[market.Read[*market.Price]], len(tokens)), make([]int, 0, len(tokens))
	b.ReportAllocs()
	for b.Loop() {
		// An expired price is not missing as long as the cache may serve it while it is refreshed.
		if missing = prices.Lookup(b.Context(), tokens, out, missing[:0]); len(missing) > 0 {
			b.Fatalf("%d prices are missing", len(missing))
		}
	}
}
