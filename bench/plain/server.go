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

// loaders has the dataloaders of one request.
type loaders struct {
	markets *dataloader.Loader[string, *Market]
	prices  *dataloader.Loader[string, *TokenPrice]
}

type (
	loadersKey     struct{}
	credentialsKey struct{}
)

func loadersFrom(ctx context.Context) *loaders { return ctx.Value(loadersKey{}).(*loaders) }

func credentialsFrom(ctx context.Context) string {
	credentials, _ := ctx.Value(credentialsKey{}).(string)
	return credentials
}

// The maximum numbers of ids in one call to the venue.
const (
	maxMarkets = 50
	maxPrices  = 100
)

func newLoader[V any](wait time.Duration, capacity int, fetch func(context.Context, []string) ([]V, error), id func(V) string) *dataloader.Loader[string, V] {
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

// New returns a server for a schema that uses the resolvers of this package. wait is how long a dataloader waits for more keys.
func New(schema graphql.ExecutableSchema, venue *Venue, wait time.Duration) http.Handler {
	srv := handler.New(schema)
	srv.AddTransport(transport.GET{})
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(lru.New[*ast.QueryDocument](1000))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), loadersKey{}, &loaders{
			markets: newLoader(wait, maxMarkets, venue.markets, func(m *Market) string { return m.MarketID }),
			prices:  newLoader(wait, maxPrices, venue.prices, func(p *TokenPrice) string { return p.TokenID }),
		})
		if header := r.Header.Get("X-Venue-Credentials"); header != "" {
			credentials, err := base64.StdEncoding.DecodeString(header)
			if err != nil {
				http.Error(w, "bad credentials", http.StatusBadRequest)
				return
			}
			ctx = context.WithValue(ctx, credentialsKey{}, string(credentials))
		}
		srv.ServeHTTP(w, r.WithContext(ctx))
	})
}
