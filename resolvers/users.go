package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

func (r *queryResolver) User(_ context.Context, a market.Address) (*model.User, error) {
	return &model.User{Address: a}, nil
}

func (r *queryResolver) Viewer(ctx context.Context) (*model.User, error) {
	c := market.CredentialsFrom(ctx)
	if c == nil {
		return nil, nil
	}
	a, ok := c.Address()
	if !ok {
		return nil, nil
	}
	return &model.User{Address: a}, nil
}

// identified refuses anonymous readers of user data before the venue has to.
func identified(ctx context.Context) error {
	if market.CredentialsFrom(ctx) == nil {
		return market.Errorf(market.CodeUnauthenticated, "user data needs credentials; send them in the header X-Venue-Credentials")
	}
	return nil
}

// readUser reads a value of an account as the caller sees it.
func readUser[T any](ctx context.Context, from *loaders.Loader[market.Address, T], a market.Address) (market.Read[*T], error) {
	if err := identified(ctx); err != nil {
		return market.Read[*T]{}, err
	}
	read, err := from.Get(a)
	if err == nil && read.Value == nil {
		err = market.Errorf(market.CodeUpstreamBadResponse, "the venue gave no answer for this account")
	}
	return read, err
}

func (r *userResolver) Balance(ctx context.Context, u *model.User) (*model.Balance, error) {
	if err := identified(ctx); err != nil {
		return nil, err
	}
	read, err := loaders.From(ctx).Balances.Get(u.Address)
	if err != nil || read.Value == nil { // the venue may know the account without a balance
		return nil, err
	}
	return &model.Balance{Balance: read.Value, Address: u.Address, Meta: read.Meta}, nil
}

func (r *userResolver) Orders(ctx context.Context, u *model.User, first *int, after *string, marketIDs []string, side *market.OrderSide) (*model.OrderConnection, error) {
	part, err := cutOf(listHash("orders", string(u.Address)), first, after)
	if err != nil {
		return nil, err
	}
	in, err := filterByMarket(marketIDs)
	if err != nil {
		return nil, err
	}
	read, err := readUser(ctx, &loaders.From(ctx).Orders, u.Address)
	if err != nil {
		return nil, err
	}
	var orders []*market.Order
	for i := range *read.Value {
		if o := &(*read.Value)[i]; in(o.MarketID) && (side == nil || o.Side == *side) {
			orders = append(orders, o)
		}
	}
	p := cutPage(ctx, orders, func(o **market.Order) string { return (*o).OrderID }, part)
	nodes := make([]model.Order, len(p.items))
	for i, o := range p.items {
		nodes[i] = model.Order{Order: o, Address: u.Address}
	}
	prefetchRows(ctx, nodes, func(o *model.Order) holding { return holding{o.MarketID, o.Order.TokenID, o.Outcome} })
	edges := edgesOf(ctx, p, nodes, func(cursor string, node model.Order) model.OrderEdge {
		return model.OrderEdge{Cursor: cursor, Node: node}
	})
	return &model.OrderConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}, nil
}

// filterByMarket returns a test for the markets of a list; nil lets all pass.
func filterByMarket(marketIDs []string) (func(string) bool, error) {
	if marketIDs == nil {
		return func(string) bool { return true }, nil
	}
	if err := checkNumber("marketIds", marketIDs); err != nil {
		return nil, err
	}
	in := make(map[string]bool, len(marketIDs))
	for _, id := range marketIDs {
		in[id] = true
	}
	return func(id string) bool { return in[id] }, nil
}

