package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"oddsgraph/graph"
	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/limits"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// nothing is an empty source that counts the calls of Lookup.
type nothing struct {
	missing[string, market.Price]
	asked int
}

func (n *nothing) Lookup(_ context.Context, _ []string, _ []reads.Result[*market.Price], missing []int) []int {
	n.asked++
	return missing
}

// missing is a source that has no key in memory, and for which the venue has no values.
type missing[K comparable, T any] struct{}

func (missing[K, T]) Lookup(_ context.Context, keys []K, _ []reads.Result[*T], missing []int) []int {
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}

// Refresh implements reads.Source.
func (missing[K, T]) Refresh(context.Context, []K) {}

func (missing[K, T]) Batches(keys []K) [][]K { return [][]K{keys} }
func (missing[K, T]) Calls(keys []K) int     { return len(keys) }

func (missing[K, T]) Fetch(_ context.Context, keys []K) []reads.Result[*T] {
	return make([]reads.Result[*T], len(keys))
}

// noRefusals rejects nothing.
type noRefusals struct{}

func (noRefusals) Check(netip.Addr, auth.Key) error  { return nil }
func (noRefusals) Refused(netip.Addr, auth.Key)      {}
func (noRefusals) Accepted(auth.Key, market.Address) {}
func (noRefusals) Account(auth.Key) market.Address   { return "" }

// onEnd returns an Observer that calls a function with the log of each ended operation.
func onEnd(f func(j *request.Log)) Observer {
	return Observer{Ended: func(_ context.Context, j *request.Log) { f(j) }}
}

// testConfig returns the configuration of an API whose source of prices is empty.
func testConfig(t testing.TB) Config {
	t.Helper()
	compiler := graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{Clock: market.SystemClock{}}})
	g, err := limits.New(limits.Default(), compiler.Schema())
	if err != nil {
		t.Fatal(err)
	}
	d, err := persisted.Open(persisted.Config{Mode: persisted.ModeOff, AutomaticBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Compiler: compiler, Sources: loaders.Sources{Prices: &nothing{}}, Log: slog.New(slog.DiscardHandler),
		MaxBody: 1 << 20, BodyTimeout: time.Minute, Timeout: time.Minute, Operations: 64, Queue: 64, QueueTimeout: time.Minute,
		Introspection: true, Suggestions: true, Guard: g, Documents: d, Refusals: noRefusals{},
		Client: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") },
		Shared: func(ctx context.Context) context.Context { return ctx },
	}
}

func post(t testing.TB, h http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, postRequest(t.Context(), body, header...))
	return w
}

// send returns the response to a request. header has a name, its value, the next name, and so on.
func send(t testing.TB, h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, requestFor(t.Context(), method, target, body, header...))
	return w
}

// postRequest returns a request for an operation.
func postRequest(ctx context.Context, body string, header ...string) *http.Request {
	return requestFor(ctx, http.MethodPost, PathGraphQL, body, append([]string{"Content-Type", "application/json"}, header...)...)
}

func requestFor(ctx context.Context, method, target, body string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// TestRefusedRequestsReadNothing checks that an invalid request calls no source.
func TestRefusedRequestsReadNothing(t *testing.T) {
	prices := &nothing{}
	var outcomes []string
	cfg := testConfig(t)
	cfg.Sources = loaders.Sources{Prices: prices}
	cfg.Observer = onEnd(func(j *request.Log) { outcomes = append(outcomes, j.Type()+" "+j.Outcome) })
	h := New(cfg)
	for _, test := range []struct {
		body    string
		status  int
		asked   int
		outcome string
	}{
		{`{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`, http.StatusOK, 1, "query ok"},
		{`{"query":"query ($n: Int!) { tokenPrices(tokenIds: [\"1\"]) { price } searchMarkets(first: $n) { totalCount } }"}`, http.StatusOK, 0, "query GRAPHQL_VALIDATION_FAILED"},
		{`{"query":"query ($s: MarketSort!) { tokenPrices(tokenIds: [\"1\"]) { price } searchMarkets(sort: $s) { totalCount } }","variables":{"s":"volume"}}`, http.StatusOK, 0, "query GRAPHQL_VALIDATION_FAILED"},
		{`{"query":"{ tokenPrices(tokenIds: [\"1\"]) { nope } }"}`, http.StatusOK, 0, "unknown GRAPHQL_VALIDATION_FAILED"},
		{`{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price }"}`, http.StatusOK, 0, "unknown GRAPHQL_PARSE_FAILED"},
		{`x`, http.StatusBadRequest, 0, "unknown BAD_USER_INPUT"},
	} {
		prices.asked, outcomes = 0, nil
		w := post(t, h, test.body)
		if w.Code != test.status || (prices.asked > 0) != (test.asked > 0) || len(outcomes) != 1 || outcomes[0] != test.outcome {
			t.Errorf("%s\n %d %s\n asked %d times, outcomes %q", test.body, w.Code, w.Body, prices.asked, outcomes)
		}
	}
}

func TestBodiesThatBreakOff(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathGraphQL, io.MultiReader(strings.NewReader(`{"query":"canary`), brokenReader{}))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	New(testConfig(t)).ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the body could not be read") || strings.Contains(w.Body.String(), "canary") {
		t.Errorf("a body that breaks off: got %d %s, want 400 without the text of the body", w.Code, w.Body)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
