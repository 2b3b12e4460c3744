// Package httpapi is the front door: GraphQL over HTTP, the pages and the health endpoints.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/99designs/gqlgen/graphql/playground"

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

// Config is what the front door needs of the rest.
type Config struct {
	Schema graphql.ExecutableSchema
	// SDL is the text of the schema.
	SDL     string
	Sources loaders.Sources
	Log     *slog.Logger
	// MaxBody is the greatest size of a request's body in bytes.
	MaxBody int64
	// Timeout bounds a request from its headers to its answer.
	Timeout time.Duration
	// Introspection lets clients read the schema, Suggestions has errors name what may have been meant.
	Introspection, Suggestions bool
	// Ready says why the service cannot answer now; nil when it can.
	Ready func(ctx context.Context) error
	// Operation is told of every operation's type, outcome ("ok" or the first error's code) and duration.
	Operation func(kind, outcome string, elapsed time.Duration)
}

// New returns the handler of everything that the service offers to clients.
func New(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(PathGraphQL, identify(bounded(newGraphQL(cfg), cfg)))
	mux.HandleFunc("GET "+PathSchema, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, cfg.SDL)
	})
	mux.HandleFunc("GET "+PathHealth, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET "+PathReady, func(w http.ResponseWriter, r *http.Request) {
		if err := cfg.Ready(r.Context()); err != nil {
			cfg.Log.WarnContext(r.Context(), "not ready", "error", err)
			w.Header().Set("Retry-After", "1")
			http.Error(w, "not ready: "+string(market.CodeOf(err)), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	page := graphiQL()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})
	return mux
}

// graphiQL returns the page for exploring, whose scripts come from a public network. The library's own page keeps the
// headers that are typed into it on disk, and credentials live in memory only.
func graphiQL() []byte {
	rendered := httptest.NewRecorder()
	playground.Handler("oddsgraph", PathGraphQL)(rendered, httptest.NewRequest(http.MethodGet, "/", nil))
	return bytes.ReplaceAll(rendered.Body.Bytes(), []byte("shouldPersistHeaders: true"), []byte("shouldPersistHeaders: false"))
}

// newGraphQL returns the GraphQL endpoint.
func newGraphQL(cfg Config) http.Handler {
	e := newEngine(cfg)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exec := graphExecutor{e}
		r = r.WithContext(graphql.StartOperationTrace(r.Context()))
		for _, t := range []graphql.Transport{
			transport.Options{}, newWebSocket(cfg), transport.SSE{KeepAlivePingInterval: keepAlive}, transport.GET{}, transport.POST{},
		} {
			if t.Supports(r) {
				t.Do(w, r, exec)
				return
			}
		}
	})
}

// bounded limits a request's body and time, and refuses what the endpoint can't read.
func bounded(next http.Handler, cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Streams(r) {
			if r.Header.Get("Upgrade") == "" {
				p := &pen{ResponseWriter: w}
				defer p.lay()
				w = p
			}
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // else the server's would end the stream
		} else {
			ctx, cancel := context.WithTimeout(r.Context(), cfg.Timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		if status, err := check(w, r, cfg.MaxBody); err != nil {
			refuse(w, status, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// check refuses a request that is none for GraphQL, and reads the body of one that is, whose size it bounds.
func check(w http.ResponseWriter, r *http.Request, maxBody int64) (status int, err error) {
	bad := func(status int, format string, args ...any) (int, error) {
		return status, market.Errorf(market.CodeBadUserInput, format, args...)
	}
	switch r.Method {
	case http.MethodOptions:
	case http.MethodGet:
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return bad(http.StatusBadRequest, "the query string of the URL is malformed")
		}
		for _, name := range []string{"variables", "extensions"} {
			var object map[string]json.RawMessage
			if text := query.Get(name); text != "" && json.Unmarshal([]byte(text), &object) != nil {
				return bad(http.StatusBadRequest, "the parameter %s is not a JSON object", name)
			}
		}
	case http.MethodPost:
		if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
			return bad(http.StatusUnsupportedMediaType, "send the query in a JSON object, with the header Content-Type: application/json")
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return bad(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxBody)
		}
		if err != nil {
			return bad(http.StatusBadRequest, "the body could not be read")
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	default:
		w.Header().Set("Allow", "GET, POST, OPTIONS")
		return bad(http.StatusMethodNotAllowed, "send the query by POST or GET")
	}
	return 0, nil
}
