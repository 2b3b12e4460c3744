package resolvers

import (
	"context"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

// tokenRef identifies the token of a row. A row is a position, an order, a trade or a history record. A field that the venue did
// not send is empty.
type tokenRef struct{ marketID, tokenID, outcome string }

func tokenRefOf(p *market.Position) tokenRef { return tokenRef{p.MarketID, p.TokenID, p.Outcome} }

func tokenRefOfOrder(o *model.Order) tokenRef {
	return tokenRef{o.MarketID, o.Order.TokenID, o.Outcome}
}

func tokenRefOfTrade(t *model.Trade) tokenRef {
	return tokenRef{t.Trade.MarketID, t.Trade.TokenID, t.Trade.Outcome}
}

func tokenRefOfRecord(h *model.HistoryRecord) tokenRef {
	return tokenRef{h.HistoryRecord.MarketID, h.HistoryRecord.TokenID, h.HistoryRecord.Outcome}
}

// rowsOf returns the nodes and edges of a page of rows. If the client selects the markets or prices of the rows, rowsOf prefetches
// them.
func rowsOf[T, N, E any](ctx context.Context, p page[T], node func(*T) N, toRef func(*N) tokenRef, edge func(cursor string, node N) E) ([]N, []E) {
	nodes := exec.MakeList[N](ctx, len(p.items))
	for i := range p.items {
		nodes[i] = node(&p.items[i])
	}
	prefetchRows(ctx, nodes, toRef)
	return nodes, edgesOf(ctx, p, nodes, edge)
}

// market returns a reference to the row's market. ok is false if the row has neither a market id nor a token id.
func (h tokenRef) market() (ref market.MarketRef, ok bool) {
	switch {
	case h.marketID != "":
		return byID(h.marketID), true
	case h.tokenID != "":
		return byToken(h.tokenID), true
	default:
		return ref, false
	}
}

// fieldsOfRows returns two paths for each field of a row. One path begins with nodes, the other with edges.node.
func fieldsOfRows(fields ...[]string) (paths [][]string) {
	for _, f := range fields {
		paths = append(paths, append([]string{"nodes"}, f...), append([]string{"edges", "node"}, f...))
	}
	return paths
}

// fieldsOfMarkets are the paths of the fields that read a row's market. fieldsOfPrices are the paths of the fields that read
// the price of a row's token.
var (
	fieldsOfMarkets = fieldsOfRows([]string{"market"}, []string{"redeemable"},
		[]string{"token", "outcome"}, []string{"token", "outcomeKind"}, []string{"token", "winner"}, []string{"token", "market"})
	fieldsOfPrices = fieldsOfRows([]string{"token", "price"})
)

// prefetchRows looks up the markets and prices of all rows together, if the client selects them. One lookup for all rows is faster
// than one lookup for each row.
func prefetchRows[T any](ctx context.Context, rows []T, toRef func(*T) tokenRef) {
	x := exec.From(ctx)
	if x == nil || len(rows) == 0 {
		return
	}
	set := loaders.From(ctx)
	if x.SelectsAny(fieldsOfMarkets) {
		refs := exec.MakeList[market.MarketRef](ctx, len(rows))[:0]
		for i := range rows {
			if ref, ok := toRef(&rows[i]).market(); ok {
				refs = append(refs, ref)
			}
		}
		set.Markets.Prefetch(refs)
	}
	if x.SelectsAny(fieldsOfPrices) {
		tokens := exec.MakeList[string](ctx, len(rows))[:0]
		for i := range rows {
			if id := toRef(&rows[i]).tokenID; id != "" {
				tokens = append(tokens, id)
			}
		}
		set.Prices.Prefetch(tokens)
	}
}

// marketOf reads the market of a row. It returns nil if the market is unknown.
func marketOf(ctx context.Context, h tokenRef) (*model.Market, error) {
	ref, ok := h.market()
	if !ok {
		return nil, nil
	}
	return readMarket(ctx, ref)
}

// tokenOf returns the token of a row. If the row has no token id, tokenOf reads the row's market. It then returns the token of the
// outcome that has the row's label, ignoring case. It returns nil if it finds no token.
func tokenOf(ctx context.Context, h tokenRef) (*model.Token, error) {
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
	return marketOf(ctx, tokenRefOfOrder(o))
}

func (r *orderResolver) Token(ctx context.Context, o *model.Order) (*model.Token, error) {
	return tokenOf(ctx, tokenRefOfOrder(o))
}

func (r *tradeResolver) Market(ctx context.Context, t *model.Trade) (*model.Market, error) {
	return marketOf(ctx, tokenRefOfTrade(t))
}

func (r *tradeResolver) Token(ctx context.Context, t *model.Trade) (*model.Token, error) {
	return tokenOf(ctx, tokenRefOfTrade(t))
}

func (r *historyRecordResolver) Market(ctx context.Context, h *model.HistoryRecord) (*model.Market, error) {
	return marketOf(ctx, tokenRefOfRecord(h))
}
