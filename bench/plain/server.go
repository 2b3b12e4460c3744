package plain

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/graph-gophers/dataloader/v7"
	"github.com/vektah/gqlparser/v2/ast"
)

type request struct {
	markets     *dataloader.Loader[string, *Market]
	prices      *dataloader.Loader[string, *TokenPrice]
	credentials string
}

type requestKey struct{}

func requestOf(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

const (
	wait = time.Millisecond // how long a loader waits for more keys
	// The maximum numbers of ids in one call to the venue.
	maxMarkets, maxPrices = 50, 100
)

func newLoader[V any](capacity int, fetch func(context.Context, []string) ([]V, error), id func(V) string) *dataloader.Loader[string, V] {
	return dataloader.NewBatchedLoader(func(ctx context.Context, keys []string) []*dataloader.Result[V] {
		values, err := fetch(ctx, keys)
		byID := make(map[string]V, len(values))
		for _, v := range values {
			byID[id(v)] = v
		}
		results := make([]*dataloader.Result[V], len(keys))
		for i, key := range keys {
			results[i] = &dataloader.Result[V]{Data: byID[key], Error: err}
		}
		return results
	}, dataloader.WithWait[string, V](wait), dataloader.WithBatchCapacity[string, V](capacity))
}

// New returns a server for a schema that uses the resolvers of this package.
func New(schema graphql.ExecutableSchema, venue *Venue) http.Handler {
	srv := handler.New(schema)
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(lru.New[*ast.QueryDocument](1000))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credentials, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Venue-Credentials"))
		if err != nil {
			http.Error(w, "bad credentials", http.StatusBadRequest)
			return
		}
		srv.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, &request{
			newLoader(maxMarkets, venue.markets, func(m *Market) string { return m.MarketID }),
			newLoader(maxPrices, venue.prices, func(p *TokenPrice) string { return p.TokenID }),
			string(credentials),
		})))
	})
}
