package app

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"oddsgraph/internal/config"
)

// demoControlPath is the path at which the service's own pages control the embedded demo venue. A GET request returns whether the
// pages are allowed to control the venue.
const demoControlPath = "/demo/control"

// demoActions are the names of the control endpoints that the service serves under demoControlPath.
var demoActions = []string{"faults", "market", "reset", "restart"}

// withDemoControl returns a handler that answers GET requests to demoControlPath and passes other requests to next. The handler also
// has the control endpoints with --demo-control, if hasPrivateDemo returns true and there is no trusted proxy. Those of a further venue
// are below its name. If the first venue is not embedded, withDemoControl returns next.
func (s *App) withDemoControl(cfg *config.Config, next http.Handler) http.Handler {
	if s.Demo == nil {
		return next
	}
	allowed := cfg.Demo.Control && s.hasPrivateDemo(cfg) && len(cfg.TrustedProxies) == 0
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("GET "+demoControlPath, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		_, _ = fmt.Fprintf(w, `{"allowed":%t}`, allowed)
	})
	if allowed {
		mux.HandleFunc("POST "+demoControlPath+"/{action}", s.Demo.control)
		for _, u := range s.Venues[1:] {
			if u.demo != nil {
				mux.HandleFunc("POST "+demoControlPath+"/"+u.name+"/{action}", u.demo.control)
			}
		}
	}
	return mux
}

// control passes a request to the venue's control endpoint for the action in the path. That endpoint refuses pages of other
// origins. control also requires JSON, because browsers send JSON to another origin only after a successful preflight request, and
// preflight requests for this path fail.
func (d *demoVenue) control(w http.ResponseWriter, r *http.Request) {
	action := r.PathValue("action")
	if !slices.Contains(demoActions, action) {
		http.NotFound(w, r)
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		http.Error(w, "the Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	to := *r
	to.URL = &url.URL{Path: "/__control/" + action}
	d.handler.ServeHTTP(w, &to)
}
