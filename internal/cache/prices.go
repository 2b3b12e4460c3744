package cache

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// priceKind is the kind of token prices.
type priceKind struct{ ofToken[market.Price] }

func (priceKind) about(cfg *Config) about {
	return about{kind: upstream.KindPrice, ttl: cfg.Price, routes: []route{{upstream.EndpointPrices, upstream.PriorityPrices}}}
}

func (priceKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, tokens []string) ([]upstream.Result[*market.Price], error) {
	return v.Prices(ctx, call, tokens)
}

func (priceKind) own(token string, p *market.Price) string {
	return ownID(token, p, func(p *market.Price) string { return p.TokenID })
}

func (priceKind) asOf(p *market.Price) time.Time { return p.Timestamp }

// older compares the venue's timestamps. If the values are equal, a is not older, even if its timestamp is earlier.
func (priceKind) older(a, b *market.Price) bool {
	return before(a.Timestamp, b.Timestamp) && a.Price.Cmp(b.Price) != 0
}

func (priceKind) sound(token string, p *market.Price) bool {
	return p.TokenID == token && inUnit(&p.Price) && slices.Contains(bases, p.Basis)
}

var (
	one   = market.NewDecimal(1, 0)
	bases = []market.PriceBasis{market.BasisSettlement, market.BasisVenue, market.BasisLast, market.BasisMidpoint, market.BasisBestBid, market.BasisBestAsk}
)

// inUnit reports whether d is nil or from 0 to 1.
func inUnit(d *market.Decimal) bool { return d == nil || d.Sign() >= 0 && d.Cmp(one) <= 0 }

// Prices returns the source of token prices, by token.
func (c *Cache) Prices() reads.Source[string, market.Price] { return c.prices }

// StreamPrice stores a streamed price. It ignores the price if the cached REST price is newer. The stored price is fresh until its
// session ends or StreamStale is called.
func (c *Cache) StreamPrice(s *reads.Session, p *market.Price, m reads.Meta) {
	c.prices.stream(p.TokenID, p, s, m)
}
