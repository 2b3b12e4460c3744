// Package admin serves operators: metrics, health, profiles, information about the build, and flushing of caches. It
// authenticates nobody, so it must listen on an address that only operators can reach.
package admin

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strconv"
	"time"

	"oddsgraph/app/hosts"
)

// Config configures the admin endpoints. All fields are required.
type Config struct {
	Metrics, Health, Ready http.Handler
	Version                string
	Started                time.Time // time at which the program began to serve
	// Flush removes the cached entries of a kind and returns their number. If key is not empty, Flush removes only the entries of
	// that key. If Flush returns an error, the HTTP response contains the text of the error.
	Flush func(kind, key string) (entries int, err error)
}

// New returns a handler that serves these endpoints:
//
//	GET  /metrics                    the metrics, for Prometheus
//	GET  /healthz, /readyz           as on the public address
//	GET  /debug/pprof/               profiles of net/http/pprof, without /cmdline; a profile takes at most a minute
//	GET  /buildinfo                  version, start time, modules and settings of the build
//	POST /cache/flush?kind=…[&key=…] removes cached entries
//
// A page of another site could make a browser on this machine send requests to this address. So the handler rejects requests from
// pages with another origin, and requests to a loopback address with an unknown host name (DNS rebinding).
func New(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.Handle("GET /healthz", cfg.Health)
	mux.Handle("GET /readyz", cfg.Ready)
	mux.HandleFunc("GET /debug/pprof/", limitSeconds(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/profile", limitSeconds(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", limitSeconds(pprof.Trace))
	mux.HandleFunc("GET /buildinfo", cfg.buildInfo)
	mux.HandleFunc("POST /cache/flush", cfg.flush)
	return hosts.Guard(nil, hosts.Refuse("unknown host name: use localhost or an IP address in the URL"), hosts.OnLoopback, sameOrigin(mux))
}

func (cfg *Config) buildInfo(w http.ResponseWriter, _ *http.Request) {
	build, _ := debug.ReadBuildInfo()
	answer(w, http.StatusOK, struct {
		Version string           `json:"version"`
		Started time.Time        `json:"started"`
		Build   *debug.BuildInfo `json:"build"`
	}{cfg.Version, cfg.Started, build})
}

func (cfg *Config) flush(w http.ResponseWriter, r *http.Request) {
	kind, key := r.URL.Query().Get("kind"), r.URL.Query().Get("key")
	entries, err := cfg.Flush(kind, key)
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	answer(w, http.StatusOK, struct {
		Kind    string `json:"kind"`
		Key     string `json:"key,omitempty"`
		Entries int    `json:"entries"`
	}{kind, key, entries})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has left
}

// sameOrigin rejects requests from pages with another origin. It also checks GET requests, because making a profile uses processor time
// even if the page cannot read the profile.
func sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
		if site != "" && site != "same-origin" && site != "none" || origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
			http.Error(w, "this address is not for pages of other origins", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const maxProfileSeconds = 60

// limitSeconds rejects a request with status 400 if its parameter seconds is neither missing, nor above 0 and at most
// maxProfileSeconds.
func limitSeconds(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if seconds := r.FormValue("seconds"); seconds != "" {
			if n, err := strconv.ParseFloat(seconds, 64); err != nil || !(n > 0 && n <= maxProfileSeconds) {
				http.Error(w, "seconds must be a number above 0 and at most "+strconv.Itoa(maxProfileSeconds), http.StatusBadRequest)
				return
			}
		}
		next(w, r)
	}
}
