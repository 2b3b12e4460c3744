// Package httpapi serves GraphQL over HTTP, WebSocket and server-sent events. It also serves the pages and the health
// endpoints. It identifies clients and enforces the limits.
package httpapi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"oddsgraph/graph/exec"
	"oddsgraph/httpapi/admission"
	"oddsgraph/httpapi/limits"
	"oddsgraph/httpapi/origins"
	"oddsgraph/httpapi/pages"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

const (
	PathGraphQL = "/graphql"
	PathSchema  = "/schema.graphql"
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
)

// MinIncoming is the minimum memory in bytes for the bodies and messages of all clients. If four times Config.MaxBody is more than
// MinIncoming, the service uses this size instead. One client may use three quarters of the memory. A body
// may need twice its size while the service reads it.
const MinIncoming = 32 << 20

// Config configures an API.
type Config struct {
	SDL     string
	Sources loaders.Sources
	// Venues is the number of venues that Sources reads; 0 means 1.
	Venues int
	Log    *slog.Logger
	// MaxBody bounds a request's body and a client's message on a WebSocket, in bytes. BodyTimeout is the server's ReadTimeout, which an error names.
	MaxBody     int64
	BodyTimeout time.Duration
	// Timeout bounds the time from the arrival of the whole request until its response is ready to be sent.
	Timeout time.Duration
	// MaxResponse bounds the size of a response or an event in bytes; 0 means 8 MiB. MaxOutput bounds the unread output of all
	// clients in bytes; 0 means 64 MiB.
	MaxResponse, MaxOutput int
	// The service splits a subscription to a list of ids into one execution for each id, if all subscriptions together then have at
	// most SplitExecutions executions. Otherwise one execution serves the whole list. 0 means 4,000.
	SplitExecutions int
	// Operations bounds the number of operations that execute or wait for the venue. At most half of them may wait for the venue.
	// Queue bounds the number of further operations that wait for a place, and QueueTimeout how long each of them waits.
	Operations, Queue int
	QueueTimeout      time.Duration
	// ResponseBytes bounds the size of the response cache in bytes; 0 disables the cache.
	ResponseBytes int64
	Clock         market.Clock // measures the age of cached responses
	// If Introspection is true, clients may read the schema. If Suggestions is true, errors may suggest names.
	Introspection, Suggestions bool
	Compiler                   *exec.Compiler
	Guard                      *limits.Guard
	Documents                  Documents
	// Origins are the allowed origins of browsers in addition to the service's own origin; * allows all origins.
	Origins []string
	// LoopbackOrigins also allows the origins localhost, 127.0.0.1 and [::1] with any port.
	LoopbackOrigins bool
	// CORSHeaders are request headers that pages of these origins may send in addition to the usual ones; * allows all headers.
	CORSHeaders []string
	// Accounts finds the accounts of bearer tokens. If Accounts is nil, the service accepts no bearer tokens.
	Accounts Accounts
	// Unchecked is true if the venue checks no credentials. The service then refuses credentials in requests, and a client with the
	// bearer token of an account can read only the data of this account.
	Unchecked bool
	// PublicAccounts is true if the venue shows accounts to everybody. It then accepts all credentials, so credentials identify nobody.
	PublicAccounts bool
	Refusals       Refusals // counts rejected tokens and credentials
	Client         func(r *http.Request) netip.Addr
	// Trusted reports whether a trusted proxy sent a request; nil means no proxy is trusted.
	Trusted func(r *http.Request) bool
	// Clients bounds the connections, operations and subscriptions of one client.
	Clients quota.Limits
	// Shared returns the context of an execution that several clients share. It replaces the request id in ctx, because ctx is
	// the context of the first client.
	Shared func(ctx context.Context) context.Context
	// Ready returns ErrStarting or ErrDraining while the service must not get requests. It must not wait.
	Ready func() error
	// Impaired returns a text that says what does not work although the service is ready, or "". The response at PathReady contains
	// this text. Impaired must not wait.
	Impaired func() string
	// Pages contain index.html, live.html, plain.html, kit.tgz, and the files that the pages load from assets/. If several file
	// systems contain the same file, the file of the first one is served.
	Pages []fs.FS
	// Explain allows clients to request explanations with ExplainHeader.
	Explain  bool
	Observer Observer
}

