package queries

import (
	"context"

	"oddsgraph/internal/market"
)

// Source reads values of one kind by key, from a cache or from the venue.
type Source[K comparable, T any] interface {
	// Lookup writes the results of cached keys to out. It appends the indexes of the other keys to missing and returns the extended
	// slice. Lookup never calls the venue.
	Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int
	// Refresh fetches the stale entries of keys in the background.
	Refresh(ctx context.Context, keys []K)
	// Calls returns the number of calls to the venue that Fetch would make if none of the keys was cached or being fetched.
	Calls(keys []K) int
	// Batches splits keys into groups whose values arrive together: all keys that one endpoint reads as a list, or single keys. It may
	// change the order of keys.
	Batches(keys []K) [][]K
	// Fetch fetches keys from the venue. It returns the results, in the order of keys, at the latest when ctx ends.
	Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]]
}
