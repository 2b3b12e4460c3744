package loaders

import (
	"context"
	"fmt"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// instantSource is a Source that answers at once. If hit is true, all keys are cached.
type instantSource struct {
	hit    bool
	price  market.Price
	handle reads.Handle
}

func (r *instantSource) Lookup(_ context.Context, keys []string, out []reads.Result[*market.Price], missing []int) []int {
	for i := range keys {
		if !r.hit {
			missing = append(missing, i)
			continue
		}
		out[i].Value.Value, out[i].Value.Handle = &r.price, &r.handle
	}
	return missing
}

func (*instantSource) Refresh(context.Context, []string) {}

func (*instantSource) Calls(keys []string) int { return (len(keys) + 99) / 100 }

func (*instantSource) Batches(keys []string) [][]string { return [][]string{keys} }

func (r *instantSource) Fetch(_ context.Context, keys []string) []reads.Result[*market.Price] {
	out := make([]reads.Result[*market.Price], len(keys))
	for i := range out {
		out[i].Value.Value, out[i].Value.Handle = &r.price, &r.handle
	}
	return out
}

func tokens(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("token-%d", i)
	}
	return keys
}

// BenchmarkGetMany measures a response that reads a list of 100 prices, including the creation of its Set.
func BenchmarkGetMany(b *testing.B) {
	keys := tokens(100)
	out := make([]reads.Result[*market.Price], len(keys))
	for name, hit := range map[string]bool{"hits": true, "misses": false} {
		b.Run(name, func(b *testing.B) {
			sources := Sources{Prices: &instantSource{hit: hit}}
			b.ReportAllocs()
			for b.Loop() {
				ctx, set, _ := With(b.Context(), sources)
				set.Complete(ctx, func() { set.Prices.GetMany(keys, out) })
				set.Done()
			}
		})
	}
}

func TestHitsDoNotAllocatePerKey(t *testing.T) {
	allocations := func(n int) float64 {
		keys := tokens(n)
		sources := Sources{Prices: &instantSource{hit: true}}
		return testing.AllocsPerRun(50, func() {
			_, set, _ := With(t.Context(), sources)
			for _, key := range keys {
				_, _ = set.Prices.Get(key)
			}
			set.Done()
		})
	}
	few, many := allocations(5), allocations(100)
	t.Logf("%v allocations for 5 keys, %v for 100", few, many)
	if many > few+15 {
		t.Errorf("got %v allocations for 100 keys, want at most 15 more than for 5 keys", many)
	}
	if few > 7 { // a few, because sync.Pool drops some values under the race detector
		t.Errorf("got %v allocations for 5 keys, want at most 7", few)
	}
}

// TestReadingAgainDoesNotAllocate checks that repeated reads of the same keys do not allocate, before and after the values arrive.
func TestReadingAgainDoesNotAllocate(t *testing.T) {
	keys := tokens(50)
	out := make([]reads.Result[*market.Price], len(keys))
	set, _ := newSet(t, Sources{Prices: &instantSource{}})
	read := func() {
		set.Prices.GetMany(keys, out)
		for _, key := range keys {
			_, _ = set.Prices.Get(key)
		}
	}
	for _, there := range []bool{false, true} {
		read()
		if n := testing.AllocsPerRun(20, read); n > 0 || set.Pending() == there || (out[0].Err == nil) != there {
			t.Errorf("with the values %v: got %v allocations, pending %v, error %v; want 0, %v and an error only without the values", there, n, set.Pending(), out[0].Err, !there)
		}
		fetch(t, set)
	}
}
