// Package control serves a demo venue: its API and its streams behind the proxy of the package faults, and the control endpoints.
package control

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
)

// Venue is a demo venue of one dialect.
type Venue struct {
	// Handler serves the API and the streams.
	Handler http.Handler
	// Engine has the markets.
	Engine *demo.Venue
	// DemoID returns the engine's identifier of a token or a market of the dialect. Nil means that they are the same.
	DemoID func(id string) string
	// Stats returns the counts, which have a JSON form. Reset zeroes them.
	Stats func() any
	Reset func()
}

// Server is an [http.Handler] that serves a venue.
type Server struct {
	// Faults is the proxy in front of the venue.
	Faults  *faults.Proxy
	venue   Venue
	control bool
}

// New returns a server of a venue. control says whether it has the control endpoints.
func New(venue Venue, control bool) *Server {
	return &Server{Faults: faults.New(venue.Handler), venue: venue, control: control}
}

// Before returns a server before the real venue at a base URL. Of the control endpoints it has only those that concern faults.
func Before(venue *url.URL, control bool) *Server {
	to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(venue) }}
	return New(Venue{Handler: to}, control)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, controlPrefix); ok && s.control {
		s.serveControl(name, w, r)
		return
	}
	s.Faults.ServeHTTP(w, r)
}
