package reqctx

import (
	"context"
	"time"

	"oddsgraph/internal/market"
)

// Priority orders the calls that wait for the rate limit. Calls with a greater value are sent first.
type Priority uint8

// The priorities. No client waits for a refresh of stale data, so PriorityRefresh is the lowest.
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
	// AdmitCall waits until one more HTTP call may be made. For the first HTTP call of a read it returns at once, because the
	// admission of the read counted that call. Each further call waits in the queue. AdmitCall fails when ctx ends. It fails at
	// once with CodeRateLimited if the call would be sent after the deadlines of all callers.
	AdmitCall(ctx context.Context) error
	// Observe reports the rate-limit headers of a response. A missing header is a negative number or the zero time.
	Observe(limit, remaining int, reset time.Time)
	// Throttled reports that the venue refused a call with 429. The venue accepts no calls until the given time.
	Throttled(until time.Time)
}

// CallRequest describes a read of the venue to the rate limiter.
type CallRequest struct {
	// Scope is a keyed hash of the read's credentials. It is empty for public data.
	Scope    string
	Priority Priority
	// Endpoint is the endpoint that the read calls first. It selects the limit of a family of endpoints.
	Endpoint Endpoint
	// Caller is the client to whose share the read is charged; see WithCaller.
	Caller string
	// Deadline is the time at which the last caller stops waiting. The zero time means that there is no deadline.
	Deadline time.Time
	// Takes is the expected duration of the read. A read that would be sent later than Deadline minus Takes is refused.
	Takes time.Duration
}

// Reservation represents a read that waits in the rate limiter's queue. After the admission, it is the Permit of the read. It is
// safe for concurrent use.
type Reservation interface {
	Permit
	// Decided is closed when the read is admitted or refused.
	Decided() <-chan struct{}
	// Err returns why the read was refused, with CodeRateLimited. It is nil before the decision and after an admission.
	Err() error
	// ReadyAt returns the earliest time at which the read can be admitted. The time depends on the recorded calls and on earlier
	// reads in the queue. ReadyAt returns the zero time if the read does not wait.
	ReadyAt() time.Time
	// Join adds a caller. From then on the reservation has the greater of both priorities and the later of both deadlines. The read
	// is charged to the caller with the fewest calls.
	Join(r CallRequest)
	// Release ends the read or its wait. Admitted calls that were not made are returned to the rate limit. accepted reports that
	// the venue accepted the credentials.
	Release(accepted bool)
}

// RateLimited returns the error of a read that would be admitted only after wait.
func RateLimited(wait time.Duration) *market.Error {
	wait = max(wait, time.Millisecond)
	e := market.Errorf(market.CodeRateLimited, "the venue's request budget is used up; try again in %s", wait.Round(100*time.Millisecond))
	e.RetryAfter = wait
	return e
}

type permitKey struct{}

// WithPermit returns a context whose HTTP calls p admits.
func WithPermit(ctx context.Context, p Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// AdmitCall waits until the read of ctx may make one more HTTP call. Call it immediately before every HTTP call. This includes
// further pages, retries, and separate calls for the ids of a list. The first call of a read does not wait. AdmitCall fails when
// ctx ends, and with CodeRateLimited if the call would be too late. It returns nil if ctx has no Permit.
func AdmitCall(ctx context.Context) error {
	if p, ok := ctx.Value(permitKey{}).(Permit); ok {
		return p.AdmitCall(ctx)
	}
	return nil
}

// ObserveLimit reports the rate-limit headers of a response to the Permit of ctx, if ctx has one: the allowed calls in a
// window, the remaining calls, and the time at which the window is reset. A missing header is a negative number or the zero
// time.
func ObserveLimit(ctx context.Context, limit, remaining int, reset time.Time) {
	if p, ok := ctx.Value(permitKey{}).(Permit); ok {
		p.Observe(limit, remaining, reset)
	}
}

// ReportThrottled reports to the Permit of ctx, if ctx has one, that the venue refused a call with 429 and accepts no call
// before the given time.
func ReportThrottled(ctx context.Context, until time.Time) {
	if p, ok := ctx.Value(permitKey{}).(Permit); ok {
		p.Throttled(until)
	}
}
