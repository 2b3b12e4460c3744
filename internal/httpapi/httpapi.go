// Package httpapi is the front door: GraphQL over HTTP, the pages and the health endpoints.
package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/99designs/gqlgen/graphql/playground"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/internal/market"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// The paths that are served.
const (
	PathGraphQL = "/graphql"
	PathSchema  = "/schema.graphql"
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
)

const (
	// documents is the number of parsed and validated documents that are kept.
	documents = 1000
	// maxTokens bounds a document before it is validated, which takes quadratic time.
	maxTokens = 2000
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
	Timeout       time.Duration
	Introspection bool
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
	page := playground.Handler("oddsgraph", PathGraphQL)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer")
		page(w, r)
	})
	return mux
}

// newGraphQL returns the GraphQL endpoint.
func newGraphQL(cfg Config) http.Handler {
	srv := handler.New(cfg.Schema)
	srv.AddTransport(transport.Options{})
	srv.AddTransport(transport.GET{})
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(lru.New[*ast.QueryDocument](documents))
	srv.SetParserTokenLimit(maxTokens)
	if cfg.Introspection {
		srv.Use(extension.Introspection{})
	}
	srv.SetErrorPresenter(resolvers.Presenter(cfg.Log))
	srv.SetRecoverFunc(resolvers.Recover(cfg.Log))
	srv.AroundResponses(func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		return respond(ctx, next, cfg)
	})
	return srv
}

// respond makes one response: with loaders of its own, sent ahead for what it will read, and with its errors in order.
func respond(ctx context.Context, next graphql.ResponseHandler, cfg Config) *graphql.Response {
	start, kind := time.Now(), "unknown"
	if graphql.HasOperationContext(ctx) {
		op := graphql.GetOperationContext(ctx)
		if op.Operation != nil {
			kind = string(op.Operation.Operation)
		}
		var set *loaders.Set
		ctx, set, _ = loaders.With(ctx, cfg.Sources)
		defer set.Close()
		resolvers.Ahead(ctx)
	}
	resp := next(ctx)
	if resp == nil {
		return nil
	}
	resolvers.SortErrors(resp.Errors)
	outcome := "ok"
	if len(resp.Errors) > 0 {
		outcome = "error"
		if code, ok := resp.Errors[0].Extensions["code"].(string); ok {
			outcome = code
		}
	}
	cfg.Operation(kind, outcome, time.Since(start))
	return resp
}

// bounded limits a request's body and time.
func bounded(next http.Handler, cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), cfg.Timeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, cfg.MaxBody)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
