package resolvers

import (
	"context"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads/valuation"
	"oddsgraph/loaders"
)

func (r *userResolver) Positions(ctx context.Context, u *model.User, first *int, after *string, marketIDs []string, minSize *market.Decimal, redeemable *bool, sort *valuation.Sort) (*model.PositionConnection, error) {
	by := valueOr(sort, valuation.SortVenue)
	part, in, err := r.listArguments(ctx, "positions", u.Address, first, after, marketIDs, string(by), textOf(minSize), textOf(redeemable))
	if err != nil {
		return nil, err
	}
	set := loaders.From(ctx)
	read, err := readUser(ctx, r.Resolver, &set.Positions, u.Address)
	if err != nil {
		return nil, err
	}
	positions := pick(*read.Value, func(p *market.Position) bool { return in(p.MarketID) && (minSize == nil || p.Size.Cmp(*minSize) >= 0) })
	if positions, err = valuation.KeepRedeemable(set, positions, redeemable); err != nil {
		return nil, err
	}
	if err := valuation.SortPositions(set, positions, read.Meta, by); err != nil {
		return nil, err
	}
	p := cutPage(ctx, positions, func(p **market.Position) uint64 { return positionHash(*p) }, part)
	nodes, edges := rowsOf(ctx, p, func(p **market.Position) model.Position {
		return model.Position{Position: *p, Address: u.Address, Meta: read.Meta}
	}, func(p *model.Position) tokenRef { return tokenRefOf(p.Position) },
		func(cursor string, node model.Position) model.PositionEdge {
			return model.PositionEdge{Cursor: cursor, Node: node}
		})
	return &model.PositionConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}, nil
}

func pointers(positions []market.Position) []*market.Position {
	out := make([]*market.Position, len(positions))
	for i := range positions {
		out[i] = &positions[i]
	}
	return out
}

func (r *positionResolver) Valuation(ctx context.Context, p *model.Position, basis *market.PriceBasis) (*model.Valuation, error) {
	by := valueOr(basis, "")
	if p.Valued != nil && p.ValuedBy == by {
		return &model.Valuation{Valuation: p.Valued, Of: p, By: by}, nil
	}
	quotes, err := valuation.ReadQuotes(loaders.From(ctx), p.Position, by)
	if err != nil {
		return nil, err
	}
	v := valuation.Of(p.Position, p.Meta, &quotes, by)
	if v == nil {
		return nil, nil
	}
	return object(ctx, model.Valuation{Valuation: v, Of: p, By: by}), nil
}

func (r *positionResolver) Redeemable(ctx context.Context, p *model.Position) (*bool, error) {
	m, err := marketOf(ctx, tokenRefOf(p.Position))
	if m == nil {
		return nil, err
	}
	return m.Market.Redeems(p.Position), nil
}

func (r *positionResolver) Market(ctx context.Context, p *model.Position) (*model.Market, error) {
	return marketOf(ctx, tokenRefOf(p.Position))
}

func (r *positionResolver) Token(ctx context.Context, p *model.Position) (*model.Token, error) {
	t, err := tokenOf(ctx, tokenRefOf(p.Position))
	if t != nil {
		t.Preloaded = p.Preloaded
	}
	return t, err
}

func (r *userResolver) Portfolio(ctx context.Context, u *model.User, basis *market.PriceBasis) (*model.PortfolioSummary, error) {
	set, by := loaders.From(ctx), valueOr(basis, "")
	read, err := readUser(ctx, r.Resolver, &set.Positions, u.Address)
	var valuations []*valuation.Valuation
	if err == nil {
		_, valuations, err = valuation.All(set, pointers(*read.Value), read.Meta, by)
	}
	if err == loaders.ErrPending { // the fields below this placeholder request their values in the same pass
		return &model.PortfolioSummary{Portfolio: &valuation.Portfolio{}, Address: u.Address, Basis: by}, nil
	}
	if err != nil {
		return nil, err
	}
	sum := valuation.Sum(*read.Value, valuations, read.Meta)
	return &model.PortfolioSummary{Portfolio: sum, Address: u.Address, Basis: by}, nil
}

func (r *portfolioSummaryResolver) TotalValue(ctx context.Context, p *model.PortfolioSummary) (*market.Decimal, error) {
	cash, err := r.readCash(ctx, p.Address)
	if cash == nil {
		return nil, err
	}
	return new(p.PositionsValue.Add(*cash).Reduce()), nil
}

func (r *portfolioSummaryResolver) AvailableCash(ctx context.Context, p *model.PortfolioSummary) (*market.Decimal, error) {
	set := loaders.From(ctx)
	if r.cashError(p.Address) == nil && r.checkAccess(ctx, p.Address) == nil {
		set.Orders.Prefetch([]market.Address{p.Address}) // so that orders and balance are fetched together
	}
	cash, err := r.readCash(ctx, p.Address)
	if cash == nil {
		return nil, err
	}
	orders, err := readUser(ctx, r.Resolver, &set.Orders, p.Address)
	if err != nil {
		return nil, err
	}
	return new(cash.Sub(market.HeldByBuys(*orders.Value)).Reduce()), nil
}

// readCash returns an account's cash, or nil if the venue does not send it. If the client may not read the account, or CashError is
// set, readCash returns an error and reads nothing.
func (r *Resolver) readCash(ctx context.Context, a market.Address) (*market.Decimal, error) {
	if err := r.checkAccess(ctx, a); err != nil {
		return nil, err
	}
	if err := r.cashError(a); err != nil {
		return nil, err
	}
	read, err := loaders.From(ctx).Balances.Get(a)
	if err != nil || read.Value == nil {
		return nil, err
	}
	return read.Value.CashBalance, nil
}
