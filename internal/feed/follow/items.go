package follow

import (
	"cmp"
	"context"

	"oddsgraph/internal/market"
)

// item is the state of one key of a subscription. A key is the id of a token or a market, or empty for an account.
type item struct {
	key string
	// sent reports whether the subscription has sent an event for the key. live and resyncs are the fields Live and Resyncs of the
	// feed.State that the subscription used last. The type states sets live to false when it sends a value from REST.
	sent, live bool
	resyncs    uint64
	meta       market.Meta
	// problem is the error of the last failed read. It is nil after the first event for the key.
	problem error
}

func (i *item) common() *item { return i }

type keyed interface{ common() *item }

// readItems returns a read that calls fetch with the keys of the items. The read returns a function that calls apply with each item
// and its result, and stops if apply returns an error. If apply has set the problem of items that had none, the returned function
// also calls report once, with the first of these problems.
func readItems[I keyed, V any](items []I, fetch func(context.Context, []string) []market.Result[market.Read[V]],
	apply func(I, market.Result[market.Read[V]]) error, report func(error) error) read {
	return func(ctx context.Context) func() error {
		keys := make([]string, len(items))
		for i, it := range items {
			keys[i] = it.common().key
		}
		results := fetch(ctx, keys)
		return func() error {
			var failed error
			for i, it := range items {
				before := it.common().problem
				if err := apply(it, results[i]); err != nil {
					return err
				}
				if before == nil && failed == nil {
					failed = it.common().problem
				}
			}
			if failed != nil {
				return report(failed)
			}
			return nil
		}
	}
}

// resendItems calls send for each item for which the subscription has sent an event. If other items have a problem, resendItems
// also calls report once, with the first of these problems.
func resendItems[I keyed](items []I, send func(I) error, report func(error) error) error {
	var failed error
	for _, it := range items {
		if c := it.common(); !c.sent {
			failed = cmp.Or(failed, c.problem)
		} else if err := send(it); err != nil {
			return err
		}
	}
	if failed != nil {
		return report(failed)
	}
	return nil
}
