package resolvers

import (
	"context"
	"slices"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

func (r *userResolver) Positions(ctx context.Context, u *model.User, first *int, after *string, marketIDs []string, minSize *market.Decimal, redeemable *bool, sort *model.PositionSort) (*model.PositionConnection, error) {
	part, in, err := listArguments("positions", u.Address, first, after, marketIDs)
	if err != nil {
		return nil, err
	}
	set := loaders.From(ctx)
	read, err := readUser(ctx, &set.Positions, u.Address)
	if err != nil {
		return nil, err
	}
	positions := pick(*read.Value, func(p *market.Position) bool { return in(p.MarketID) && (minSize == nil || p.Size.Cmp(*minSize) >= 0) })
	if positions, err = keepRedeemable(set, positions, redeemable); err != nil {
		return nil, err
	}
	if err := sortPositions(set, positions, read.Meta, or(sort, model.PositionSortVenue)); err != nil {
		return nil, err
	}
	p := cutPage(ctx, positions, func(p **market.Position) string { return (*p).Key().String() }, part)
	nodes, edges := rowsOf(ctx, p, func(p **market.Position) model.Position {
		return model.Position{Position: *p, Address: u.Address, Meta: read.Meta}
	}, func(p *model.Position) holding { return holdingOf(p.Position) },
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

// readMarkets reads the markets of positions, aligned with them.
func readMarkets(set *loaders.Set, positions []*market.Position) []market.Result[market.Read[*market.Market]] {
	refs := make([]market.MarketRef, len(positions))
	for i, p := range positions {
		refs[i] = byID(p.MarketID)
	}
	out := make([]market.Result[market.Read[*market.Market]], len(refs))
	set.Markets.GetMany(refs, out)
	return out
}

// outcomeIn returns the outcome of a market that a position holds, nil where it can't be matched.
func outcomeIn(m *market.Market, p *market.Position) *market.Outcome {
	if m == nil {
		return nil
	}
	if p.TokenID != "" {
		return m.OutcomeByToken(p.TokenID)
	}
	return m.OutcomeByLabel(p.Outcome)
}

// canRedeem tells whether a position's market is resolved and its outcome won; nil where that is not known.
func canRedeem(m *market.Market, p *market.Position) *bool {
	switch {
	case m == nil || m.Status == market.StatusUnknown:
		return nil
	case m.Status != market.StatusResolved:
		return new(bool)
	default:
		return m.Won(outcomeIn(m, p))
	}
}

// keepRedeemable returns the positions that can be redeemed, or those that can't; nil wants all.
func keepRedeemable(set *loaders.Set, positions []*market.Position, wanted *bool) ([]*market.Position, error) {
	if wanted == nil {
		return positions, nil
	}
	var kept []*market.Position
	for i, result := range readMarkets(set, positions) {
		if result.Err != nil {
			return nil, result.Err
		}
		if can := canRedeem(result.Value.Value, positions[i]); can != nil && *can == *wanted {
			kept = append(kept, positions[i])
		}
	}
	return kept, nil
}

// sortPositions sorts in place; equal positions stay in the venue's order and what is not known comes last.
func sortPositions(set *loaders.Set, positions []*market.Position, held market.Meta, by model.PositionSort) error {
	switch by {
	case model.PositionSortVenue:
		return nil
	case model.PositionSortEndsAt:
		ends := make(map[*market.Position]time.Time, len(positions))
		for i, result := range readMarkets(set, positions) {
			if result.Err != nil {
				return result.Err
			}
			if m := result.Value.Value; m != nil {
				ends[positions[i]] = m.EndsAt
			}
		}
		slices.SortStableFunc(positions, func(a, b *market.Position) int {
			x, y := ends[a], ends[b]
			if x.IsZero() || y.IsZero() {
				return later(x.IsZero(), y.IsZero())
			}
			return x.Compare(y)
		})
		return nil
	}
	valuations, err := valueAll(set, positions, held, "")
	if err != nil {
		return err
	}
	figures := make(map[*market.Position]*market.Decimal, len(positions))
	for i, v := range valuations {
		switch {
		case v == nil:
		case by == model.PositionSortValue:
			figures[positions[i]] = &v.Value
		case by == model.PositionSortPnl:
			figures[positions[i]] = v.UnrealizedPnl
		default:
			figures[positions[i]] = v.UnrealizedPnlPercent
		}
	}
	slices.SortStableFunc(positions, func(a, b *market.Position) int {
		x, y := figures[a], figures[b]
		if x == nil || y == nil {
			return later(x == nil, y == nil)
		}
		return y.Cmp(*x)
	})
	return nil
}

// later puts what is not known behind what is.
func later(aUnknown, bUnknown bool) int {
	switch {
	case aUnknown == bUnknown:
		return 0
	case aUnknown:
		return 1
	default:
		return -1
	}
}

// valueAll prices positions by one set of prices: within a response a token has one price. A valuation is nil where no
// price is known. A price that could not be read is an error, so that nothing is summed over a part.
func valueAll(set *loaders.Set, positions []*market.Position, held market.Meta, basis market.PriceBasis) ([]*market.Valuation, error) {
	_, valuations, errs := quoteEach(set, positions, held, basis)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return valuations, nil
}

// quoteEach prices positions like valueAll, with what each was priced by and an error for each.
func quoteEach(set *loaders.Set, positions []*market.Position, held market.Meta, basis market.PriceBasis) (quotes []market.Quotes, valuations []*market.Valuation, errs []error) {
	n := len(positions)
	quotes, valuations, errs = make([]market.Quotes, n), make([]*market.Valuation, n), make([]error, n)
	for i, p := range positions {
		if quotes[i], errs[i] = readQuotes(set, p, basis); errs[i] == nil {
			valuations[i] = market.Value(p, held, &quotes[i], basis)
		}
	}
	return quotes, valuations, errs
}

// readQuotes reads what a position is priced by. It reads the price beside a market that is pending, not after it.
func readQuotes(set *loaders.Set, p *market.Position, basis market.PriceBasis) (q market.Quotes, err error) {
	token := p.TokenID
	if basis == "" || basis == market.BasisSettlement || basis != market.BasisPosition && token == "" {
		q.Market, err = set.Markets.Get(byID(p.MarketID))
		if q.Outcome = outcomeIn(q.Market.Value, p); token == "" && q.Outcome != nil {
			token = q.Outcome.TokenID
		}
	}
	if token == "" || basis == "" && q.Market.Value != nil && q.Market.Value.SettlementPrice(q.Outcome) != nil {
		return q, err
	}
	if basis == "" || basis == market.BasisVenue || basis == market.BasisLast {
		var failed error
		if q.Price, failed = set.Prices.Get(token); err == nil {
			err = failed
		}
	}
	if err != nil {
		return q, err
	}
	switch {
	case basis == "" && q.Price.Value == nil, basis == market.BasisMidpoint, basis == market.BasisBestBid, basis == market.BasisBestAsk:
		q.Spread, err = set.Spreads.Get(token)
	}
	return q, err
}

func (r *positionResolver) Valuation(ctx context.Context, p *model.Position, basis *market.PriceBasis) (*model.Valuation, error) {
	by := or(basis, "")
	if p.Valued != nil && p.ValuedBy == by {
		return &model.Valuation{Valuation: p.Valued, Of: p, By: by}, nil
	}
	quotes, err := readQuotes(loaders.From(ctx), p.Position, by)
	if err != nil {
		return nil, err
	}
	v := market.Value(p.Position, p.Meta, &quotes, by)
	if v == nil {
		return nil, nil
	}
	return object(ctx, model.Valuation{Valuation: v, Of: p, By: by}), nil
}

func (r *positionResolver) Redeemable(ctx context.Context, p *model.Position) (*bool, error) {
	m, err := marketOf(ctx, holdingOf(p.Position))
	if m == nil {
		return nil, err
	}
	return canRedeem(m.Market, p.Position), nil
}

func (r *positionResolver) Market(ctx context.Context, p *model.Position) (*model.Market, error) {
	return marketOf(ctx, holdingOf(p.Position))
}

func (r *positionResolver) Token(ctx context.Context, p *model.Position) (*model.Token, error) {
	t, err := tokenOf(ctx, holdingOf(p.Position))
	if t != nil {
		t.Shown = p.Shown
	}
	return t, err
}

func (r *userResolver) Portfolio(ctx context.Context, u *model.User, basis *market.PriceBasis) (*model.PortfolioSummary, error) {
	set, by := loaders.From(ctx), or(basis, "")
	read, err := readUser(ctx, &set.Positions, u.Address)
	var valuations []*market.Valuation
	if err == nil {
		valuations, err = valueAll(set, pointers(*read.Value), read.Meta, by)
	}
	if err == loaders.ErrPending { // its fields find what they will read
		return &model.PortfolioSummary{Portfolio: &market.Portfolio{}, Address: u.Address, Basis: by}, nil
	}
	if err != nil {
		return nil, err
	}
	sum := market.Sum(*read.Value, valuations, read.Meta)
	return &model.PortfolioSummary{Portfolio: sum, Address: u.Address, Basis: by}, nil
}

func (r *portfolioSummaryResolver) TotalValue(ctx context.Context, p *model.PortfolioSummary) (*market.Decimal, error) {
	cash, err := readCash(ctx, p.Address)
	if cash == nil {
		return nil, err
	}
	total := p.PositionsValue.Add(*cash).Reduce()
	return &total, nil
}

func (r *portfolioSummaryResolver) AvailableCash(ctx context.Context, p *model.PortfolioSummary) (*market.Decimal, error) {
	set := loaders.From(ctx)
	if identified(ctx) == nil {
		set.Orders.Prefetch([]market.Address{p.Address}) // beside the balance, not behind it
	}
	cash, err := readCash(ctx, p.Address)
	if cash == nil {
		return nil, err
	}
	orders, err := readUser(ctx, &set.Orders, p.Address)
	if err != nil {
		return nil, err
	}
	available := cash.Sub(market.HeldByBuys(*orders.Value)).Reduce()
	return &available, nil
}

// readCash reads an account's cash, nil where the venue does not state it.
func readCash(ctx context.Context, a market.Address) (*market.Decimal, error) {
	read, err := loaders.From(ctx).Balances.Get(a)
	if err != nil || read.Value == nil {
		return nil, err
	}
	return read.Value.CashBalance, nil
}
