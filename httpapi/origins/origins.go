// Package origins checks the origins of browsers, and adds CORS for those that are allowed.
package origins

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/cors"
)

const anyOrigin = "*"

// maxOrigin bounds the length in bytes of a rejected origin in the text of an error.
const maxOrigin = 200

// Origins are the allowed origins: the origin of the service and the configured origins. CORS credentials are never allowed,
// because the service ignores what a browser adds to a request by itself, such as cookies.
type Origins struct {
	configured []string // in lower case
	// loopback allows pages from this machine, with any port.
	loopback bool
	// headers are request headers that pages may send in addition to requestHeaders; * allows all headers.
	headers []string
}

// requestHeaders are the headers that pages of allowed origins may send. In a browser, one header that is not allowed blocks the
// request. So the list has headers that the service ignores, but that common clients and tools add: W3C's and Sentry's trace headers,
// and the names that Apollo's clients and GraphQL Hive give their requests.
var requestHeaders = []string{
	"Accept", "Content-Type", "If-None-Match", "Authorization", "X-Request-Id",
	"Traceparent", "Tracestate", "Baggage", "Sentry-Trace",
	"Apollographql-Client-Name", "Apollographql-Client-Version", "Apollo-Require-Preflight", "GraphQL-Require-Preflight",
	"X-Apollo-Operation-Name", "X-Apollo-Operation-Id", "X-Apollo-Operation-Type", "GraphQL-Client-Name", "GraphQL-Client-Version",
}

// New returns the origin of the service and the configured origins; * allows all. If loopback is true, pages from this machine are
// allowed too. Pages may send headers in addition to the usual ones.
func New(configured []string, loopback bool, headers []string) *Origins {
	o := &Origins{make([]string, len(configured)), loopback, headers}
	for i, origin := range configured {
		o.configured[i] = strings.ToLower(origin)
	}
	return o
}

// Check returns an error if a request has an origin that is not allowed, or several origins. Browsers do not check the origin of
// WebSockets themselves. Clients that are not browsers send no origin.
func (o *Origins) Check(r *http.Request) error {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return nil
	}
	if len(values) > 1 {
		return errors.New("the request has several origins")
	}
	if o.allowed(values[0]) {
		return nil
	}
	if u, err := url.Parse(values[0]); err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
		return nil
	}
	return fmt.Errorf("origin %s is not allowed; allow it with --origins (ODDSGRAPH_ORIGINS)", strconv.QuoteToASCII(values[0][:min(len(values[0]), maxOrigin)]))
}

// allowed reports whether an origin is configured. If loopback is set, it also allows origins of this machine.
func (o *Origins) allowed(origin string) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(o.configured, anyOrigin) || slices.Contains(o.configured, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return o.loopback && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" &&
		slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// Handler adds CORS for the allowed origins to the handler next. If only the service's own origin is allowed, it returns next
// unchanged.
func (o *Origins) Handler(next http.Handler) http.Handler {
	if len(o.configured) == 0 && !o.loopback {
		return next
	}
	options := cors.Options{
		AllowedOrigins: o.configured,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: slices.Concat(requestHeaders, o.headers),
		ExposedHeaders: []string{"ETag", "Retry-After", "X-Request-Id", "WWW-Authenticate"},
		MaxAge:         7200, // Chromium's maximum
	}
	if o.loopback && !slices.Contains(o.configured, anyOrigin) {
		options.AllowOriginFunc = o.allowed // package cors then ignores AllowedOrigins
	}
	return cors.New(options).Handler(next)
}
