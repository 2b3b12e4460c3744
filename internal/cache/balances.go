package cache

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// balanceKind is the kind of the balances of accounts.
type balanceKind struct {
	ofUser[userKey, market.Balance]
}

func (balanceKind) about(cfg *Config) about {
	return about{kind: upstream.KindBalance, ttl: cfg.User, routes: []route{{upstream.EndpointBalance, upstream.PriorityUser}}}
}

func (balanceKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []userKey) ([]upstream.Result[*market.Balance], error) {
	return answer(v.Balance(ctx, call, keys[0].Address))
}

func (balanceKind) asOf(b *market.Balance) time.Time { return b.UpdatedAt }

// Balances returns the source of balances. It reads them for the caller in ctx.
func (c *Cache) Balances() reads.Source[market.Address, market.Balance] {
	return userSource[market.Address, userKey, market.Balance]{c.balances, c.scope.keyFor}
}
