package httpapi

import (
	"context"
	"maps"
	"net/http"

	"oddsgraph/httpapi/content"
	"oddsgraph/internal/request"
)

// httpRequest is an HTTP request with the identity of its sender and the accepted media types.
type httpRequest struct {
	*http.Request
	// Header is the header of Request. identities.fromHeaders removes valid credentials from it, because later code may log or
	// forward Header.
	Header http.Header
	content.Accepted
	client
	ctx request.Context
}

// Context returns the context of the request. It contains the identity. Pass it to identities.reading before a read from the venue.
func (r *httpRequest) Context() context.Context { return &r.ctx }

// connectionContext is like Context, for a connection that lasts longer than the request and has hints. The returned context does not
// keep the request in memory.
func (r *httpRequest) connectionContext(hints connectionHints) context.Context {
	return withClient(r.ctx.Context, &client{r.identity, hints})
}

// header returns the first value of a header. The name must be in canonical form. Unlike Header.Get, header does not convert the
// name to this form.
func (r *httpRequest) header(name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func (r *httpRequest) plain(ctx context.Context) *http.Request {
	out := r.Request.WithContext(ctx)
	out.Header = r.Header
	return out
}

// withoutCredentials removes credentials from Header. It does not change the headers of Request.
func (r *httpRequest) withoutCredentials() {
	r.Header = maps.Clone(r.Header) // a shallow copy is sufficient, because nobody changes the values
	r.Header.Del(CredentialsHeader)
	r.Header.Del(authorization)
}
