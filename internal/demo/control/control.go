// Package control serves a demo venue: its API and its streams behind the proxy of the package faults, and the control endpoints.
package control

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/demo/server"
)

// Venue is a demo venue of one dialect. It serves the API and the streams.
type Venue interface {
	http.Handler
	// Engine returns the markets.
	Engine() *demo.Venue
	// DemoID returns the engine's identifier of a token or a market of the dialect, or the given id if there is none.
	DemoID(id string) string
	Stats() server.Stats
	// Reset zeroes the counts of Stats.
	Reset()
}

// Server is an [http.Handler] that serves a venue.
type Server struct {
	// Faults is the proxy in front of the venue.
	Faults  *faults.Proxy
	venue   Venue // nil for a real venue
	control bool
}

// New returns a server of a venue. control says whether it has the control endpoints.
func New(venue Venue, control bool) *Server {
	return &Server{Faults: faults.New(venue), venue: venue, control: control}
}

// Before returns a server before the real venue at a base URL. Of the control endpoints it has only those that concern faults.
func Before(venue *url.URL, control bool) *Server {
	to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(venue) }}
	return &Server{Faults: faults.New(to), control: control}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, controlPrefix); ok && s.control {
		s.serveControl(name, w, r)
		return
	}
	s.Faults.ServeHTTP(w, r)
}
