package request

import (
	"context"
	"sync/atomic"

	"oddsgraph/internal/market"
)

// values describes a client's request. A derived context has its own copy of the values.
type values struct {
	caller       string
	credentials  *market.Credentials
	poll         uint64
	log          *Log
	dependencies *Dependencies
	noPoll       bool
	fresh        bool
	low          bool
}

// valuesContext contains a context and its values, so that the context and the values need only one allocation.
type valuesContext struct {
	context.Context
	values
}

type valuesKey struct{}

func (c *valuesContext) Value(key any) any {
	if key == (valuesKey{}) {
		return &c.values
	}
	return c.Context.Value(key)
}

// derive returns a context with a copy of the values of ctx.
func derive(ctx context.Context) valuesContext { return valuesContext{ctx, *valuesFrom(ctx)} }

var noValues values

// valuesFrom returns the values of ctx, which must not be changed.
func valuesFrom(ctx context.Context) *values {
	if v, ok := ctx.Value(valuesKey{}).(*values); ok {
		return v
	}
	return &noValues
}

// WithCaller returns a context with the client's name: a verified identity, or else the client's IP address. The rate limiter
// counts and limits the calls to the venue by this name, so clients must not be able to choose their name.
func WithCaller(ctx context.Context, caller string) context.Context {
	c := derive(ctx)
	c.caller = caller
	return &c
}

// CallerFrom returns the client's name, or "" if ctx has none.
func CallerFrom(ctx context.Context) string { return valuesFrom(ctx).caller }

// WithCredentials returns a context whose reads of account data use the credentials.
func WithCredentials(ctx context.Context, credentials *market.Credentials) context.Context {
	c := derive(ctx)
	c.credentials = credentials
	return &c
}

// CredentialsFrom returns the client's credentials, or nil for an anonymous client. It also sets Snapshot.Personal for the response
// of ctx, because a response that uses the credentials depends on the client.
func CredentialsFrom(ctx context.Context) *market.Credentials {
	v := valuesFrom(ctx)
	v.dependencies.markPersonal()
	return v.credentials
}

// WithoutPoll returns a context whose reads do not count as polls of a client.
func WithoutPoll(ctx context.Context) context.Context {
	c := derive(ctx)
	c.noPoll = true
	return &c
}

// CountsAsPoll reports whether the reads of ctx count as polls of a client. If clients poll a value often, the service subscribes
// to the value on the venue's stream.
func CountsAsPoll(ctx context.Context) bool { return !valuesFrom(ctx).noPoll }

// polls counts the polls. Its value is the id of the last poll.
var polls atomic.Uint64

// PollFrom returns the id of the poll to which the reads of ctx belong. It returns 0 if each read counts as a separate poll.
func PollFrom(ctx context.Context) uint64 { return valuesFrom(ctx).poll }

// WithFresh returns a context for reads of pages. These reads ignore cached pages and calls in flight, and make a new call to the
// venue.
func WithFresh(ctx context.Context) context.Context {
	c := derive(ctx)
	c.fresh = true
	return &c
}

// WantsFresh reports whether page reads must make a new call to the venue.
func WantsFresh(ctx context.Context) bool { return valuesFrom(ctx).fresh }

// WithLowPriority returns a context whose calls to the venue have the lowest priority.
func WithLowPriority(ctx context.Context) context.Context {
	c := derive(ctx)
	c.low = true
	return &c
}

// HasLowPriority reports whether the calls of ctx have the lowest priority.
func HasLowPriority(ctx context.Context) bool { return valuesFrom(ctx).low }

// LogFrom returns the log of ctx, or nil if ctx has no log.
func LogFrom(ctx context.Context) *Log { return valuesFrom(ctx).log }

// DependenciesFrom returns the Dependencies that collect the reads of ctx. It returns nil if ctx has no Dependencies. All methods
// accept a nil Dependencies.
func DependenciesFrom(ctx context.Context) *Dependencies { return valuesFrom(ctx).dependencies }
