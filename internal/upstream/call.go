package upstream

import (
	"context"
	"time"

	"oddsgraph/internal/market"
)

// Call is a read of the venue, which may take several HTTP calls. The zero Call is a read of public data that is admitted at once and
// that nobody waits for.
type Call struct {
	// Permit admits the HTTP calls. Without a Permit, all are admitted at once.
	Permit Permit
	// Credentials are the credentials for account data, or nil.
	Credentials *market.Credentials
	// Waiters describes the operations that wait for the read. It may be nil.
	Waiters Waiters
}

// Waiters describes the operations that wait for a read. Priority and Deadline may increase while the read waits for the rate limiter,
// because more operations can join.
type Waiters interface {
	// Priority returns the greatest priority of the operations.
	Priority() Priority
	// Deadline returns the latest deadline of the operations. ok is false if an operation has no deadline.
	Deadline() (t time.Time, ok bool)
	// Trace returns the trace context of one of the operations. It returns the zero value if no operation is traced.
	Trace() TraceContext
	// NoteCall records an ended HTTP call of the read.
	NoteCall(c HTTPCall)
}

// Admit waits until the read may make one more HTTP call; see Permit.AdmitCall. Call it immediately before every HTTP call, including
// further pages, retries, and separate calls for the ids of a list.
func (c Call) Admit(ctx context.Context) error {
	if c.Permit == nil {
		return nil
	}
	return c.Permit.AdmitCall(ctx)
}

// Answered passes what a response says about the rate limit to the Permit.
func (c Call) Answered(a Answer) {
	if c.Permit != nil {
		c.Permit.Answered(a)
	}
}

// HTTPCall is one HTTP call to the venue.
type HTTPCall struct {
	// Endpoint is the name of the endpoint; see Endpoint.String.
	Endpoint string
	// Keys is the number of ids in the request.
	Keys int
	// Status is 0 if there was no response. Outcome is OutcomeOK, an error code or CallCancelled.
	Status  int
	Outcome string
	Started time.Time
	// Waited is how long the call waited before Started, for the rate limiter or for other calls. Elapsed is the time from Started to
	// the end of the call.
	Waited, Elapsed time.Duration
	// Trace is the trace context of the operation that is the parent of the call. It is zero if the call is not traced.
	Trace TraceContext
	// Date is the time of the venue's clock when it sent the response, rounded down to seconds. It is zero if it is unknown, or if the
	// response comes from an HTTP cache.
	Date time.Time
}

// OutcomeOK is the outcome of a call or a batch without an error.
const OutcomeOK = "ok"

// CallCancelled is the outcome of an HTTP call that was cancelled because no operation waited for it any more.
const CallCancelled = "CANCELLED"

// Batch describes one read of the venue for the Log of an operation. The read fetches keys, such as token ids, for one or several
// operations with one or more HTTP calls.
type Batch struct {
	// Serial is unique.
	Serial uint64
	// Venue is the name of the venue in a process with several venues. Otherwise, it is empty.
	Venue    string
	Kind     Kind
	Priority Priority
	// Keys is the number of all keys. Own is the number of keys that the operation waits for.
	Keys, Own int
	// Formed is the time when the first key was requested, and Admitted the time when the rate limiter admitted the batch. Left is the
	// time when the batch was sent, and Ended the time when all keys had a result. A time is zero before its event.
	Formed, Admitted, Left, Ended time.Time
	Calls                         []HTTPCall
	// Outcome is OutcomeOK, or the code of an error if no key has a value.
	Outcome string
}

// Endpoint is a REST endpoint of the venue. Endpoints with the same name differ in their parameters, such as a market id or a
// slug.
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
	EndpointEvent
	EndpointEventSearch
	EndpointCategories
	EndpointMarketTrades
	EndpointBalance
	EndpointPositions
	EndpointOrders
	EndpointTrades
	EndpointHistory
	// Endpoints is the number of endpoints.
	Endpoints = iota
)

var endpointNames = [...]string{
	"prices", "spreads", "orderbook", "price-history", "market-search", "market-details", "market-details", "market-details", "event",
	"event-search", "categories", "market-trades",
	"balance", "positions", "orders", "trades", "history",
}

// String returns the endpoint's name, which errors, the log and metrics show.
func (e Endpoint) String() string { return endpointNames[e] }

// User reports whether the endpoint serves data of one account and needs credentials.
func (e Endpoint) User() bool { return e >= EndpointBalance }

// Result is what the venue returned for one of several keys of a call: a value or an error.
type Result[T any] struct {
	Value T
	Err   error
}
