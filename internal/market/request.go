package market

import (
	"context"
	"sync/atomic"
)

// request is what reads know of the request that they are made for. A context of one request is derived from that of another
// by a copy.
type request struct {
	caller      string
	credentials *Credentials
	demand      uint64
	journal     *Journal
	recorder    *Recorder
	quiet       bool
	fresh       bool
}

// requestContext is a context with its request, in one piece.
type requestContext struct {
	context.Context
	request
}

type requestKey struct{}

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return &c.request
	}
	return c.Context.Value(key)
}

// derive returns a context with a copy of the request of ctx.
func derive(ctx context.Context) requestContext { return requestContext{ctx, *requestFrom(ctx)} }

var noRequest request

// requestFrom returns the request of ctx, which must not be changed.
func requestFrom(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return &noRequest
}

// WithCaller returns a context that names who asks: a proven identity, else the client's address. It must be nothing that
// a client can choose at will, since shares of the venue's budget are counted by it.
func WithCaller(ctx context.Context, caller string) context.Context {
	c := derive(ctx)
	c.caller = caller
	return &c
}

// CallerFrom returns who asks, or "" where nobody said.
func CallerFrom(ctx context.Context) string { return requestFrom(ctx).caller }

// WithCredentials returns a context whose reads of user data are made as the holder of credentials.
func WithCredentials(ctx context.Context, credentials *Credentials) context.Context {
	c := derive(ctx)
	c.credentials = credentials
	return &c
}

// CredentialsFrom returns the caller's credentials, or nil when the caller is anonymous. The recorder of ctx is told that
// somebody looked: what a response shows can depend on its caller in no other way.
func CredentialsFrom(ctx context.Context) *Credentials {
	r := requestFrom(ctx)
	r.recorder.identify()
	return r.credentials
}

// WithoutDemand returns a context whose reads do not count as a client's demand for live values.
func WithoutDemand(ctx context.Context) context.Context {
	c := derive(ctx)
	c.quiet = true
	return &c
}

// Demands reports whether the reads of ctx count as a client's demand for live values.
func Demands(ctx context.Context) bool { return !requestFrom(ctx).quiet }

// demands numbers what responses ask for.
var demands atomic.Uint64

// DemandFrom returns the number of the demand that the reads of ctx are part of, 0 for one of their own each.
func DemandFrom(ctx context.Context) uint64 { return requestFrom(ctx).demand }

// WithFresh returns a context whose reads of pages ask the venue by a call that leaves from now on, whatever is remembered or under
// way.
func WithFresh(ctx context.Context) context.Context {
	c := derive(ctx)
	c.fresh = true
	return &c
}

// WantsFresh reports whether reads are to be made of the venue now.
func WantsFresh(ctx context.Context) bool { return requestFrom(ctx).fresh }

// JournalFrom returns the journal of ctx, or nil, which ignores everything.
func JournalFrom(ctx context.Context) *Journal { return requestFrom(ctx).journal }

// RecorderFrom returns the recorder of ctx, or nil, which ignores everything.
func RecorderFrom(ctx context.Context) *Recorder { return requestFrom(ctx).recorder }
