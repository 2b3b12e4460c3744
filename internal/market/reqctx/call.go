package reqctx

import (
	"context"
	"time"

	"oddsgraph/internal/market"
)

// Call is what an upstream call knows of its waiters. Priority and Deadline may rise while the call waits for admission,
// because more waiters can join.
type Call interface {
	// Priority is the greatest priority of the waiters.
	Priority() Priority
	// Deadline is the latest deadline of the waiters. ok is false if a waiter has no deadline.
	Deadline() (t time.Time, ok bool)
	// Trace returns the trace context of the next HTTP call, or zero if it is not traced.
	Trace() TraceContext
	// NoteCall records an HTTP call that has ended.
	NoteCall(c UpstreamCall)
}

type callKey struct{}

// WithCall returns a context for one upstream call.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallFrom returns the upstream call of ctx. ok is false if ctx belongs to none.
func CallFrom(ctx context.Context) (c Call, ok bool) {
	c, ok = ctx.Value(callKey{}).(Call)
	return c, ok
}

// UpstreamCall is one HTTP call to the venue.
type UpstreamCall struct {
	// Endpoint is the last segment of the path, Keys the number of requested ids.
	Endpoint string
	Keys     int
	// Status is 0 if no answer came. Outcome is OutcomeOK, an error code or CallCancelled.
	Status  int
	Outcome string
	Started time.Time
	// Waited is the time before Started that the call waited for the budget or for other calls. Elapsed is its duration.
	Waited, Elapsed time.Duration
	// Trace is the trace context of the call, or zero if it is not traced.
	Trace TraceContext
	// Age is how old the answer may be; zero for a failed call.
	Age market.Age
}

// CallCancelled is the outcome of an HTTP call that lost its last waiter.
const CallCancelled = "CANCELLED"

// Batch is one read of the venue. It answers keys of one or several operations with one HTTP call or more.
type Batch struct {
	// Serial is unique.
	Serial   uint64
	Kind     Kind
	Priority Priority
	// Keys is the number of all keys, Own the number of keys that the operation waits for.
	Keys, Own int
	// Formed is when the first key came, Admitted when the budget admitted the batch, Left when the batch was sent, Ended when
	// all keys were answered. A step that was not reached has the zero time.
	Formed, Admitted, Left, Ended time.Time
	Calls                         []UpstreamCall
	// Outcome is OutcomeOK or the error code of the whole batch.
	Outcome string
}

// Endpoint is a REST endpoint of the venue, together with the parameter that names the objects.
type Endpoint uint8

// The endpoints.
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

var endpointNames = [...]string{
	"prices", "spreads", "orderbook", "price-history", "market-search", "market-details", "market-details", "market-details",
	"balance", "positions", "orders", "trades", "history",
}

// String returns the last segment of the endpoint's path, which errors, the log and metrics show.
func (e Endpoint) String() string { return endpointNames[e] }

// User reports whether the endpoint serves data of one account and needs credentials.
func (e Endpoint) User() bool { return e >= EndpointBalance }
