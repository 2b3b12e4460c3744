// Package resolvers implements the fields of the GraphQL schema that need a read. A resolver checks its arguments and calls other
// packages. It reads REST data through the loaders of the response.
package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph"
	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/loaders"
)

// Resolver is the root of all resolvers. It implements graph.ResolverRoot. Except for ListOrders, it contains no data of responses.
// It is safe for concurrent use.
type Resolver struct {
	// Venues are the venues, and Names their names. Feeds provide the values of their streams, and Sources the values that
	// subscriptions read over REST.
	Venues  []Venue
	Names   market.Names
	Feeds   []*feed.Feed
	Sources loaders.Sources
	// Status returns the state of the service. It must not block.
	Status func(ctx context.Context) model.ServiceStatus
	Clock  market.Clock
	// Timeout is the longest wait for the first event of a subscription.
	Timeout time.Duration
	// ListOrders keeps the orders of lists while clients read them page by page. If it is nil, no order is kept.
	ListOrders *ListOrders
	// QuestionFile has the questions on several venues. If it is nil, there are none.
	QuestionFile *QuestionFile
}

// Venue is a venue that the resolvers read.
type Venue struct {
	// Name is the name of the venue in global ids. It is empty for the generic driver as the first venue.
	Name string
	// Title is the name of the venue for clients, also in Market.venue. Currency is the unit of the venue's money, or nil if it is unknown.
	Title    string
	Currency *string
	// Scope returns the value of the field Scope of an account's messages.Topic. The result depends on the client's credentials, so
	// that clients with different credentials do not share a topic.
	Scope func(ctx context.Context, a market.Address) string
	// Can returns nil if the venue serves an endpoint, or an UNSUPPORTED error with the reason. If Can is nil, the venue serves all
	// endpoints.
	Can func(endpoint upstream.Endpoint) error
	// CashError is the UNSUPPORTED error of fields that need an account's cash. It is nil if the venue's balances contain cash.
	CashError error
	// MarketID converts the id of a market into the form that the venue's data have. If it is nil, there is only one form.
	MarketID func(id string) string
	// PublicAccounts reports that clients need no credentials to read an account.
	PublicAccounts bool
}

// Each of these types resolves the fields of one schema type. The methods of Resolver below do not compile if the resolver of a
// field is missing.
type (
	balanceResolver          struct{ *Resolver }
	eventResolver            struct{ *Resolver }
	historyRecordResolver    struct{ *Resolver }
	marketResolver           struct{ *Resolver }
	orderResolver            struct{ *Resolver }
	portfolioSummaryResolver struct{ *Resolver }
	positionResolver         struct{ *Resolver }
	queryResolver            struct{ *Resolver }
	questionResolver         struct{ *Resolver }
	questionLegResolver      struct{ *Resolver }
	subscriptionResolver     struct{ *Resolver }
	tokenResolver            struct{ *Resolver }
	tradeResolver            struct{ *Resolver }
	userResolver             struct{ *Resolver }
)

// Balance implements graph.ResolverRoot.
func (r *Resolver) Balance() graph.BalanceResolver { return &balanceResolver{r} }

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

// Question implements graph.ResolverRoot.
func (r *Resolver) Question() graph.QuestionResolver { return &questionResolver{r} }

// QuestionLeg implements graph.ResolverRoot.
func (r *Resolver) QuestionLeg() graph.QuestionLegResolver { return &questionLegResolver{r} }

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
