package httpapi

import (
	"context"
	"maps"
	"net/http"
)

// request is a request with who sent it and what he accepts, in one piece.
type request struct {
	*http.Request
	// Header is that of Request without what says who asks: what comes after may log or forward headers.
	Header http.Header
	accepted
	asking
}

// Context returns the context of the request, which knows who asks. It is not yet one to read in.
func (r *request) Context() context.Context { return &r.asking }

// lasting is Context for what may last longer than the request. It holds on to nothing else of it.
func (r *request) lasting() context.Context {
	who := r.asking
	return &who
}

// said returns the first value of a header. Its name must be in canonical form, of which Header.Get makes sure each time.
func (r *request) said(name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// plain returns the request as others know requests, under a context.
func (r *request) plain(ctx context.Context) *http.Request {
	out := r.Request.WithContext(ctx)
	out.Header = r.Header
	return out
}

// newRequest returns a request of somebody of whom nothing is known yet.
func newRequest(r *http.Request) *request {
	return &request{Request: r, Header: r.Header, accepted: negotiateMedia(r.Header["Accept"]), asking: asking{Context: r.Context()}}
}

// withoutCredentials takes out of the headers what says who asks. Those of the Request stay as they are.
func (r *request) withoutCredentials() {
	r.Header = maps.Clone(r.Header) // whose values nobody changes
	r.Header.Del(CredentialsHeader)
	r.Header.Del(authorization)
}
