package resolvers

import (
	"context"
	"slices"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/loaders"
)

func (r *subscriptionResolver) PriceChanged(ctx context.Context, tokenIDs []string, maxPerSecond *int) (<-chan model.PriceUpdate, error) {
	ids, err := distinctIDs("tokenIds", tokenIDs)
	if err != nil {
		return nil, err
	}
	every, err := interval(maxPerSecond, maxPerSecondLimit)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, follow.Prices(ctx, r.source(ctx), ids, every, r.readPrices), priceUpdate), nil
}

func (r *subscriptionResolver) PricesChanged(ctx context.Context, tokenIDs []string, maxPerSecond *int) (<-chan model.PricesUpdate, error) {
	ids, err := distinctIDs("tokenIds", tokenIDs)
	if err != nil {
		return nil, err
	}
	every, err := interval(new(valueOr(maxPerSecond, 4)), 20)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, follow.PriceLists(ctx, r.source(ctx), ids, every, r.readPrices), pricesUpdate), nil
}

func (r *Resolver) readPrices(ctx context.Context, tokenIDs []string) []reads.Result[*market.Price] {
	results := make([]reads.Result[*market.Price], len(tokenIDs))
	r.read(ctx, func(set *loaders.Set) {
		set.Prices.GetMany(tokenIDs, results)
		for i, id := range tokenIDs {
			if results[i].Err == nil && results[i].Value.Value == nil {
				results[i].Err = absentPrice(set, id)
			}
		}
	})
	return results
}

// absentPrice returns the error of a token without a price, or nil if the venue does not know the token. A token that has never
// traded and has no orders has no price, but may get one.
func absentPrice(set *loaders.Set, tokenID string) error {
	switch m, err := set.Markets.Get(byToken(tokenID)); {
	case err != nil && market.CodeOf(err) != market.CodeUnsupported:
		return err
	case m.Value == nil:
		return nil
	}
	return market.Errorf(market.CodeBadUserInput, "the token %s has no price at present", tokenID)
}

func pricesUpdate(reason model.UpdateReason, list []follow.Event[follow.PriceUpdate]) model.PricesUpdate {
	u := model.PricesUpdate{Reason: reason, Prices: make([]model.PriceUpdate, len(list))}
	for i, e := range list {
		u.Prices[i] = priceUpdate(model.UpdateReason(e.Reason), e.Value)
	}
	return u
}

func priceUpdate(reason model.UpdateReason, p follow.PriceUpdate) model.PriceUpdate {
	u := model.PriceUpdate{Reason: reason, Price: model.TokenPrice{Quote: p.Price, Meta: p.Meta}}
	if s := p.Spread; s != nil && (s.BestBid != nil || s.BestAsk != nil || s.Spread != nil) {
		u.Spread = &model.Spread{Top: s, Meta: p.Meta}
	}
	if p.Previous != nil {
		u.PreviousPrice = &p.Previous.Price
	}
	return u
}

func (r *subscriptionResolver) OrderbookChanged(ctx context.Context, tokenID string, depth *int, deltas *bool, maxPerSecond *int) (<-chan model.OrderbookUpdate, error) {
	if err := market.CheckID(tokenID); err != nil {
		return nil, err
	}
	d, err := bookDepth(depth, 20)
	if err != nil {
		return nil, err
	}
	every, err := interval(maxPerSecond, maxPerSecondLimit)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, follow.Book(ctx, r.source(ctx), tokenID, d, valueOr(deltas, false), every, func(ctx context.Context) (reads.Value[*market.Book], error) {
		return readOne(ctx, r.Resolver, func(set *loaders.Set) (reads.Value[*market.Book], error) {
			return set.Book(tokenID, queries.MaxBookDepth)
		})
	}), orderbookUpdate), nil
}

func orderbookUpdate(reason model.UpdateReason, b follow.BookUpdate) model.OrderbookUpdate {
	u := model.OrderbookUpdate{Kind: model.BookUpdateKindSnapshot, Reason: reason, Book: model.Orderbook{Book: b.Book, Meta: b.Meta}, Bids: b.Bids, Asks: b.Asks}
	if b.Delta {
		u.Kind = model.BookUpdateKindDelta
	}
	if b.Previous != nil {
		u.PreviousSequence = (&model.Orderbook{Book: b.Previous}).Sequence()
	}
	return u
}

func (r *subscriptionResolver) MarketChanged(ctx context.Context, marketIDs []string) (<-chan model.MarketUpdate, error) {
	ids, err := distinctIDs("marketIds", r.marketIDs(marketIDs))
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, follow.Markets(ctx, r.source(ctx), ids, r.readMarkets), marketUpdate), nil
}

func (r *Resolver) readMarkets(ctx context.Context, marketIDs []string) []reads.Result[*market.Market] {
	refs := make([]market.MarketRef, len(marketIDs))
	for i, id := range marketIDs {
		refs[i] = byID(id)
	}
	results := make([]reads.Result[*market.Market], len(refs))
	r.read(ctx, func(set *loaders.Set) { set.Markets.GetMany(refs, results) })
	return results
}

func marketUpdate(reason model.UpdateReason, m follow.MarketUpdate) model.MarketUpdate {
	u := model.MarketUpdate{Reason: reason, Market: model.Market{Market: m.Market, Meta: m.Meta}}
	if reason == model.UpdateReasonChange {
		u.Change = new(model.ParseMarketChange(m.Change))
	}
	return u
}

func (r *subscriptionResolver) TradesAdded(ctx context.Context, tokenIDs []string) (<-chan model.TradesUpdate, error) {
	ids, err := distinctIDs("tokenIds", tokenIDs)
	if err != nil {
		return nil, err
	}
	return subscribe(ctx, follow.Trades(ctx, r.source(ctx), ids, r.readLatestTrades(ids)), tradesUpdate), nil
}

func tradesUpdate(reason model.UpdateReason, t follow.TradesUpdate) model.TradesUpdate {
	u := model.TradesUpdate{Reason: reason, Trades: make([]model.Trade, len(t.Trades)), Known: t.Known, Gap: t.Gap}
	for i := range t.Trades {
		u.Trades[i] = model.Trade{Trade: &t.Trades[i]}
	}
	return u
}

func (r *subscriptionResolver) StreamStatusChanged(ctx context.Context, venue *string) (<-chan model.StreamStatus, error) {
	name, err := r.nameInIDs(venue)
	if err != nil {
		return nil, err
	}
	i := max(slices.Index(r.Names, name), 0)
	status := func() model.StreamStatus { return r.Status(ctx).Venues[i].Stream }
	return subscribe(ctx, follow.StreamStatus(ctx, r.source(ctx), status, sameStatus), func(_ model.UpdateReason, s model.StreamStatus) model.StreamStatus { return s }), nil
}

// sameStatus reports whether two statuses are equal. It ignores the time of the last message, which changes with every message.
func sameStatus(a, b *model.StreamStatus) bool {
	return a.State == b.State && a.Since.Equal(b.Since) && a.Connections == b.Connections && a.Reconnects == b.Reconnects &&
		a.Resyncs == b.Resyncs && a.WatchedTokens == b.WatchedTokens
}
