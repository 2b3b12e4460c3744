package resolvers

import (
	"context"
	"slices"
	"time"

	"oddsgraph/graph/compiled"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

func holdingOf(p *market.Position) holding { return holding{p.MarketID, p.TokenID, p.Outcome} }

func (r *Resolver) userPositions(ctx context.Context, u *model.User, first *int, after *string, marketIDs []string, minSize *market.Decimal, redeemable *bool, sort *model.PositionSort) (*model.PositionConnection, error) {
	part, err := cutOf(listHash("positions", string(u.Address)), first, after)
	if err != nil {
		return nil, err
	}
	in, err := filterByMarket(marketIDs)
	if err != nil {
		return nil, err
	}
	set := loaders.From(ctx)
	read, err := readUser(ctx, &set.Positions, u.Address)
	if err != nil {
		return nil, err
	}
	aheadOfPortfolio(ctx, set, *read.Value)
	positions := make([]*market.Position, 0, len(*read.Value))
	for i := range *read.Value {
		if p := &(*read.Value)[i]; in(p.MarketID) && (minSize == nil || p.Size.Cmp(*minSize) >= 0) {
			positions = append(positions, p)
		}
	}
	if redeemable != nil {
		if positions, err = keepRedeemable(set, positions, *redeemable); err != nil {
			return nil, err
		}
	}
	if err := sortPositions(set, positions, read.Meta, or(sort, model.PositionSortVenue)); err != nil {
		return nil, err
	}
	p := cutPage(ctx, positions, func(p **market.Position) string { return (*p).Key().String() }, part)
	nodes := compiled.MakeList[model.Position](ctx, len(p.items))
	for i, item := range p.items {
		nodes[i] = model.Position{Position: item, Address: u.Address, Meta: read.Meta}
	}
	for i, row := range aheadOf(ctx, "Position", p.rest, len(nodes), func(p **market.Position) holding { return holdingOf(*p) }) {
		nodes[i].In, nodes[i].Shown = row.in, row.shown
	}
	edges := edgesOf(ctx, p, nodes, func(cursor string, node model.Position) model.PositionEdge {
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

func refsOfPositions(positions []*market.Position) []market.MarketRef {
	refs := make([]market.MarketRef, len(positions))
	for i, p := range positions {
		refs[i] = byID(p.MarketID)
	}
	return refs
}

// readMarkets reads the markets of positions, aligned with them.
func readMarkets(set *loaders.Set, positions []*market.Position) []market.Result[market.Read[*market.Market]] {
	refs := refsOfPositions(positions)
	out := make([]market.Result[market.Read[*market.Market]], len(refs))
	readAll(&set.Markets, refs, out)
	return out
}

// readAll reads keys into out: a list at once, and one alone, which may be that of one position of many, with others.
func readAll[K comparable, T any](from *loaders.Loader[K, T], keys []K, out []market.Result[market.Read[*T]]) {
	if len(keys) == 1 {
		out[0].Value, out[0].Err = from.Get(keys[0])
		return
	}
	from.GetMany(keys, out)
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

func keepRedeemable(set *loaders.Set, positions []*market.Position, wanted bool) ([]*market.Position, error) {
	var kept []*market.Position
	for i, result := range readMarkets(set, positions) {
		if result.Err != nil {
			return nil, result.Err
		}
		if can := canRedeem(result.Value.Value, positions[i]); can != nil && *can == wanted {
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

// valueOne is valueAll for one position.
func valueOne(set *loaders.Set, p *market.Position, held market.Meta, basis market.PriceBasis) (*market.Valuation, error) {
	if set.InMemory() {
		if set.Attempts() {
			prefetchQuotes(set, []*market.Position{p}, basis)
		}
		q, err := recallQuotes(set, p, basis)
		if err != nil {
			return nil, err
		}
		return market.Value(p, held, &q, basis), nil
	}
	valuations, err := valueAll(set, []*market.Position{p}, held, basis)
	if err != nil {
		return nil, err
	}
	return valuations[0], nil
}

// recallQuotes reads what a position is priced by from memory: what quoteEach reads of many in batches, one after the other.
func recallQuotes(set *loaders.Set, p *market.Position, basis market.PriceBasis) (q market.Quotes, err error) {
	token := p.TokenID
	if basis == "" || basis == market.BasisSettlement || basis != market.BasisPosition && token == "" {
		if q.Market, err = set.Markets.Get(byID(p.MarketID)); err != nil {
			return q, err
		}
		if q.Outcome = outcomeIn(q.Market.Value, p); token == "" && q.Outcome != nil {
			token = q.Outcome.TokenID
		}
	}
	if token == "" || basis == "" && q.Market.Value != nil && q.Market.Value.SettlementPrice(q.Outcome) != nil {
		return q, nil
	}
	if pricedByVenue(basis) {
		if q.Price, err = set.Prices.Get(token); err != nil {
			return q, err
		}
	}
	switch {
	case basis == "" && q.Price.Value == nil, basis == market.BasisMidpoint, basis == market.BasisBestBid, basis == market.BasisBestAsk:
		q.Spread, err = set.Spreads.Get(token)
	}
	return q, err
}

// quoteEach prices positions like valueAll, with what each was priced by and an error for each. What can be asked for at
// once is.
func quoteEach(set *loaders.Set, positions []*market.Position, held market.Meta, basis market.PriceBasis) (quotes []market.Quotes, valuations []*market.Valuation, errs []error) {
	n := len(positions)
	quotes, errs = make([]market.Quotes, n), make([]error, n)
	if set.InMemory() {
		if set.Attempts() {
			prefetchQuotes(set, positions, basis)
		}
		valuations = make([]*market.Valuation, n)
		for i, p := range positions {
			if quotes[i], errs[i] = recallQuotes(set, p, basis); errs[i] == nil {
				valuations[i] = market.Value(p, held, &quotes[i], basis)
			}
		}
		return quotes, valuations, errs
	}
	prefetchQuotes(set, positions, basis)
	pricesWanted := pricedByVenue(basis)
	if basis != market.BasisPosition {
		matchMarkets(set, positions, quotes, errs, basis)
	}
	done := func(i int) bool {
		m := quotes[i].Market.Value
		return errs[i] != nil || basis == "" && m != nil && m.SettlementPrice(quotes[i].Outcome) != nil
	}
	if pricesWanted {
		fill(&set.Prices, positions, quotes, errs, done, func(q *market.Quotes, read market.Read[*market.Price]) { q.Price = read })
	}
	switch basis {
	case "":
		unpriced := func(i int) bool { return done(i) || quotes[i].Price.Value != nil }
		fill(&set.Spreads, positions, quotes, errs, unpriced, func(q *market.Quotes, read market.Read[*market.Spread]) { q.Spread = read })
	case market.BasisMidpoint, market.BasisBestBid, market.BasisBestAsk:
		fill(&set.Spreads, positions, quotes, errs, done, func(q *market.Quotes, read market.Read[*market.Spread]) { q.Spread = read })
	}
	valuations = make([]*market.Valuation, n)
	for i, p := range positions {
		if errs[i] == nil {
			valuations[i] = market.Value(p, held, &quotes[i], basis)
		}
	}
	return quotes, valuations, errs
}

// pricedByVenue reports whether a basis may need the venue's own price.
func pricedByVenue(basis market.PriceBasis) bool {
	return basis == "" || basis == market.BasisVenue || basis == market.BasisLast
}

// prefetchQuotes sends for the prices and markets that all positions will need, so that they travel together. Positions
// that are known to be settled need no price.
func prefetchQuotes(set *loaders.Set, positions []*market.Position, basis market.PriceBasis) {
	if basis == "" || basis == market.BasisSettlement {
		set.Markets.Prefetch(refsOfPositions(positions))
	}
	if !pricedByVenue(basis) {
		return
	}
	tokens := make([]string, 0, len(positions))
	for _, p := range positions {
		if p.TokenID == "" {
			continue
		}
		if m, ok := set.Markets.Peek(byID(p.MarketID)); ok && basis == "" && settled(m.Value, p.TokenID) {
			continue
		}
		tokens = append(tokens, p.TokenID)
	}
	set.Prices.Prefetch(tokens)
}

// matchMarkets fills in markets and outcomes: of all positions where the settlement counts, else of those whose token is
// known through the market only.
func matchMarkets(set *loaders.Set, positions []*market.Position, quotes []market.Quotes, errs []error, basis market.PriceBasis) {
	wanted, at := make([]*market.Position, 0, len(positions)), make([]int, 0, len(positions))
	for i, p := range positions {
		if basis == "" || basis == market.BasisSettlement || p.TokenID == "" {
			wanted, at = append(wanted, p), append(at, i)
		}
	}
	if len(wanted) == 0 {
		return
	}
	for j, result := range readMarkets(set, wanted) {
		i := at[j]
		quotes[i].Market, errs[i] = result.Value, result.Err
		quotes[i].Outcome = outcomeIn(result.Value.Value, positions[i])
	}
}

// fill reads a quote of every position that is not to be skipped and whose token is known.
func fill[T any](set *loaders.Loader[string, T], positions []*market.Position, quotes []market.Quotes, errs []error, skip func(int) bool, put func(*market.Quotes, market.Read[*T])) {
	tokens, at := make([]string, 0, len(positions)), make([]int, 0, len(positions))
	for i, p := range positions {
		token := p.TokenID
		if token == "" && quotes[i].Outcome != nil {
			token = quotes[i].Outcome.TokenID
		}
		if token != "" && !skip(i) {
			tokens, at = append(tokens, token), append(at, i)
		}
	}
	if len(tokens) == 0 {
		return
	}
	results := make([]market.Result[market.Read[*T]], len(tokens))
	readAll(set, tokens, results)
	for j, result := range results {
		put(&quotes[at[j]], result.Value)
		errs[at[j]] = result.Err
	}
}

func (r *Resolver) positionValuation(ctx context.Context, p *model.Position, basis *market.PriceBasis) (*model.Valuation, error) {
	by := or(basis, "")
	if p.Valued != nil && p.ValuedBy == by {
		return &model.Valuation{Valuation: p.Valued, Of: p, By: by}, nil
	}
	v, err := valueOne(loaders.From(ctx), p.Position, p.Meta, by)
	if v == nil {
		return nil, err
	}
	return object(ctx, model.Valuation{Valuation: v, Of: p, By: by}), nil
}

func (r *Resolver) positionRedeemable(ctx context.Context, p *model.Position) (*bool, error) {
	m, err := marketOf(ctx, holdingOf(p.Position))
	if m == nil {
		return nil, err
	}
	return canRedeem(m.Market, p.Position), nil
}

func (r *Resolver) positionMarket(ctx context.Context, p *model.Position) (*model.Market, error) {
	if p.In != nil {
		return p.In, nil
	}
	return marketOf(ctx, holdingOf(p.Position))
}

func (r *Resolver) positionToken(ctx context.Context, p *model.Position) (*model.Token, error) {
	t, err := tokenOf(ctx, holdingOf(p.Position))
	if t != nil {
		t.Shown = p.Shown
		if p.In != nil {
			t.In, t.Meta = p.In.Market, p.In.Meta
		}
	}
	return t, err
}

func (r *Resolver) userPortfolio(ctx context.Context, u *model.User, basis *market.PriceBasis) (*model.PortfolioSummary, error) {
	set, by := loaders.From(ctx), or(basis, "")
	read, err := readUser(ctx, &set.Positions, u.Address)
	if err != nil {
		return nil, err
	}
	valuations, err := valueAll(set, pointers(*read.Value), read.Meta, by)
	if err != nil {
		return nil, err
	}
	sum := market.Sum(*read.Value, valuations, read.Meta)
	return &model.PortfolioSummary{Portfolio: sum, Address: u.Address, Basis: by}, nil
}

func (r *Resolver) portfolioSummaryTotalValue(ctx context.Context, p *model.PortfolioSummary) (*market.Decimal, error) {
	cash, err := readCash(ctx, p.Address)
	if cash == nil {
		return nil, err
	}
	total := p.PositionsValue.Add(*cash).Reduce()
	return &total, nil
}

func (r *Resolver) portfolioSummaryAvailableCash(ctx context.Context, p *model.PortfolioSummary) (*market.Decimal, error) {
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
