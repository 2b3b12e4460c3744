package cache

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// positionsKind is the kind of the positions of accounts.
type positionsKind struct {
	ofUser[userKey, []market.Position]
}

func (positionsKind) about(cfg *Config) about {
	return about{kind: upstream.KindPositions, ttl: cfg.User, routes: []route{{upstream.EndpointPositions, upstream.PriorityUser}}}
}

func (positionsKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []userKey) ([]upstream.Result[*[]market.Position], error) {
	return rows(v.Positions(ctx, call, keys[0].Address))
}

// Positions returns the source of all positions of an account. It reads them for the caller in ctx.
func (c *Cache) Positions() reads.Source[market.Address, []market.Position] {
	return userSource[market.Address, userKey, []market.Position]{c.positions, c.scope.keyFor}
}
