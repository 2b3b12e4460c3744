package resolvers

import (
	"context"

	"oddsgraph/graph/compiled"
	"oddsgraph/graph/model"
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

// recalled is what was read of a row's market, and of its token where the row names it; nil where that was not, or is not there.
type recalled struct {
	in    *model.Market
	shown *model.Shown
}

// recallHoldings reads what is selected of the rows of an account, and returns it aligned with them.
func recallHoldings[T any](ctx context.Context, rows []T, hold func(*T) holding) []recalled {
	x := compiled.From(ctx)
	if x == nil {
		return nil
	}
	set, out := loaders.From(ctx), compiled.MakeList[recalled](ctx, len(rows))
	at := compiled.MakeList[int](ctx, len(rows))[:0] // the rows of what is read
	if x.SelectsAny(fieldsOfMarkets) {
		refs := compiled.MakeList[market.MarketRef](ctx, len(rows))[:0]
		for i := range rows {
			if ref, ok := hold(&rows[i]).market(); ok {
				refs, at = append(refs, ref), append(at, i)
			}
		}
		set.Markets.Recall(refs, func(j int, read *market.Read[*market.Market]) {
			if read.Value != nil {
				out[at[j]].in = object(ctx, model.Market{Market: read.Value, Meta: read.Meta})
			}
		})
	}
	if x.SelectsAny(fieldsOfPrices) {
		tokens := compiled.MakeList[string](ctx, len(rows))[:0]
		at = at[:0]
		for i := range rows {
			if id := hold(&rows[i]).tokenID; id != "" {
				tokens, at = append(tokens, id), append(at, i)
			}
		}
		set.Prices.Recall(tokens, func(j int, read *market.Read[*market.Price]) {
			if read.Value != nil {
				out[at[j]].shown = object(ctx, model.Shown{Price: object(ctx, model.TokenPrice{Quote: read.Value, Meta: read.Meta})})
			}
		})
	}
	return out
}
