package follow

import (
	"cmp"
	"context"

	"oddsgraph/internal/reads"
)

// item is the part of a key's state that the bodies states and markets share. A key is the id of a token or a market, or empty for
// an account.
type item struct {
	key   string
	venue int // the index of the venue of the key
	// sent reports whether the subscription has sent an event for the key. live and resyncs are the fields Live and Resyncs of the
	// feed.State that the subscription used last. But when the body states sends a value from REST, it sets live to false.
	sent, live bool
	resyncs    uint64
	meta       reads.Meta
	// problem is the error of the last failed read. It is nil after the first event for the key.
	problem error
}

func (i *item) asItem() *item { return i }

// hasItem is a type that embeds an item.
type hasItem interface{ asItem() *item }

// readItems returns a readFunc that calls fetch with the keys of the items. The apply function of this readFunc calls apply with
// each item and the result for the item. It stops if apply returns an error. If apply has set the problem of items that had no
// problem before, it also calls report once, with the first of these problems.
func readItems[I hasItem, V any](items []I, fetch func(context.Context, []string) []reads.Result[V],
	apply func(I, reads.Result[V]) error, report func(error) error) readFunc {
	return func(ctx context.Context) func() error {
		keys := make([]string, len(items))
		for i, it := range items {
			keys[i] = it.asItem().key
		}
		results := fetch(ctx, keys)
		return func() error {
			var failed error
			for i, it := range items {
				before := it.asItem().problem
				if err := apply(it, results[i]); err != nil {
					return err
				}
				if before == nil && failed == nil {
					failed = it.asItem().problem
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
func resendItems[I hasItem](items []I, send func(I) error, report func(error) error) error {
	var failed error
	for _, it := range items {
		if c := it.asItem(); !c.sent {
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
