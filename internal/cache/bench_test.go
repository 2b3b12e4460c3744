package cache

import (
	"strconv"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// BenchmarkLookup looks up a list of 40 cached prices.
func BenchmarkLookup(b *testing.B) {
	c := New(&testVenue{}, DefaultConfig())
	defer c.Close()
	tokens := make([]string, 40)
	for i := range tokens {
		tokens[i] = strconv.Itoa(i)
	}
	prices := c.Prices()
	prices.Fetch(b.Context(), tokens)
	out, missing := make([]reads.Result[*market.Price], len(tokens)), make([]int, 0, len(tokens))
	b.ReportAllocs()
	for b.Loop() {
		// An expired price is not missing as long as the cache may serve it while it is refreshed.
		if missing = prices.Lookup(b.Context(), tokens, out, missing[:0]); len(missing) > 0 {
			b.Fatalf("%d prices are missing", len(missing))
		}
	}
}

// BenchmarkWeigh estimates the size of values.
func BenchmarkWeigh(b *testing.B) {
	benchmarkWeigh(b, "price", &market.Price{TokenID: name(78)})
	benchmarkWeigh(b, "market", sampleMarket())
	benchmarkWeigh(b, "50 positions", samplePositions(50))
	benchmarkWeigh(b, "book of 20 levels", sampleBook(20))
}

func benchmarkWeigh[T any](b *testing.B, name string, value *T) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			weigh(value)
		}
	})
}
