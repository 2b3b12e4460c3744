package market

import (
	"context"
	"time"
)

// Priority orders upstream calls when the venue's budget is short; a greater value goes first.
type Priority uint8

// The priorities of upstream calls.
const (
	PriorityHistory Priority = iota
	PrioritySearch
	PriorityMarkets
	PriorityBooks
	PriorityPrices
	PriorityUser
)

// Call is what an upstream call knows of those who wait for it. Both may rise while the call waits to be admitted, when
// another waiter joins.
type Call interface {
	// Priority is the greatest priority of the waiters.
	Priority() Priority
	// Deadline is the latest deadline of the waiters; ok is false when one of them waits without a limit.
	Deadline() (t time.Time, ok bool)
}

type callKey struct{}

// WithCall returns a context for one upstream call.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallFrom returns the call that ctx belongs to; ok is false outside of one.
func CallFrom(ctx context.Context) (c Call, ok bool) {
	c, ok = ctx.Value(callKey{}).(Call)
	return c, ok
}

type quietKey struct{}

// WithoutDemand returns a context whose reads do not count as a client's demand for live values.
func WithoutDemand(ctx context.Context) context.Context {
	return context.WithValue(ctx, quietKey{}, true)
}

// Demands reports whether the reads of ctx count as a client's demand for live values.
func Demands(ctx context.Context) bool { return ctx.Value(quietKey{}) == nil }

// Endpoint is a way of asking the venue: one of its REST endpoints, and what it is asked by.
type Endpoint uint8

// The ways of asking.
const (
	EndpointPrices Endpoint = iota
	EndpointSpreads
	EndpointBook
	EndpointPriceHistory
	EndpointSearch
	EndpointMarketsByID
	EndpointMarketsByToken
	EndpointMarketBySlug
	EndpointBalance
	EndpointPositions
	EndpointOrders
	EndpointTrades
	EndpointHistory
)

// User tells that the endpoint serves the data of one account, as the holder of its credentials sees it.
func (e Endpoint) User() bool { return e >= EndpointBalance }
