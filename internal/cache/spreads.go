package cache

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// spreadKind is the kind of token spreads.
type spreadKind struct{ ofToken[market.Spread] }

func (spreadKind) about(cfg *Config) about {
	return about{kind: upstream.KindSpread, ttl: cfg.Spread, routes: []route{{upstream.EndpointSpreads, upstream.PriorityPrices}}}
}

func (spreadKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, tokens []string) ([]upstream.Result[*market.Spread], error) {
	return v.Spreads(ctx, call, tokens)
}

func (spreadKind) own(token string, s *market.Spread) string {
	return ownID(token, s, func(s *market.Spread) string { return s.TokenID })
}

func (spreadKind) asOf(s *market.Spread) time.Time { return s.Timestamp }

// older is like priceKind.older.
func (spreadKind) older(a, b *market.Spread) bool {
	return before(a.Timestamp, b.Timestamp) && !(same(a.BestBid, b.BestBid) && same(a.BestAsk, b.BestAsk))
}

func (spreadKind) sound(token string, s *market.Spread) bool {
	return s.TokenID == token && inUnit(s.BestBid) && inUnit(s.BestAsk) && (s.Spread == nil || inUnit(new(s.Spread.Abs())))
}

// Spreads returns the source of spreads, by token.
func (c *Cache) Spreads() reads.Source[string, market.Spread] { return c.spreads }

// StreamSpread stores a streamed spread; see StreamPrice.
func (c *Cache) StreamSpread(s *reads.Session, sp *market.Spread, m reads.Meta) {
	c.spreads.stream(sp.TokenID, sp, s, m)
}