func (r *userResolver) Trades(ctx context.Context, u *model.User, first *int, after *string, marketID *string, from, to *time.Time) (*model.TradeConnection, error) {
	n, err := pageSize(first, defaultPage, maxUpstreamPage)
	if err != nil {
		return nil, err
	}
	if marketID != nil {
		if err := market.CheckID(*marketID); err != nil {
			return nil, err
		}
	}
	if err := checkSpan(from, to); err != nil {
		return nil, err
	}
	if err := identified(ctx); err != nil {
		return nil, err
	}
	q := market.TradeQuery{MarketID: or(marketID, ""), From: or(from, time.Time{}), To: or(to, time.Time{})}
	set := loaders.From(ctx)
	p, err := readPages(func(page string, limit int) (venuePage[market.Trade], error) {
		q.Page, q.Limit = page, limit
		read, err := set.Trades(u.Address, q)
		if err != nil || read.Value == nil {
			return venuePage[market.Trade]{}, err
		}
		addLeftOut(ctx, read.Value.LeftOut)
		return venuePage[market.Trade]{read.Value.Trades, read.Value.Next, read.Value.Total}, nil
	}, (*market.Trade).Key, listHash("trades", string(u.Address)), n, after)
	if err != nil {
		return nil, err
	}
	nodes := make([]model.Trade, len(p.items))
	for i := range p.items {
		nodes[i] = model.Trade{Trade: &p.items[i]}
	}
	prefetchRows(ctx, nodes, func(t *model.Trade) holding {
		return holding{t.Trade.MarketID, t.Trade.TokenID, t.Trade.Outcome}
	})
	edges := edgesOf(ctx, p, nodes, func(cursor string, node model.Trade) model.TradeEdge {
		return model.TradeEdge{Cursor: cursor, Node: node}
	})
	return &model.TradeConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}, nil
}

func checkSpan(from, to *time.Time) error {
	if from != nil && to != nil && from.After(*to) {
		return badInput("from is after to")
	}
	return nil
}

func (r *userResolver) History(ctx context.Context, u *model.User, first *int, after *string, kinds []market.HistoryKind, from, to *time.Time) (*model.HistoryConnection, error) {
	n, err := pageSize(first, defaultPage, maxUpstreamPage)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if k == market.HistoryUnknown {
			return nil, badInput("history can't be filtered by the kind UNKNOWN")
		}
	}
	if err := checkSpan(from, to); err != nil {
		return nil, err
	}
	if err := identified(ctx); err != nil {
		return nil, err
	}
	q := market.HistoryQuery{Kinds: kinds, From: or(from, time.Time{}), To: or(to, time.Time{})}
	set := loaders.From(ctx)
	p, err := readPages(func(page string, limit int) (venuePage[market.HistoryRecord], error) {
		q.Page, q.Limit = page, limit
		read, err := set.History(u.Address, q)
		if err != nil || read.Value == nil {
			return venuePage[market.HistoryRecord]{}, err
		}
		addLeftOut(ctx, read.Value.LeftOut)
		return venuePage[market.HistoryRecord]{read.Value.Records, read.Value.Next, read.Value.Total}, nil
	}, (*market.HistoryRecord).Key, listHash("history", string(u.Address)), n, after)
	if err != nil {
		return nil, err
	}
	nodes := make([]model.HistoryRecord, len(p.items))
	for i := range p.items {
		nodes[i] = model.HistoryRecord{HistoryRecord: &p.items[i]}
	}
	prefetchRows(ctx, nodes, func(h *model.HistoryRecord) holding {
		return holding{h.HistoryRecord.MarketID, h.HistoryRecord.TokenID, h.HistoryRecord.Outcome}
	})
	edges := edgesOf(ctx, p, nodes, func(cursor string, node model.HistoryRecord) model.HistoryEdge {
		return model.HistoryEdge{Cursor: cursor, Node: node}
	})
	return &model.HistoryConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}, nil
}

// holding is what a row of an account says of the token that it is about.
type holding struct{ marketID, tokenID, outcome string }

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
	return marketOf(ctx, holding{o.MarketID, o.Order.TokenID, o.Outcome})
}

func (r *orderResolver) Token(ctx context.Context, o *model.Order) (*model.Token, error) {
	return tokenOf(ctx, holding{o.MarketID, o.Order.TokenID, o.Outcome})
}

func (r *tradeResolver) Market(ctx context.Context, t *model.Trade) (*model.Market, error) {
	return marketOf(ctx, holding{t.Trade.MarketID, t.Trade.TokenID, t.Trade.Outcome})
}

func (r *tradeResolver) Token(ctx context.Context, t *model.Trade) (*model.Token, error) {
	return tokenOf(ctx, holding{t.Trade.MarketID, t.Trade.TokenID, t.Trade.Outcome})
}

func (r *historyRecordResolver) Market(ctx context.Context, h *model.HistoryRecord) (*model.Market, error) {
	return marketOf(ctx, holding{h.HistoryRecord.MarketID, h.HistoryRecord.TokenID, h.HistoryRecord.Outcome})
}
