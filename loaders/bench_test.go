package loaders

import (
	"context"
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// ready is a Source that answers at once, from memory or from upstream.
type ready struct {
	hit   bool
	price market.Price
}

func (r *ready) Lookup(_ context.Context, keys []string, out []market.Result[market.Read[*market.Price]], missing []int) []int {
	for i := range keys {
		if out[i].Value.Value = &r.price; !r.hit {
			missing = append(missing, i)
		}
	}
	return missing
}

// Refresh implements Source.
func (*ready) Refresh(context.Context, []string) {}

func (r *ready) Fetch(_ context.Context, keys []string) []market.Result[market.Read[*market.Price]] {
	out := make([]market.Result[market.Read[*market.Price]], len(keys))
	for i := range out {
		out[i].Value.Value = &r.price
	}
	return out
}

// BenchmarkGetMany is what a response pays for a list of 100 prices, its set included.
func BenchmarkGetMany(b *testing.B) {
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprintf("token-%d", i)
	}
	out := make([]market.Result[market.Read[*market.Price]], len(keys))
	for name, hit := range map[string]bool{"hits": true, "misses": false} {
		b.Run(name, func(b *testing.B) {
			sources := Sources{Prices: &ready{hit: hit}}
			b.ReportAllocs()
			for b.Loop() {
				_, set, _ := With(b.Context(), sources)
				set.Prices.GetMany(keys, out)
				if err := set.Failed(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The path of a response that finds everything in the cache allocates for the set, not for each key.
func TestHitsDoNotAllocatePerKey(t *testing.T) {
	allocations := func(n int) float64 {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		out := make([]market.Result[market.Read[*market.Price]], n)
		sources := Sources{Prices: &ready{hit: true}}
		return testing.AllocsPerRun(50, func() {
			_, set, _ := With(t.Context(), sources)
			set.Prices.GetMany(keys, out)
		})
	}
	if few, many := allocations(10), allocations(200); many > few+20 {
		t.Errorf("%v allocations for 10 hits, %v for 200", few, many)
	}
}

// TestReadingAgainDoesNotAllocate holds it for an attempt, too: for what it lacks, and for what has come.
func TestReadingAgainDoesNotAllocate(t *testing.T) {
	keys := make([]string, 50)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	out := make([]market.Result[market.Read[*market.Price]], len(keys))
	_, set, _ := With(t.Context(), Sources{Prices: &ready{}})
	set.recorder = nil // which keeps what is read
	set.Gather()
	read := func() {
		set.Prices.GetMany(keys, out)
		for _, key := range keys {
			_, _ = set.Prices.Get(key)
		}
	}
	for _, there := range []bool{false, true} {
		read()
		if n := testing.AllocsPerRun(20, read); n > 0 || set.Lacks() == there || (out[0].Err == nil) != there {
			t.Errorf("%v allocations, it lacks something: %v, %v", n, set.Lacks(), out[0].Err)
		}
		set.Advance(time.Minute)
	}
}
