// Package resolvers answers the graph's fields: each checks its arguments, makes one call and returns. Everything is
// read through the loaders of the response. The methods of a type of the schema belong to tokenResolver and its like.
package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph"
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

// The resolvers of the schema's types. A missing method is a compile error here.
type (
	eventResolver            struct{ *Resolver }
	historyRecordResolver    struct{ *Resolver }
	marketResolver           struct{ *Resolver }
	orderResolver            struct{ *Resolver }
	portfolioSummaryResolver struct{ *Resolver }
	positionResolver         struct{ *Resolver }
	queryResolver            struct{ *Resolver }
	subscriptionResolver     struct{ *Resolver }
	tokenResolver            struct{ *Resolver }
	tradeResolver            struct{ *Resolver }
	userResolver             struct{ *Resolver }
)

// Event implements graph.ResolverRoot.
func (r *Resolver) Event() graph.EventResolver { return &eventResolver{r} }

// HistoryRecord implements graph.ResolverRoot.
func (r *Resolver) HistoryRecord() graph.HistoryRecordResolver { return &historyRecordResolver{r} }

// Market implements graph.ResolverRoot.
func (r *Resolver) Market() graph.MarketResolver { return &marketResolver{r} }

// Order implements graph.ResolverRoot.
func (r *Resolver) Order() graph.OrderResolver { return &orderResolver{r} }

// PortfolioSummary implements graph.ResolverRoot.
func (r *Resolver) PortfolioSummary() graph.PortfolioSummaryResolver {
	return &portfolioSummaryResolver{r}
}

// Position implements graph.ResolverRoot.
func (r *Resolver) Position() graph.PositionResolver { return &positionResolver{r} }

// Query implements graph.ResolverRoot.
func (r *Resolver) Query() graph.QueryResolver { return &queryResolver{r} }

// Subscription implements graph.ResolverRoot.
func (r *Resolver) Subscription() graph.SubscriptionResolver { return &subscriptionResolver{r} }

// Token implements graph.ResolverRoot.
func (r *Resolver) Token() graph.TokenResolver { return &tokenResolver{r} }

// Trade implements graph.ResolverRoot.
func (r *Resolver) Trade() graph.TradeResolver { return &tradeResolver{r} }

// User implements graph.ResolverRoot.
func (r *Resolver) User() graph.UserResolver { return &userResolver{r} }

func (r *queryResolver) ServiceStatus(ctx context.Context) (model.ServiceStatus, error) {
	return r.Status(ctx), nil
}
