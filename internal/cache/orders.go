package cache

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// ordersKind is the kind of the active orders of accounts.
type ordersKind struct {
	ofUser[userKey, []market.Order]
}

func (ordersKind) about(cfg *Config) about {
	return about{kind: upstream.KindOrders, ttl: cfg.User, routes: []route{{upstream.EndpointOrders, upstream.PriorityUser}}}
}

func (ordersKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []userKey) ([]upstream.Result[*[]market.Order], error) {
	return rows(v.Orders(ctx, call, keys[0].Address))
}

// Orders returns the source of all active orders of an account. It reads them for the caller in ctx.
func (c *Cache) Orders() reads.Source[market.Address, []market.Order] {
	return userSource[market.Address, userKey, []market.Order]{c.orders, c.scope.keyFor}
}
