package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"
)

// anyOrigin among the configured origins stands for all.
const anyOrigin = "*"

// origins are the pages that may use the service: those of its own host and the configured ones. There is nothing that a
// browser adds to a request by itself and that means anything here, so credentials in the sense of CORS are never allowed.
type origins []string // in lower case

func newOrigins(configured []string) origins {
	o := make(origins, len(configured))
	for i, origin := range configured {
		o[i] = strings.ToLower(origin)
	}
	return o
}

// originAllowed reports whether a page of the request's origin may connect, which browsers leave to the server with
// WebSockets. What isn't a browser sends no origin.
func (o origins) originAllowed(r *http.Request) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	if len(values) > 1 {
		return false
	}
	origin := strings.ToLower(values[0])
	if slices.Contains(o, anyOrigin) || slices.Contains(o, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// handler lets the configured origins' pages call next. Without any only pages of the service's own host can.
func (o origins) handler(next http.Handler) http.Handler {
	if len(o) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: o,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{
			"Accept", "Content-Type", "If-None-Match", "Authorization", CredentialsHeader, CostHeader, ExplainHeader, "X-Request-Id", "Traceparent", "Tracestate",
			"Apollographql-Client-Name", "Apollographql-Client-Version", "Apollo-Require-Preflight", "GraphQL-Require-Preflight", "X-Apollo-Operation-Name",
		},
		ExposedHeaders: []string{"ETag", "Retry-After", "X-Request-Id", "WWW-Authenticate"},
		MaxAge:         7200, // what Chromium keeps it at most
	}).Handler(next)
}
