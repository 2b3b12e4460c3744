package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph"
	"oddsgraph/httpapi/admission"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
	"oddsgraph/tests/tool"
)

// memory is a source whose Lookup finds the same price for every token.
type memory struct{ nothing }

func (memory) price(id string) reads.Value[*market.Price] {
	at := time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	return reads.Value[*market.Price]{
		Value: &market.Price{TokenID: id, Price: market.MustDecimal("0.55"), Basis: market.BasisVenue, Timestamp: at},
		Meta:  reads.Meta{AsOf: at, ReceivedAt: at},
	}
}

// Lookup implements reads.Source.
func (m *memory) Lookup(_ context.Context, keys []string, into []reads.Result[*market.Price], missing []int) []int {
	for i, key := range keys {
		into[i].Value = m.price(key)
	}
	return missing
}

// boardQuery returns the body of a request for nine fields of each of 50 prices. The response has more than 10 KB.
func boardQuery(b testing.TB) []byte {
	b.Helper()
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = fmt.Sprintf("71321045679252212594626385532706912750332728571942532289631379312455583992563%02d", i)
	}
	body, err := json.Marshal(map[string]any{
		"query":     `query Board($ids: [String!]!) { tokenPrices(tokenIds: $ids) { id tokenId price basis timestamp freshness { asOf receivedAt stale } } }`,
		"variables": map[string]any{"ids": ids},
	})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// libraryHandler serves the schema with the handler and the POST transport of gqlgen. Each response has its own loaders.
func libraryHandler(cfg Config) http.Handler {
	srv := handler.New(graph.NewExecutableSchema(graph.Config{Resolvers: &resolvers.Resolver{Clock: market.SystemClock{}}}))
	srv.AddTransport(transport.POST{})
	srv.SetQueryCache(lru.New[*ast.QueryDocument](1000))
	srv.SetErrorPresenter(resolvers.Presenter(slog.New(slog.DiscardHandler)))
	type turn struct{}
	srv.AroundResponses(func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		ctx, set, _ := loaders.With(context.WithValue(ctx, turn{}, &sync.Mutex{}), cfg.Sources)
		defer set.Done()
		return next(ctx)
	})
	srv.AroundFields(func(ctx context.Context, next graphql.Resolver) (any, error) { // a loaders set is not safe for concurrent use
		mu := ctx.Value(turn{}).(*sync.Mutex)
		mu.Lock()
		defer mu.Unlock()
		return next(ctx)
	})
	return srv
}

// discard is a ResponseWriter that discards the response and counts its bytes.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(s int)   { d.status = s }
func (d *discard) Write(b []byte) (int, error) {
	d.bytes += len(b)
	return len(b), nil
}

func (*discard) SetReadDeadline(time.Time) error  { return nil }
func (*discard) SetWriteDeadline(time.Time) error { return nil }

func serve(h http.Handler, body []byte, header http.Header) *discard {
	r := httptest.NewRequest(http.MethodPost, PathGraphQL, bytes.NewReader(body))
	r.Header = header
	w := &discard{header: http.Header{}}
	h.ServeHTTP(w, r)
	return w
}

func benchConfig(b testing.TB) Config {
	cfg := testConfig(b)
	cfg.Sources = loaders.Sources{Prices: &memory{}}
	return cfg
}

// TestAllocationsComparedWithGqlgen checks that a request to our API needs at most 2% more allocations than the same request to
// libraryHandler.
func TestAllocationsComparedWithGqlgen(t *testing.T) {
	cfg, body := benchConfig(t), boardQuery(t)
	header := http.Header{"Content-Type": {"application/json"}}
	allocations := func(h http.Handler) float64 {
		if w := serve(h, body, header); w.bytes < 10_000 {
			t.Fatalf("the response has the status %d and %d bytes, want at least 10,000 bytes", w.status, w.bytes)
		}
		return testing.AllocsPerRun(20, func() { serve(h, body, header) })
	}
	ours, theirs := allocations(New(cfg)), allocations(libraryHandler(cfg))
	if ours > theirs*1.02 {
		t.Errorf("our API needs %.0f allocations, want at most 2%% more than the %.0f of gqlgen", ours, theirs)
	}
}

// TestReadingARequestAllocatesLittle bounds the allocations for parsing a request without variables, for preparing its operation,
// and for its slot in the limiter.
func TestReadingARequestAllocatesLittle(t *testing.T) {
	if tool.Unraced(t) {
		return
	}
	cfg, body := benchConfig(t), []byte(`{"query":"{ serviceStatus { version } }"}`)
	e, places := newEngine(cfg, &identities{refusals: noRefusals{}, client: cfg.Client}), admission.New((&identities{}).countedIn, 512, 1024, time.Second, errBusy)
	n := testing.AllocsPerRun(100, func() {
		p, err := parseParams(body)
		if err != nil {
			t.Fatal(err)
		}
		op, refusal := e.prepare(t.Context(), &request.Log{}, p, places.Begin)
		if refusal != nil {
			t.Fatal(refusal.Errors)
		}
		op.slot.End()
	})
	if n > 6 {
		t.Errorf("reading a request needs %.0f allocations, want at most 6", n)
	}
}
