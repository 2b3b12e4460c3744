package request

import (
	"context"
	"sync/atomic"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// Request is what the service knows about a client's request. All contexts of the request contain it under one key. A Request in a
// context must not be changed: With returns a context with a changed copy. What belongs to one call to the venue, such as its permit,
// is not here; see package upstream. Work that outlives the request copies what it needs of it.
type Request struct {
	// ID is the id of the request in log lines. Line is nil if the request has no log line of its own.
	ID   string
	Line *Line
	// Client is what package httpapi knows about the client.
	Client any
	// Caller is the client's name: a verified identity, or else the client's IP address. The rate limiter counts and limits the calls
	// to the venue by this name, so clients must not be able to choose their name.
	Caller string
	// credentials is nil for an anonymous client; see CredentialsFrom.
	credentials *market.Credentials
	// Log is the log of the operation, or nil.
	Log *Log
	// Subscription is what package resolvers knows about the subscription that begins.
	Subscription any

	// Loaders contains the loaders of the response. Only package loaders uses it.
	Loaders any
	// Dependencies collects the reads of the response, or is nil. All methods accept a nil Dependencies.
	Dependencies *Dependencies
	// Poll is the id of the poll to which the reads belong. If it is 0, each read counts as a separate poll.
	Poll uint64

	// NoPoll reports that the reads do not count as polls of a client. If clients poll a value often, the service subscribes to the
	// value on the venue's stream.
	NoPoll bool
	// Fresh reports that reads of pages ignore cached pages and calls in flight, and make a new call to the venue.
	Fresh bool
	// LowPriority reports that the calls to the venue have the lowest priority.
	LowPriority bool
}

// Line is what the log line of an HTTP request says besides the request.
type Line struct {
	// Logged is true if the request needs no line, because an operation has logged it.
	Logged atomic.Bool
	// Refusal contains more attributes of a refused request.
	Refusal []any
}

// Context is a context with a Request. Types embed it so that both need only one allocation. Derive must be called first.
type Context struct {
	context.Context
	Request
}

type contextKey struct{}

// Value implements context.Context.
func (c *Context) Value(key any) any {
	if key == (contextKey{}) {
		return &c.Request
	}
	return c.Context.Value(key)
}

// Derive derives the context from parent, with a copy of its Request.
func (c *Context) Derive(parent context.Context) { c.Context, c.Request = parent, *From(parent) }

// With returns a context with a copy of the Request of ctx, which change has changed.
func With(ctx context.Context, change func(*Request)) context.Context {
	c := &Context{}
	c.Derive(ctx)
	change(&c.Request)
	return c
}

var none Request

// From returns the Request of ctx, which must not be changed. It returns the zero Request if ctx has none.
func From(ctx context.Context) *Request {
	if r, ok := ctx.Value(contextKey{}).(*Request); ok {
		return r
	}
	return &none
}

// Identify sets the client's name and credentials, before the Request is in a context.
func (r *Request) Identify(caller string, c *market.Credentials) { r.Caller, r.credentials = caller, c }

// Record sets the log, before the Request is in a context. It must be called once for each log, before the first read.
func (r *Request) Record(l *Log) {
	r.Log = l
	if l != nil {
		l.reads = &[upstream.Kinds]counts{}
	}
}

// Respond makes the context that of one response, which d describes. All reads of the same token in this context count as one poll.
func (r *Request) Respond(d *Dependencies) { r.Dependencies, r.Poll = d, polls.Add(1) }

// polls counts the polls. Its value is the id of the last poll.
var polls atomic.Uint64

// CredentialsFrom returns the client's credentials, or nil for an anonymous client. It also sets Snapshot.Personal for the response
// of ctx, because a response that uses the credentials depends on the client.
func CredentialsFrom(ctx context.Context) *market.Credentials {
	r := From(ctx)
	r.Dependencies.markPersonal()
	return r.credentials
}

// WithCredentials returns a context whose reads of account data use the credentials.
func WithCredentials(ctx context.Context, credentials *market.Credentials) context.Context {
	return With(ctx, func(r *Request) { r.credentials = credentials })
}

// WithLog returns a context whose reads are counted in l.
func WithLog(ctx context.Context, l *Log) context.Context {
	return With(ctx, func(r *Request) { r.Record(l) })
}

// WithoutPoll returns a context whose reads do not count as polls of a client.
func WithoutPoll(ctx context.Context) context.Context {
	return With(ctx, func(r *Request) { r.NoPoll = true })
}

// WithFresh returns a context for reads of pages that make a new call to the venue.
func WithFresh(ctx context.Context) context.Context {
	return With(ctx, func(r *Request) { r.Fresh = true })
}
