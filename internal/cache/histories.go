package cache

import (
	"context"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// historyKind is the kind of price histories.
type historyKind struct {
	plain[queries.PriceHistory, market.PriceHistory]
}

func (historyKind) about(cfg *Config) about {
	return about{kind: upstream.KindHistory, ttl: cfg.History, routes: []route{{upstream.EndpointPriceHistory, upstream.PriorityHistory}}}
}

func (historyKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []queries.PriceHistory) ([]upstream.Result[*market.PriceHistory], error) {
	return v.PriceHistories(ctx, call, keys)
}

func (historyKind) own(key queries.PriceHistory, _ *market.PriceHistory) queries.PriceHistory {
	key.TokenID = strings.Clone(key.TokenID)
	return key
}

func (historyKind) forget(id string) func(queries.PriceHistory) bool {
	return func(key queries.PriceHistory) bool { return key.TokenID == id }
}

func (historyKind) sound(key queries.PriceHistory, h *market.PriceHistory) bool {
	return len(h.LeftOut) == 0 && h.TokenID == key.TokenID && h.From == key.From && h.To == key.To && soundPoints(h.Points)
}

func soundPoints(points []market.PricePoint) bool {
	for i := range points {
		if p := &points[i]; !inUnit(&p.Price) || p.Timestamp.IsZero() || i > 0 && p.Timestamp.Before(points[i-1].Timestamp) {
			return false
		}
	}
	return true
}

// Histories returns the source of price histories.
func (c *Cache) Histories() reads.Source[queries.PriceHistory, market.PriceHistory] {
	return c.histories
}
