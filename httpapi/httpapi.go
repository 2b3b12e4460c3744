// Package httpapi is the front door: GraphQL over HTTP, who is asking, the pages and the health endpoints.
package httpapi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"oddsgraph/graph/exec"
	"oddsgraph/httpapi/limits"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
)

// The paths that are served.
const (
	PathGraphQL = "/graphql"
	PathSchema  = "/schema.graphql"
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
)

// MinIncoming is the least room for what clients are sending, in bytes. One of them has three quarters of it, and what it
// sends may take twice its size while it grows.
const MinIncoming = 32 << 20

// Config is what the front door needs of the rest.
type Config struct {
	// SDL is the text of the schema.
	SDL     string
	Sources loaders.Sources
	Log     *slog.Logger
	// MaxBody is the greatest size of a request's body in bytes, BodyTimeout how long the server, whose ReadTimeout it is, lets
	// a request take to arrive.
	MaxBody     int64
	BodyTimeout time.Duration
	// Timeout bounds a request from when it was read to its answer.
	Timeout time.Duration
	// MaxResponse is the greatest size of a response and of an event in bytes: 8 MiB. MaxOutput is how much all clients together may
	// leave unread: 64 MiB.
	MaxResponse, MaxOutput int
	// EventsPerSecond is what the events of one client may cost in a second, in bytes: 16 MiB. It saves twice as much.
	EventsPerSecond int
	// Operations is how many operations are executed at once, Queue how many more may wait for that, and QueueTimeout how
	// long.
	Operations, Queue int
	QueueTimeout      time.Duration
	// ResponseBytes bounds the memory for responses that are kept, which Clock tells the age of; 0 keeps none.
	ResponseBytes int64
	Clock         market.Clock
	// Introspection lets clients read the schema, Suggestions has errors name what may have been meant.
	Introspection, Suggestions bool
	// Compiler compiles the operations of documents, to be executed.
	Compiler *exec.Compiler
	// Guard refuses what would be expensive.
	Guard *limits.Guard
	// Documents finds the documents that clients name.
	Documents Documents
	// Origins are those of the pages on other hosts that may use the service; * stands for all.
	Origins []string
	// LoopbackOrigins allows pages of localhost, 127.0.0.1 and [::1], at any port, too.
	LoopbackOrigins bool
	// Accounts finds what bearer tokens stand for; nil where there are none. Refusals counts credentials that were refused.
	Accounts Accounts
	// Unchecked says that the venue checks no credentials. Then callers can't send any, and accounts read their own data alone.
	Unchecked bool
	Refusals  Refusals
	// Client returns the address that a request comes from.
	Client func(r *http.Request) netip.Addr
	// Trusted reports whether a trusted proxy sent a request; nil trusts nobody.
	Trusted func(r *http.Request) bool
	// Clients bounds what one client address may keep open for events, and Sockets how WebSockets behave.
	Clients quota.Limits
	Sockets Sockets
	// RequestID returns the id of the request that a context belongs to.
	RequestID func(ctx context.Context) string
	// Shared returns the context of an execution that several clients share, made of that of the first of them: its log lines and
	// errors name no request of one to the others. nil leaves it as it is.
	Shared func(ctx context.Context) context.Context
	// Ready says why the service cannot answer now, ErrDraining among other reasons; nil when it can.
	Ready func(ctx context.Context) error
	// Pages hold the files of the pages: index.html, live.html, plain.html, and what they load under assets/. Of files with
	// one name the first counts.
	Pages []fs.FS
	// Explain lets clients know the way of their operations, by ExplainHeader.
	Explain bool
	// Observer is told what becomes of operations; nil where nobody wants to know.
	Observer Observer
}

// ErrDraining is why a service that will accept no more requests soon is not ready.
var ErrDraining = errors.New("draining")

// Documents finds the text of a document that a request names or brings.
type Documents interface {
	Resolve(r persisted.Request) (persisted.Document, error)
}

// API is everything that the service offers to clients. Drain it to end what stays open.
type API struct {
	http.Handler
	// Healthz and Readyz are what Handler has at PathHealth and PathReady, for other listeners.
	Healthz, Readyz http.Handler
	transports      *transports
}

// Drain ends the subscriptions, whose clients are told to connect again, and waits for the operations under way on
// WebSockets and event streams as long as ctx lasts. It is for the time when no more requests are accepted.
func (a *API) Drain(ctx context.Context) { a.transports.drain(ctx) }

// Stats returns the figures of what stays open for events, and of the responses that are kept.
func (a *API) Stats() Stats { return a.transports.stats() }

// Flush lets go of all responses that are kept, and returns their number.
func (a *API) Flush() (responses int) {
	if kept := a.transports.engine.responses; kept != nil {
		responses = kept.Flush()
	}
	return responses
}

// Forget lets go of the responses that were made for a caller with these credentials.
func (a *API) Forget(c *market.Credentials) { a.transports.engine.forget(c) }

// New returns an API that is ready to serve.
func New(cfg Config) *API {
	who := newIdentities(cfg)
	origins := newOrigins(cfg.Origins, cfg.LoopbackOrigins)
	g := &graphQL{
		engine: newEngine(cfg, who), gates: newGates(cfg.Operations, cfg.Queue, min(cfg.QueueTimeout, cfg.Timeout)),
		incoming: quota.NewMemory(max(MinIncoming, 4*int(max(cfg.MaxBody, cfg.Sockets.Frame)))), cfg: cfg,
	}
	all := newTransports(g, origins, cfg)
	endpoint := origins.handler(who.handler(g.refuse, all.serve))

	mux := http.NewServeMux()
	mux.Handle(PathGraphQL+"/{documentId}", endpoint)
	if cfg.Introspection {
		mux.Handle("GET "+PathSchema, origins.handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, cfg.SDL)
		})))
	}
	a := &API{Handler: secured(straight(PathGraphQL, endpoint, mux)), Healthz: http.HandlerFunc(healthz), Readyz: readyz(cfg), transports: all}
	mux.Handle("GET "+PathHealth, a.Healthz)
	mux.Handle("GET "+PathReady, a.Readyz)
	pages(cfg.Pages).handle(mux)
	return a
}

// straight leads the requests for one path to its handler, and all others to rest. It is there for the path that nearly all
// requests are for, which a mux would look for in each.
func straight(path string, handler, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			rest.ServeHTTP(w, r)
			return
		}
		r.Pattern = path
		handler.ServeHTTP(w, r)
	})
}

// healthz says that the process lives.
func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// readyz says whether the service can answer.
func readyz(cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := cfg.Ready(r.Context())
		if err == nil {
			_, _ = io.WriteString(w, "ready\n")
			return
		}
		w.Header().Set("Retry-After", "1")
		if errors.Is(err, ErrDraining) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		cfg.Log.WarnContext(r.Context(), "not ready", "error", err)
		http.Error(w, "not ready: "+string(market.CodeOf(err)), http.StatusServiceUnavailable)
	})
}
