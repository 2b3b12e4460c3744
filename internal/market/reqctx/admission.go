package reqctx

import (
	"context"
	"time"

	"oddsgraph/internal/market"
)

// Priority orders upstream calls that wait for the venue's budget. The greater value goes first.
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
	// AdmitCall waits until one more HTTP call may be made. The call that the read was admitted for does not wait; each
	// further call waits in the queue. AdmitCall fails at once with CodeRateLimited if the call would leave after the
	// deadline of every caller, and it fails when ctx ends.
	AdmitCall(ctx context.Context) error
	// Observe reports the rate-limit headers of an answer. A missing header is a negative number or the zero time.
	Observe(limit, remaining int, reset time.Time)
	// Throttled reports that the venue refused a call with 429 and accepts none before until.
	Throttled(until time.Time)
}

// CallRequest describes a read of the venue to the rate limiter.
type CallRequest struct {
	// Scope is "" for public data, otherwise a keyed hash of the read's credentials.
	Scope    string
	Priority Priority
	// Caller is the client that the read counts for; see WithCaller.
	Caller string
	// Deadline is when the last caller stops waiting. The zero time means never.
	Deadline time.Time
	// Takes is the expected duration of the read. The read must leave that long before Deadline.
	Takes time.Duration
}

// Reservation is the place of a read in the rate limiter's queue. Once admitted, it is the read's Permit. It is safe for
// concurrent use.
type Reservation interface {
	Permit
	// Decided is closed when the read is admitted or refused.
	Decided() <-chan struct{}
	// Err returns why the read was refused, with CodeRateLimited. It is nil before the decision and after an admission.
	Err() error
	// ReadyAt is the earliest time at which the read can be admitted, by the recorded calls and the queue ahead of it. It is
	// the zero time if the read does not wait.
	ReadyAt() time.Time
	// Join adds a caller. The reservation takes the greater priority and the later deadline. The read counts for the caller
	// with the fewest calls.
	Join(r CallRequest)
	// Release ends the read or its wait, and gives back calls that were not made. accepted reports that the venue accepted
	// the credentials.
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

// AdmitCall waits until ctx's read may make one more HTTP call. Call it right before every HTTP call: the first one, each
// further page, each single call that replaces a list, and each retry. The call that the read was admitted for does not wait.
// AdmitCall fails with CodeRateLimited if the call would be too late, and when ctx ends. If ctx has no Permit, it returns nil.
func AdmitCall(ctx context.Context) error {
	if p, ok := ctx.Value(permitKey{}).(Permit); ok {
		return p.AdmitCall(ctx)
	}
	return nil
}

// ObserveLimit reports the rate-limit headers of an answer to the Permit of ctx, if it has one: the allowed calls in a window,
// the remaining calls, and when the window is reset. A missing header is a negative number or the zero time.
func ObserveLimit(ctx context.Context, limit, remaining int, reset time.Time) {
	if p, ok := ctx.Value(permitKey{}).(Permit); ok {
		p.Observe(limit, remaining, reset)
	}
}

// ReportThrottled tells the Permit of ctx, if it has one, that the venue refused a call with 429 and accepts none before the
// given time.
func ReportThrottled(ctx context.Context, until time.Time) {
	if p, ok := ctx.Value(permitKey{}).(Permit); ok {
		p.Throttled(until)
	}
}
