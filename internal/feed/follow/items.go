package follow

import (
	"cmp"
	"context"

	"oddsgraph/internal/market"
)

// item is the state of one key of a stream.
type item struct {
	key string
	// sent reports whether the stream has sent an event for the key. live and resyncs are Live and Resyncs of the feed.State that the
	// stream used last.
	sent, live bool
	resyncs    uint64
	meta       market.Meta
	// problem is the last error. It is nil after the first event for the key.
	problem error
}

func (i *item) common() *item { return i }

type keyed interface{ common() *item }

// readItems returns a read that fetches the values of items. After the fetch, the loop's goroutine calls apply for each result. If
// apply has set the problem of items that had none, the loop's goroutine then calls report for the first of these problems.
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

// resendItems calls send for each item for which the stream has sent an event. It then calls report for the first problem of the
// other items.
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
