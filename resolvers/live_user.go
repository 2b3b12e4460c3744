package resolvers

import (
	"context"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/reads/valuation"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

func (r *subscriptionResolver) BalanceChanged(ctx context.Context, a market.Address, venue *string) (<-chan model.BalanceUpdate, error) {
	a, err := r.followed(ctx, a, venue)
	if err != nil {
		return nil, err
	}
	account := accountOf(ctx, r.Resolver, a, func(s *loaders.Set) *loaders.Loader[market.Address, market.Balance] { return &s.Balances })
	return subscribe(ctx, follow.Balance(ctx, r.source(ctx), account), func(reason model.UpdateReason, b follow.BalanceUpdate) model.BalanceUpdate {
		u := model.BalanceUpdate{Reason: reason}
		if b.Balance != nil {
			u.Balance = &model.Balance{Balance: b.Balance, Address: a, Meta: b.Meta}
		}
		return u
	}), nil
}

func (r *subscriptionResolver) OrdersChanged(ctx context.Context, a market.Address, venue *string) (<-chan model.OrdersUpdate, error) {
	a, err := r.followed(ctx, a, venue)
	if err != nil {
		return nil, err
	}
	account := accountOf(ctx, r.Resolver, a, func(s *loaders.Set) *loaders.Loader[market.Address, []market.Order] { return &s.Orders })
	return subscribe(ctx, follow.Orders(ctx, r.source(ctx), account), func(reason model.UpdateReason, o follow.OrdersUpdate) model.OrdersUpdate {
		u := model.OrdersUpdate{Reason: reason, Changed: make([]model.Order, len(o.Changed)), ClosedOrderIds: make([]string, len(o.Closed))}
		for i, order := range o.Changed {
			u.Changed[i] = model.Order{Order: order, Address: a}
		}
		for i, order := range o.Closed {
			u.ClosedOrderIds[i] = model.Order{Order: order, Address: a}.ID()
		}
		return u
	}), nil
}

func (r *subscriptionResolver) UserTradesAdded(ctx context.Context, a market.Address, venue *string) (<-chan model.TradesUpdate, error) {
	a, err := r.followed(ctx, a, venue)
	if err != nil {
		return nil, err
	}
	topic, credentials := r.accountTopic(ctx, a)
	account := follow.Account[queries.TradePage]{Topic: topic, Credentials: credentials, Read: func(ctx context.Context) (reads.Value[*queries.TradePage], error) {
		return readOne(request.WithFresh(ctx), r.Resolver, func(set *loaders.Set) (reads.Value[*queries.TradePage], error) {
			return set.Trades(a, queries.Trades{Limit: follow.MaxTrades})
		})
	}}
	return subscribe(ctx, follow.UserTrades(ctx, r.source(ctx), account, (*market.Trade).Key), tradesUpdate), nil
}

func (r *subscriptionResolver) PortfolioChanged(ctx context.Context, a market.Address, basis *market.PriceBasis, maxPerSecond *int, positionIDs []string, venue *string) (<-chan model.PortfolioUpdate, error) {
	by := valueOr(basis, "")
	every, err := interval(new(valueOr(maxPerSecond, 2)), 20)
	if err != nil {
		return nil, err
	}
	selected, err := r.newPositionFilter(a, venue, positionIDs)
	if err != nil {
		return nil, err
	}
	a = selected.address
	if err = r.checkAccess(ctx, a); err != nil {
		return nil, err
	}
	account := accountOf(ctx, r.Resolver, a, func(s *loaders.Set) *loaders.Loader[market.Address, []market.Position] { return &s.Positions })
	from := follow.PortfolioSource{Account: account, Key: positionKey, Value: func(ctx context.Context, positions []market.Position, held reads.Meta) (quotes []valuation.Quotes, valuations []*valuation.Valuation, err error) {
		r.read(ctx, func(set *loaders.Set) {
			quotes, valuations, err = valuation.All(set, pointers(positions), held, by)
		})
		return quotes, valuations, err
	}}
	return subscribe(ctx, follow.Portfolio(ctx, r.source(ctx), from, every), func(reason model.UpdateReason, p follow.PortfolioUpdate) model.PortfolioUpdate {
		return portfolioUpdate(a, by, reason, selected.filter(p))
	}), nil
}

// positionFilter selects positions of a wallet by the results of model.PositionID. If ids is nil, it selects all positions.
type positionFilter struct {
	address market.Address
	ids     map[string]bool
}

// newPositionFilter returns the filter for the arguments address, venue and positionIds. It accepts ids of positions that the wallet does not hold.
func (r *Resolver) newPositionFilter(a market.Address, venue *string, ids []string) (positionFilter, error) {
	a, err := r.account(a, venue)
	f := positionFilter{address: a}
	if ids == nil || err != nil {
		return f, err
	}
	if err := checkIDCount("positionIds", ids); err != nil {
		return f, err
	}
	f.ids = make(map[string]bool, len(ids))
	for _, id := range ids {
		local, kind, parts, err := r.decodeID(id)
		if err != nil || kind != model.KindPosition && kind != model.KindLot {
			return f, badInput("positionIds: %q is not the id of a position of this venue", id)
		}
		if parts[0] != string(a) {
			return f, badInput("positionIds: %q is a position of another wallet", id)
		}
		f.ids[local] = true
	}
	return f, nil
}

// filter returns an update with only the selected positions of u. The Summary still contains the sums over all positions.
func (f positionFilter) filter(u follow.PortfolioUpdate) follow.PortfolioUpdate {
	if f.ids == nil {
		return u
	}
	out := follow.PortfolioUpdate{Summary: u.Summary}
	for _, h := range u.Changed {
		if f.ids[model.PositionID(f.address, h.Position)] {
			out.Changed = append(out.Changed, h)
		}
	}
	for _, p := range u.Closed {
		if f.ids[model.PositionID(f.address, p)] {
			out.Closed = append(out.Closed, p)
		}
	}
	return out
}

func positionKey(p *market.Position) string { return p.Key().String() }

// portfolioUpdate returns an event in which each changed position contains its valuation and the price of its token, if they are
// known.
func portfolioUpdate(a market.Address, by market.PriceBasis, reason model.UpdateReason, p follow.PortfolioUpdate) model.PortfolioUpdate {
	u := model.PortfolioUpdate{
		Reason: reason, Changed: make([]model.Position, len(p.Changed)), ClosedPositionIds: make([]string, len(p.Closed)),
		Summary: model.PortfolioSummary{Portfolio: p.Summary, Address: a, Basis: by},
	}
	for i, h := range p.Changed {
		u.Changed[i] = model.Position{Position: h.Position, Address: a, Meta: h.Meta, Valued: h.Valuation, ValuedBy: by}
		if price := h.Quotes.Price; price.Value != nil {
			u.Changed[i].Preloaded = &model.Preloaded{Price: &model.TokenPrice{Quote: price.Value, Meta: price.Meta}}
		}
	}
	for i, gone := range p.Closed {
		u.ClosedPositionIds[i] = model.PositionID(a, gone)
	}
	return u
}
