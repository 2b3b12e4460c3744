// Package resolvers answers the graph's fields: each checks its arguments, makes one call and returns. Everything is
// read through the loaders of the response; schema.resolvers.go is regenerated and only delegates.
package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

// Resolver is the root of all resolvers. It holds no data; every response reads through its own loaders.
type Resolver struct {
	// Status tells how the service does. It must not wait.
	Status func(ctx context.Context) model.ServiceStatus
	// Clock says what day it is, for default ranges.
	Clock market.Clock
	// Feed is the live state that subscriptions follow, Sources what they read beside it.
	Feed    *feed.Feed
	Sources loaders.Sources
	// Timeout is how long the first event of a subscription may take.
	Timeout time.Duration
	// Scope tells apart the callers that follow one account.
	Scope func(ctx context.Context, a market.Address) string
}

func (r *Resolver) queryServiceStatus(ctx context.Context) (model.ServiceStatus, error) {
	return r.Status(ctx), nil
}
