package resolvers

import (
	"context"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

// holding is what a row of an account says of the token that it is about.
type holding struct{ marketID, tokenID, outcome string }

func holdingOf(p *market.Position) holding { return holding{p.MarketID, p.TokenID, p.Outcome} }

func holdingOfOrder(o *model.Order) holding { return holding{o.MarketID, o.Order.TokenID, o.Outcome} }

func holdingOfTrade(t *model.Trade) holding {
	return holding{t.Trade.MarketID, t.Trade.TokenID, t.Trade.Outcome}
}

func holdingOfRecord(h *model.HistoryRecord) holding {
	return holding{h.HistoryRecord.MarketID, h.HistoryRecord.TokenID, h.HistoryRecord.Outcome}
}

// rowsOf makes the nodes and edges of a page of an account's rows. It looks up the markets and prices that are selected below
// them.
func rowsOf[T, N, E any](ctx context.Context, p page[T], node func(*T) N, hold func(*N) holding, edge func(cursor string, node N) E) ([]N, []E) {
	nodes := exec.MakeList[N](ctx, len(p.items))
	for i := range p.items {
		nodes[i] = node(&p.items[i])
	}
	prefetchRows(ctx, nodes, hold)
	return nodes, edgesOf(ctx, p, nodes, edge)
}

// market names the market of the row in the best way that is known, if any is.
func (h holding) market() (ref market.MarketRef, ok bool) {
	switch {
	case h.marketID != "":
		return byID(h.marketID), true
	case h.tokenID != "":
		return byToken(h.tokenID), true
	default:
		return ref, false
	}
}

// fieldsOfRows returns the paths to fields of the rows of a connection.
func fieldsOfRows(fields ...[]string) (paths [][]string) {
	for _, f := range fields {
		paths = append(paths, append([]string{"nodes"}, f...), append([]string{"edges", "node"}, f...))
	}
	return paths
}

// The fields that read the market of each row of an account, and the price of its token, whatever their arguments.
var (
	fieldsOfMarkets = fieldsOfRows([]string{"market"}, []string{"redeemable"},
		[]string{"token", "outcome"}, []string{"token", "outcomeKind"}, []string{"token", "winner"}, []string{"token", "market"})
	fieldsOfPrices = fieldsOfRows([]string{"token", "price"})
)

// prefetchRows looks up the markets and prices of a connection's rows where they are selected. The fields would look up the
// same one by one, which takes longer than a list.
func prefetchRows[T any](ctx context.Context, rows []T, hold func(*T) holding) {
	x := exec.From(ctx)
	if x == nil || len(rows) == 0 {
		return
	}
	set := loaders.From(ctx)
	if x.SelectsAny(fieldsOfMarkets) {
		refs := exec.MakeList[market.MarketRef](ctx, len(rows))[:0]
		for i := range rows {
			if ref, ok := hold(&rows[i]).market(); ok {
				refs = append(refs, ref)
			}
		}
		set.Markets.Prefetch(refs)
	}
	if x.SelectsAny(fieldsOfPrices) {
		tokens := exec.MakeList[string](ctx, len(rows))[:0]
		for i := range rows {
			if id := hold(&rows[i]).tokenID; id != "" {
				tokens = append(tokens, id)
			}
		}
		set.Prices.Prefetch(tokens)
	}
}

// marketOf reads the market that a row of an account belongs to.
func marketOf(ctx context.Context, h holding) (*model.Market, error) {
	ref, ok := h.market()
	if !ok {
		return nil, nil
	}
	return readMarket(ctx, ref)
}

// tokenOf returns the token of a row of an account: the one that it names, else the one that its market trades for its
// outcome, compared without case. It is nil where neither is known.
func tokenOf(ctx context.Context, h holding) (*model.Token, error) {
	if h.tokenID != "" {
		return object(ctx, model.Token{TokenID: h.tokenID, MarketID: h.marketID}), nil
	}
	m, err := marketOf(ctx, h)
	if m == nil {
		return nil, err
	}
	o := m.OutcomeByLabel(h.outcome)
	if o == nil {
		return nil, nil
	}
	return object(ctx, m.Token(o)), nil
}

func (r *orderResolver) Market(ctx context.Context, o *model.Order) (*model.Market, error) {
	return marketOf(ctx, holdingOfOrder(o))
}

func (r *orderResolver) Token(ctx context.Context, o *model.Order) (*model.Token, error) {
	return tokenOf(ctx, holdingOfOrder(o))
}

func (r *tradeResolver) Market(ctx context.Context, t *model.Trade) (*model.Market, error) {
	return marketOf(ctx, holdingOfTrade(t))
}

func (r *tradeResolver) Token(ctx context.Context, t *model.Trade) (*model.Token, error) {
	return tokenOf(ctx, holdingOfTrade(t))
}

func (r *historyRecordResolver) Market(ctx context.Context, h *model.HistoryRecord) (*model.Market, error) {
	return marketOf(ctx, holdingOfRecord(h))
}
