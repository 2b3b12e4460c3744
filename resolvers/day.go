package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

const (
	day = 24 * time.Hour
	// Price24hAgo returns the last price that is at least 24 hours old. Shortly after midnight, the history may contain no such price,
	// because the history starts at the beginning of yesterday. In this case, Price24hAgo returns the first price of the history if
	// its age is at least 24 hours minus lateReference.
	lateReference = time.Hour
	maxSamples    = 100
)

// lastDay reads the price history of yesterday and today. It returns nil if the token is unknown.
func (r *Resolver) lastDay(ctx context.Context, t *model.Token, now time.Time) (*market.PriceHistory, error) {
	today := market.DateOf(now)
	request.From(ctx).Dependencies.Until((today + 1).Start())
	read, err := loaders.From(ctx).Histories.Get(queries.PriceHistory{TokenID: t.TokenID, From: today - 1, To: today})
	if err != nil || read.Value == nil {
		return nil, err
	}
	addLeftOut(ctx, read.Value.LeftOut)
	return read.Value, nil
}

func (r *tokenResolver) Sparkline(ctx context.Context, t *model.Token, points *int) ([]market.Decimal, error) {
	n := valueOr(points, 24)
	if n < 2 || n > maxSamples {
		return nil, badInput("points is %d; it must be 2 to %d", n, maxSamples)
	}
	now := r.Clock.Now()
	h, err := r.lastDay(ctx, t, now)
	if h == nil {
		return nil, err
	}
	prices, until := h.Samples(now, day, n)
	request.From(ctx).Dependencies.Until(until)
	return prices, nil
}

func (r *tokenResolver) Change24h(ctx context.Context, t *model.Token) (*market.Decimal, error) {
	before, failed := r.Price24hAgo(ctx, t)
	price, err := r.Price(ctx, t) // even if the history is pending, so that history and price are fetched together
	if err == nil {
		err = failed
	}
	if err != nil || before == nil || price == nil {
		return nil, err
	}
	return new(price.Price().Sub(*before).Reduce()), nil
}

func (r *tokenResolver) Price24hAgo(ctx context.Context, t *model.Token) (*market.Decimal, error) {
	now := r.Clock.Now()
	h, err := r.lastDay(ctx, t, now)
	if err != nil || h == nil {
		return nil, err
	}
	start := now.Add(-day)
	then, next := h.At(start)
	if !next.IsZero() {
		request.From(ctx).Dependencies.Until(now.Add(next.Sub(start)))
	}
	if then == nil {
		if next.IsZero() || next.Sub(start) > lateReference {
			return nil, nil
		}
		then = &h.Points[0]
	}
	return new(then.Price), nil
}
