package resolvers

import (
	"context"
	"slices"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/candles"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

func (r *queryResolver) Token(_ context.Context, tokenID string) (*model.Token, error) {
	if err := market.CheckID(tokenID); err != nil {
		return nil, err
	}
	return &model.Token{TokenID: tokenID}, nil
}

func (r *queryResolver) Tokens(ctx context.Context, tokenIDs []string) ([]*model.Token, error) {
	if err := checkIDCount("tokenIds", tokenIDs); err != nil {
		return nil, err
	}
	out := make([]*model.Token, len(tokenIDs))
	for i, id := range tokenIDs {
		if err := market.CheckID(id); err != nil {
			exec.ReportAt(ctx, i, err)
			continue
		}
		out[i] = object(ctx, model.Token{TokenID: id})
	}
	return out, nil
}

func identity(id string) string { return id }

// The following functions return placeholders for values that are still being fetched. The output of a pass with a placeholder is
// discarded, but the fields below the placeholder request their values in this pass.

func pendingPrice(tokenID string) *market.Price { return &market.Price{TokenID: tokenID} }

func pendingSpread(tokenID string) *market.Spread {
	return &market.Spread{TokenID: tokenID, Spread: new(market.Decimal)}
}

func pendingBook(tokenID string) *market.Book {
	return &market.Book{TokenID: tokenID, Bids: market.NewSide(make([]market.Level, 1))}
}

func (r *queryResolver) TokenPrices(ctx context.Context, tokenIDs []string) ([]*model.TokenPrice, error) {
	return readList(ctx, "tokenIds", tokenIDs, identity, &loaders.From(ctx).Prices, pendingPrice, func(read reads.Value[*market.Price]) *model.TokenPrice {
		return object(ctx, model.TokenPrice{Quote: read.Value, Meta: read.Meta})
	})
}

func (r *queryResolver) Spreads(ctx context.Context, tokenIDs []string) ([]*model.Spread, error) {
	return readList(ctx, "tokenIds", tokenIDs, identity, &loaders.From(ctx).Spreads, pendingSpread, func(read reads.Value[*market.Spread]) *model.Spread {
		return spreadOf(ctx, read)
	})
}

// spreadOf returns a spread. It returns nil if there is no spread, or if all its prices are nil.
func spreadOf(ctx context.Context, read reads.Value[*market.Spread]) *model.Spread {
	s := read.Value
	if s == nil || s.BestBid == nil && s.BestAsk == nil && s.Spread == nil {
		return nil
	}
	return object(ctx, model.Spread{Top: s, Meta: read.Meta})
}

func (r *tokenResolver) Market(ctx context.Context, t *model.Token) (*model.Market, error) {
	if t.In == nil && t.Leg() == nil {
		return readMarket(ctx, refOf(t))
	}
	read, err := tokenMarket(ctx, t)
	if err != nil || read.Value == nil {
		return nil, err
	}
	return object(ctx, model.Market{Market: read.Value, Meta: read.Meta}), nil
}

// tokenMarket returns a token's market: the one whose field returned the token, that of the event, or else one that is read.
func tokenMarket(ctx context.Context, t *model.Token) (reads.Value[*market.Market], error) {
	if t.In != nil {
		return reads.Value[*market.Market]{Value: t.In, Meta: t.Meta}, nil
	}
	if l := t.Leg(); l != nil {
		return l.Market.Value, l.Market.Err
	}
	return loaders.From(ctx).Markets.Get(refOf(t))
}

// refOf returns a reference to a token's market: by the market id if it is known, otherwise by the token id.
func refOf(t *model.Token) market.MarketRef {
	if t.MarketID != "" {
		return byID(t.MarketID)
	}
	return byToken(t.TokenID)
}

// outcomeOf returns a token's market, and the outcome of this market to which the token belongs. Both are nil if the venue does not
// know the market. The outcome is nil if the token belongs to no outcome of the market.
func (r *Resolver) outcomeOf(ctx context.Context, t *model.Token) (*market.Market, *market.Outcome, error) {
	read, err := tokenMarket(ctx, t)
	if read.Value == nil || err != nil {
		return nil, nil, err
	}
	return read.Value, read.Value.OutcomeByToken(t.TokenID), nil
}

func (r *tokenResolver) Outcome(ctx context.Context, t *model.Token) (*string, error) {
	_, o, err := r.outcomeOf(ctx, t)
	if o == nil {
		return nil, err
	}
	return &o.Label, nil
}

func (r *tokenResolver) OutcomeKind(ctx context.Context, t *model.Token) (*market.OutcomeKind, error) {
	_, o, err := r.outcomeOf(ctx, t)
	if o == nil {
		return nil, err
	}
	return new(market.KindOfOutcome(o.Label)), nil
}

func (r *tokenResolver) Winner(ctx context.Context, t *model.Token) (*bool, error) {
	m, o, err := r.outcomeOf(ctx, t)
	if o == nil {
		return nil, err
	}
	if won := m.Won(o); won != nil || !m.Summary || m.Status != market.StatusResolved {
		return won, nil
	}
	full, err := readMarket(ctx, byID(m.MarketID)) // m comes from a list, which may omit the winner
	if full == nil {
		return nil, err
	}
	return full.Won(full.OutcomeByToken(t.TokenID)), nil
}

func (r *tokenResolver) Price(ctx context.Context, t *model.Token) (*model.TokenPrice, error) {
	if t.Preloaded != nil && t.Preloaded.Price != nil {
		return t.Preloaded.Price, nil
	}
	read, err := loaders.From(ctx).Prices.Get(t.TokenID)
	if err == loaders.ErrPending {
		read.Value, err = object(ctx, market.Price{TokenID: t.TokenID}), nil
	}
	if err != nil || read.Value == nil {
		return nil, err
	}
	return object(ctx, model.TokenPrice{Quote: read.Value, Meta: read.Meta}), nil
}

func (r *tokenResolver) Spread(ctx context.Context, t *model.Token) (*model.Spread, error) {
	if t.Preloaded != nil && t.Preloaded.Spread != nil {
		return t.Preloaded.Spread, nil
	}
	read, err := loaders.From(ctx).Spreads.Get(t.TokenID)
	if err == loaders.ErrPending {
		read.Value, err = pendingSpread(t.TokenID), nil
	}
	if err != nil {
		return nil, err
	}
	return spreadOf(ctx, read), nil
}

func (r *tokenResolver) Orderbook(ctx context.Context, t *model.Token, depth *int) (*model.Orderbook, error) {
	d, err := bookDepth(depth, 20)
	if err != nil {
		return nil, err
	}
	if t.Preloaded != nil && t.Preloaded.Book != nil && t.Preloaded.Book.Book.Covers(d) {
		shown := *t.Preloaded.Book
		shown.Book = shown.Book.Cut(d)
		return &shown, nil
	}
	read, err := tokenBook(ctx, t, d)
	if err == loaders.ErrPending {
		read.Value, err = pendingBook(t.TokenID), nil
	}
	if err != nil || read.Value == nil || read.Value.Bids.Len() == 0 && read.Value.Asks.Len() == 0 {
		return nil, err
	}
	return object(ctx, model.Orderbook{Book: read.Value.Cut(d), Meta: read.Meta}), nil
}

// tokenBook returns a token's book: that of the event if it is deep enough, or else one that is read. If the event has no book because its
// venue failed, another read would only delay the other venues.
func tokenBook(ctx context.Context, t *model.Token, depth int) (reads.Value[*market.Book], error) {
	if l := t.Leg(); l != nil && (l.Book.Value.Value == nil || l.Book.Value.Value.Covers(depth)) {
		return l.Book.Value, l.Book.Err
	}
	return loaders.From(ctx).Book(t.TokenID, depth)
}

// days checks a range of days and returns the first and the last day. If to is nil, the last day is today. If from is nil, the
// range has defaultDays days.
func (r *Resolver) days(ctx context.Context, from, to *market.Date) (first, last market.Date, err error) {
	today := market.DateOf(r.Clock.Now())
	if to == nil {
		request.From(ctx).Dependencies.Until((today + 1).Start()) // the default range changes at midnight
	}
	last = valueOr(to, today)
	first = valueOr(from, last-defaultDays+1)
	switch {
	case first > last:
		return 0, 0, badInput("from (%s) is after to (%s)", first, last)
	case last-first >= maxHistoryDays:
		return 0, 0, badInput("from %s to %s are %d days; at most %d are accepted", first, last, last-first+1, maxHistoryDays)
	}
	return first, last, nil
}

func (r *Resolver) readHistory(ctx context.Context, t *model.Token, from, to *market.Date) (*model.PriceHistory, error) {
	first, last, err := r.days(ctx, from, to)
	if err != nil {
		return nil, err
	}
	read, err := loaders.From(ctx).Histories.Get(queries.PriceHistory{TokenID: t.TokenID, From: first, To: last})
	if err != nil || read.Value == nil {
		return nil, err
	}
	addLeftOut(ctx, read.Value.LeftOut)
	return &model.PriceHistory{From: first, To: last, Points: read.Value.Points, Meta: read.Meta}, nil
}

func (r *tokenResolver) History(ctx context.Context, t *model.Token, from, to *market.Date, order *queries.Direction) (*model.PriceHistory, error) {
	h, err := r.readHistory(ctx, t, from, to)
	if h != nil && valueOr(order, queries.Ascending) == queries.Descending {
		h.Points = slices.Clone(h.Points) // other responses share the points
		slices.Reverse(h.Points)
	}
	return h, err
}

func (r *tokenResolver) RecentPrices(ctx context.Context, t *model.Token) ([]market.PricePoint, error) {
	recent := r.Feeds[r.Names.Find(t.TokenID)].Recent(t.TokenID)
	if recent == nil {
		return nil, nil
	}
	out := make([]market.PricePoint, len(recent))
	for i, p := range recent {
		out[i] = market.PricePoint{Timestamp: p.At, Price: p.Price}
	}
	return out, nil
}

func (r *tokenResolver) Candles(ctx context.Context, t *model.Token, interval candles.Interval, from, to *market.Date) ([]candles.Candle, error) {
	h, err := r.readHistory(ctx, t, from, to)
	if h == nil {
		return nil, err
	}
	return candles.Of(h.Points, interval), nil
}

func (r *tokenResolver) FillEstimate(ctx context.Context, t *model.Token, side market.OrderSide, size, amount *market.Decimal, by *model.FillFor) (*model.FillEstimate, error) {
	if side == market.SideUnknown {
		return nil, badInput("side must be BUY or SELL")
	}
	size, amount, err := fillAmount(size, amount, by)
	if err != nil {
		return nil, err
	}
	read, err := loaders.From(ctx).Book(t.TokenID, queries.MaxBookDepth)
	if err != nil || read.Value == nil || read.Value.Bids.Len() == 0 && read.Value.Asks.Len() == 0 {
		return nil, err
	}
	var fill market.Fill
	if size != nil {
		fill = market.FillSize(read.Value, side, *size)
	} else {
		fill = market.FillAmount(read.Value, side, *amount)
	}
	return &model.FillEstimate{Fill: fill, Meta: reads.Combine(read.Meta)}, nil
}
