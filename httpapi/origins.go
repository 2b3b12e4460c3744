package httpapi

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

// anyOrigin among the configured origins stands for all.
const anyOrigin = "*"

// maxOrigin bounds what is repeated of an origin that is refused, in bytes.
const maxOrigin = 200

// origins are the pages that may use the service: those of its own host and the configured ones. There is nothing that a
// browser adds to a request by itself and that means anything here, so credentials in the sense of CORS are never allowed.
type origins struct {
	configured []string // in lower case
	// loopback allows pages of this machine, at any port.
	loopback bool
}

func newOrigins(configured []string, loopback bool) *origins {
	o := &origins{make([]string, len(configured)), loopback}
	for i, origin := range configured {
		o.configured[i] = strings.ToLower(origin)
	}
	return o
}

// check returns an error unless a page of the request's origin may connect, which browsers leave to the server with
// WebSockets. What isn't a browser sends no origin.
func (o *origins) check(r *http.Request) error {
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

// allowed reports whether an origin is configured, or one of this machine's if these are allowed.
func (o *origins) allowed(origin string) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(o.configured, anyOrigin) || slices.Contains(o.configured, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return o.loopback && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" &&
		slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// handler lets the configured origins' pages call next. Without any only pages of the service's own host can.
func (o *origins) handler(next http.Handler) http.Handler {
	if len(o.configured) == 0 && !o.loopback {
		return next
	}
	options := cors.Options{
		AllowedOrigins: o.configured,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost},
		AllowedHeaders: []string{
			"Accept", "Content-Type", "If-None-Match", "Authorization", CredentialsHeader, CostHeader, ExplainHeader, "X-Request-Id", "Traceparent", "Tracestate",
			"Apollographql-Client-Name", "Apollographql-Client-Version", "Apollo-Require-Preflight", "GraphQL-Require-Preflight", "X-Apollo-Operation-Name",
		},
		ExposedHeaders: []string{"ETag", "Retry-After", "X-Request-Id", "WWW-Authenticate"},
		MaxAge:         7200, // what Chromium keeps it at most
	}
	if o.loopback && !slices.Contains(o.configured, anyOrigin) {
		options.AllowOriginFunc = o.allowed // in place of AllowedOrigins
	}
	return cors.New(options).Handler(next)
}
