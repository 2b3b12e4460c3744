package resolvers

import (
	"context"
	"slices"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
	"oddsgraph/loaders"
)

func (r *marketResolver) Trades(ctx context.Context, m *model.Market, first *int, after *string) (*model.TradeConnection, error) {
	n, err := pageSize(first, defaultTrades, maxUpstreamPage)
	if err != nil {
		return nil, err
	}
	return readMarketTrades(ctx, queries.MarketTrades{MarketID: m.MarketID}, n, after)
}

// Trades first reads the market of the token if the market id is unknown, because venues list trades by market. It reads no market
// if the venue does not list trades.
func (r *tokenResolver) Trades(ctx context.Context, t *model.Token, first *int, after *string) (*model.TradeConnection, error) {
	if err := r.canListTrades(t.TokenID); err != nil {
		return nil, err
	}
	n, err := pageSize(first, defaultTrades, maxUpstreamPage)
	if err != nil {
		return nil, err
	}
	q := queries.MarketTrades{MarketID: t.MarketID, TokenID: t.TokenID}
	if q.MarketID == "" {
		m, _, err := r.outcomeOf(ctx, t)
		if m == nil {
			return nil, err
		}
		q.MarketID = m.MarketID
	}
	return readMarketTrades(ctx, q, n, after)
}

const defaultTrades = 20

// readMarketTrades reads a page of the public trades that q selects. It ignores the fields Page and Limit of q.
func readMarketTrades(ctx context.Context, q queries.MarketTrades, first int, after *string) (*model.TradeConnection, error) {
	set := loaders.From(ctx)
	p, err := readPages(ctx, func(page string, limit int) (venuePage[market.Trade], error) {
		q.Page, q.Limit = page, limit
		return tradePage(set.MarketTrades(q))
	}, (*market.Trade).Key, listHash("market trades", q.MarketID+"\n"+q.TokenID), first, after)
	if err != nil {
		return nil, err
	}
	return tradeConnection(ctx, p), nil
}

// canListTrades returns an UNSUPPORTED error if the venue of a token does not list trades.
func (r *Resolver) canListTrades(tokenID string) error {
	if v := r.venueOf(tokenID); v.Can != nil {
		return market.AtVenue(r.Names.Of(tokenID), v.Can(upstream.EndpointMarketTrades))
	}
	return nil
}

// readLatestTrades returns the function that reads the latest trades of tokens for a subscription: one call for each market, at the
// lowest priority. It returns nil if no venue of the tokens lists trades.
func (r *Resolver) readLatestTrades(ids []string) follow.ReadTrades {
	if !slices.ContainsFunc(ids, func(id string) bool { return r.canListTrades(id) == nil }) {
		return nil
	}
	return func(ctx context.Context, tokenIDs []string) []reads.Result[*queries.TradePage] {
		out := make([]reads.Result[*queries.TradePage], len(tokenIDs))
		r.read(request.With(ctx, func(q *request.Request) { q.Fresh, q.LowPriority = true, true }), func(set *loaders.Set) {
			for i, id := range tokenIDs {
				if out[i].Err = r.canListTrades(id); out[i].Err == nil {
					out[i].Value, out[i].Err = latestTrades(set, id)
				}
			}
		})
		return out
	}
}

// latestTrades reads the latest trades of a token, newest first. The page is nil if the venue does not know the token.
func latestTrades(set *loaders.Set, tokenID string) (read reads.Value[*queries.TradePage], err error) {
	m, err := set.Markets.Get(byToken(tokenID))
	if err != nil || m.Value == nil {
		return read, err
	}
	read, err = set.MarketTrades(queries.MarketTrades{MarketID: m.Value.MarketID, EveryToken: true, Limit: maxUpstreamPage})
	if err != nil || read.Value == nil {
		return read, err
	}
	page := *read.Value
	page.Trades = nil
	for _, t := range read.Value.Trades {
		if t.TokenID == tokenID {
			page.Trades = append(page.Trades, t)
		}
	}
	read.Value = &page
	return read, nil
}

func tradePage(read reads.Value[*queries.TradePage], err error) (venuePage[market.Trade], error) {
	if err != nil || read.Value == nil {
		return venuePage[market.Trade]{}, err
	}
	return venuePage[market.Trade]{read.Value.Trades, read.Value.Next, read.Value.Total, read.Value.LeftOut}, nil
}

func tradeConnection(ctx context.Context, p page[market.Trade]) *model.TradeConnection {
	nodes, edges := rowsOf(ctx, p, func(t *market.Trade) model.Trade { return model.Trade{Trade: t} }, tokenRefOfTrade,
		func(cursor string, node model.Trade) model.TradeEdge {
			return model.TradeEdge{Cursor: cursor, Node: node}
		})
	return &model.TradeConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}
}
