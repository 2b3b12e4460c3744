package upstream

import (
	"context"
	"time"

	"oddsgraph/internal/market"
)

// Priority orders the calls that wait in the rate limiter's queue. Calls with a greater priority are sent first.
type Priority uint8

// The priorities, lowest first. PriorityRefresh is the lowest, because no client waits for a refresh of stale data.
const (
	PriorityRefresh Priority = iota
	PriorityHistory
	PrioritySearch
	PriorityMarkets
	PriorityBooks
	PriorityPrices
	PriorityUser
	// Priorities is the number of priorities.
	Priorities = iota
)

var priorityNames = [Priorities]string{"refresh", "history", "search", "markets", "books", "prices", "user"}

// String returns the name that metrics show.
func (p Priority) String() string { return priorityNames[p] }

// Permit admits the HTTP calls of one read of the venue. It is safe for concurrent use.
type Permit interface {
	// AdmitCall waits until one more HTTP call may be made. The first HTTP call of a read usually need not wait, because the rate
	// limiter counted the call when it admitted the read. A further call may wait in the queue. AdmitCall returns an error if ctx ends
	// first. It returns an error with CodeRateLimited as soon as it expects that all operations that wait for the read will have
	// timed out before the call is sent.
	AdmitCall(ctx context.Context) error
	// Answered reports what a response says about the rate limit.
	Answered(a Answer)
}

// Answer is what a response of the venue says about its rate limit.
type Answer struct {
	Endpoint Endpoint
	// Served is true if the venue has accepted the call: the status is below 500, but not 429.
	Served bool
	// Refused is true if the venue refused the call because of its rate limit, with HTTP status 429. RetryAfter is the time that the
	// venue asks the client to wait. It is 0 if the venue names no time.
	Refused    bool
	RetryAfter time.Duration
	// Limit and Remaining are the allowed and the remaining calls of a window, and Reset is the time when the window is reset. A
	// missing number is negative, and a missing time is zero.
	Limit, Remaining int
	Reset            time.Time
}

// CallRequest describes a read of the venue to the rate limiter.
type CallRequest struct {
	// Scope is a keyed hash of the read's credentials. It is empty for public data.
	Scope    string
	Priority Priority
	// Endpoint is the endpoint that the read calls first. Some venues have a separate limit for some of their endpoints, and a venue may
	// refuse the calls of one endpoint.
	Endpoint Endpoint
	// Caller is the name of the client. The rate limiter counts the calls of the read for this client.
	Caller string
	// Deadline is the time when the last operation stops waiting for the read. It is zero if an operation has no deadline. A read
	// whose turn is not before Deadline is refused.
	Deadline time.Time
}

// Reservation represents a read that waits in the rate limiter's queue. Once the read is admitted, the Reservation is its Permit.
// A Reservation is safe for concurrent use.
type Reservation interface {
	Permit
	// Decided returns a channel that is closed when the read is admitted or refused.
	Decided() <-chan struct{}
	// Err returns why the read was refused, usually an error with CodeRateLimited. It returns nil while the read waits and after the
	// read was admitted.
	Err() error
	// Late returns an error with CodeRateLimited for an operation whose deadline is not after the turn of the read. The turn is the
	// time when the read may be admitted; reads that come later with a greater priority may delay it. Late returns nil if the deadline
	// is zero, if the read does not wait, or if its priority is PriorityRefresh.
	Late(deadline time.Time) error
	// Join adds another operation to the read. The reservation gets the later of both deadlines and the greater of both
	// priorities. If the read still waits, the rate limiter counts the read's calls for the client that has used fewer calls: either
	// r.Caller, or the client for which the rate limiter counted them before.
	Join(r CallRequest)
	// Release ends the read or its wait. The rate limiter no longer counts calls that were admitted but not made. The parameter
	// accepted reports that the venue accepted the credentials.
	Release(accepted bool)
}

// RateLimited returns the error of a read that would be admitted after the given wait. Its RetryAfter is at least 1 ms.
func RateLimited(wait time.Duration) *market.Error {
	wait = max(wait, time.Millisecond)
	e := market.Errorf(market.CodeRateLimited, "the venue's request budget is used up; try again in %s", wait.Round(100*time.Millisecond))
	e.RetryAfter = wait
	return e
}

// Admit waits until a call to an endpoint may be made, and passes to read what the call needs. It returns the error of read, or the
// reason why there is no call.
type Admit func(ctx context.Context, e Endpoint, read func(ctx context.Context, call Call) error) error