// ErrStarting is the error of Ready after the start, and ErrDraining its error while the service shuts down.
var (
	ErrStarting = errors.New("starting: waiting for the first answer of the venue, for at most five seconds")
	ErrDraining = errors.New("draining")
)

// Documents resolves the document of a request.
type Documents interface {
	Resolve(r persisted.Request) (persisted.Document, error)
}

// API serves clients. Drain ends its WebSockets and event streams.
type API struct {
	http.Handler
	// Healthz and Readyz are the handlers of PathHealth and PathReady, for other listeners.
	Healthz, Readyz http.Handler
	transports      *transports
}

// Drain ends the subscriptions, refuses new WebSockets and event streams, and waits until all open WebSockets and event streams
// have ended. When ctx ends, Drain closes the WebSockets whose queries and mutations still run. ctx does not bound the wait for
// event streams: the HTTP server ends their requests. Call Drain when the listener is closed.
func (a *API) Drain(ctx context.Context) { a.transports.drain(ctx) }

// Stats returns the figures of operations, subscriptions, connections and the response cache.
func (a *API) Stats() Stats { return a.transports.stats() }

// Flush empties the response cache and returns the number of removed responses.
func (a *API) Flush() (responses int) {
	if cached := a.transports.engine.responses; cached != nil {
		responses = cached.Flush()
	}
	return responses
}

// Forget removes the cached responses to requests with the credentials c.
func (a *API) Forget(c *market.Credentials) {
	if cached := a.transports.engine.responses; cached != nil {
		cached.Forget(c)
	}
}

// ownHeaders are the request headers that only this service knows.
var ownHeaders = []string{CredentialsHeader, CostHeader, ExplainHeader}

// New returns an API that is ready to serve.
func New(cfg Config) *API {
	who := newIdentities(cfg)
	allowed := origins.New(cfg.Origins, cfg.LoopbackOrigins, slices.Concat(ownHeaders, cfg.CORSHeaders))
	g := &graphQL{
		engine: newEngine(cfg, who), places: admission.New(who.countedIn, cfg.Operations, cfg.Queue, min(cfg.QueueTimeout, cfg.Timeout), errBusy),
		incoming: quota.NewMemory(max(MinIncoming, 4*int(cfg.MaxBody))),
	}
	g.places.Venues = max(cfg.Venues, 1)
	all := newTransports(g, allowed, cfg)
	endpoint := allowed.Handler(all)

	mux := http.NewServeMux()
	mux.Handle(PathGraphQL+"/{documentId}", endpoint)
	if cfg.Introspection {
		mux.Handle("GET "+PathSchema, allowed.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, cfg.SDL)
		})))
	}
	a := &API{Handler: front(endpoint, mux), Healthz: http.HandlerFunc(healthz), Readyz: readyz(cfg), transports: all}
	mux.Handle("GET "+PathHealth, a.Healthz)
	mux.Handle("GET "+PathReady, a.Readyz)
	pages.Handle(mux, cfg.Pages)
	return a
}

// The values of the headers that front sets. They must not be changed.
var (
	noSniffing = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
)

// front sets the security headers of all responses. It serves requests for PathGraphQL with endpoint, and all other requests with
// rest. Nearly all requests are for this path, and they take less time without http.ServeMux.
func front(endpoint, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Content-Type-Options"], h["Referrer-Policy"] = noSniffing, noReferrer
		h["Content-Security-Policy"] = noContent // pages replace this value
		if r.URL.Path != PathGraphQL {
			rest.ServeHTTP(w, r)
			return
		}
		r.Pattern = PathGraphQL
		endpoint.ServeHTTP(w, r)
	})
}

func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// readyz returns a handler that reports whether the service must get requests, and what does not work.
func readyz(cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := cfg.Ready(); err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		text := "ready\n"
		if fault := cfg.Impaired(); fault != "" {
			text += fault + "\n"
		}
		_, _ = io.WriteString(w, text)
	})
}
