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

// Permit is the admission of one read of the venue, which may take several HTTP calls. It is safe for concurrent use.
type Permit interface {
	// AdmitCall waits until one more HTTP call may be made. The calls that were foreseen are admitted with the read; each
	// call beyond them waits for its turn in the venue's budget. It fails with CodeRateLimited, at once, where the turn
	// would come after the deadline of everybody who waits for the read, and with ctx.
	AdmitCall(ctx context.Context) error
	// Observe tells what an answer said about the venue's limit. A negative number is one that it did not say, the zero
	// time too.
	Observe(limit, remaining int, reset time.Time)
	// Throttled tells that the venue refused a call for its rate and wants none before the given time.
	Throttled(until time.Time)
}

// Want is what a read asks of the venue's budget.
type Want struct {
	// Scope is "" for public data, else a keyed hash of the credentials that the read is made with.
	Scope    string
	Priority Priority
	// Caller is who asks, see WithCaller.
	Caller string
	// Deadline is how long somebody waits for the read; the zero time is without limit.
	Deadline time.Time
	// Takes is how long the read lasts once it was admitted, so how long before Deadline it has to be.
	Takes time.Duration
}

// Ticket is the place of a read in the queue for the venue's budget and, once admitted, its Permit. It is safe for
// concurrent use.
type Ticket interface {
	Permit
	// Decided is closed when the read was admitted or refused.
	Decided() <-chan struct{}
	// Err says why the read was refused, with CodeRateLimited; nil when it was admitted or that is not decided.
	Err() error
	// Turn is the earliest time at which the read will be admitted, as far as the log of calls and the queue before it
	// tell; the zero time when it waits no more.
	Turn() time.Time
	// Raise takes in one more who waits for the read. Priority and Deadline become the greater ones; the read counts
	// for the caller who has had least.
	Raise(w Want)
	// Release ends the read, or its wait. accepted tells that the venue took the credentials. Calls that were not made are
	// given back.
	Release(accepted bool)
}

// RateLimited returns the error of a read whose turn in the venue's budget comes only after a wait.
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
// further page, each single call that replaces a list, and each retry. Calls that were planned when the read was admitted do
// not wait. AdmitCall fails with CodeRateLimited if the call would be too late, and when ctx ends. If ctx has no Permit, it
// returns nil.
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
