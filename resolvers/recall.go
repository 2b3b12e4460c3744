package resolvers

import (
	"context"

	"oddsgraph/graph/compiled"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

// An answer that is made of what is in memory is written field by field, too, and a look-up costs less in a list. So what is
// selected of all rows of a page is looked up at once, before they are written; the fields find it where it was put.

// fieldsOfNodes returns the paths to fields of the nodes of a connection.
func fieldsOfNodes(fields ...[]string) (paths [][]string) {
	for _, f := range fields {
		paths = append(paths, append([]string{"nodes"}, f...), append([]string{"edges", "node"}, f...))
	}
	return paths
}

// The fields that read the market of each row of an account, and the price of its token, whatever their arguments.
var (
	fieldsOfMarkets = fieldsOfNodes([]string{"market"}, []string{"redeemable"},
		[]string{"token", "outcome"}, []string{"token", "outcomeKind"}, []string{"token", "winner"}, []string{"token", "market"})
	fieldsOfPrices = fieldsOfNodes([]string{"token", "price"})
)

// recallHoldings looks up what is selected of the rows of an account.
func recallHoldings[T any](ctx context.Context, rows []T, hold func(*T) holding) {
	x := compiled.From(ctx)
	if x == nil || len(rows) == 0 {
		return
	}
	set := loaders.From(ctx)
	if x.SelectsAny(fieldsOfMarkets) {
		refs := make([]market.MarketRef, 0, len(rows))
		for i := range rows {
			if ref, ok := hold(&rows[i]).market(); ok {
				refs = append(refs, ref)
			}
		}
		set.Markets.Recall(refs)
	}
	if x.SelectsAny(fieldsOfPrices) {
		tokens := make([]string, 0, len(rows))
		for i := range rows {
			if id := hold(&rows[i]).tokenID; id != "" {
				tokens = append(tokens, id)
			}
		}
		set.Prices.Recall(tokens)
	}
}
