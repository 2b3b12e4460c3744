package httpapi

import (
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/graph"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// nothing is a source without anything in it, which counts how often it is asked.
type nothing struct{ asked int }

func (n *nothing) Lookup(_ context.Context, _ []string, _ []market.Result[market.Read[*market.Price]], missing []int) []int {
	n.asked++
	return missing
}

func (n *nothing) Fetch(_ context.Context, keys []string) []market.Result[market.Read[*market.Price]] {
	return make([]market.Result[market.Read[*market.Price]], len(keys))
}

// TestRefusedRequestsReadNothing sends what can be seen to be wrong before it is executed; looking ahead must not begin.
func TestRefusedRequestsReadNothing(t *testing.T) {
	prices := &nothing{}
	var outcomes []string
	h := New(Config{
		Schema:  graph.NewExecutableSchema(graph.Config{Resolvers: &resolvers.Resolver{Clock: market.SystemClock{}}}),
		Sources: loaders.Sources{Prices: prices}, Log: slog.New(slog.DiscardHandler), MaxBody: 1 << 20, Timeout: time.Minute,
		Operation: func(kind, outcome string, _ time.Duration) { outcomes = append(outcomes, kind+" "+outcome) },
	})
	for _, test := range []struct {
		body    string
		status  int
		asked   int
		outcome string
	}{
		{`{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`, http.StatusOK, 1, "query ok"},
		{`{"query":"query ($n: Int!) { tokenPrices(tokenIds: [\"1\"]) { price } searchMarkets(first: $n) { totalCount } }"}`, http.StatusUnprocessableEntity, 0, "query GRAPHQL_VALIDATION_FAILED"},
		{`{"query":"query ($s: MarketSort!) { tokenPrices(tokenIds: [\"1\"]) { price } searchMarkets(sort: $s) { totalCount } }","variables":{"s":"volume"}}`, http.StatusUnprocessableEntity, 0, "query GRAPHQL_VALIDATION_FAILED"},
		{`{"query":"{ tokenPrices(tokenIds: [\"1\"]) { nope } }"}`, http.StatusUnprocessableEntity, 0, "unknown GRAPHQL_VALIDATION_FAILED"},
		{`{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price }"}`, http.StatusUnprocessableEntity, 0, "unknown GRAPHQL_PARSE_FAILED"},
		{`x`, http.StatusBadRequest, 0, "unknown BAD_USER_INPUT"},
	} {
		prices.asked, outcomes = 0, nil
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathGraphQL, strings.NewReader(test.body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.status || (prices.asked > 0) != (test.asked > 0) || len(outcomes) != 1 || outcomes[0] != test.outcome {
			t.Errorf("%s\n %d %s\n asked %d times, outcomes %q", test.body, w.Code, w.Body, prices.asked, outcomes)
		}
	}
}

// TestCredentialsLeaveTheHeaders: what comes after may log or forward headers.
func TestCredentialsLeaveTheHeaders(t *testing.T) {
	var got *http.Request
	h := identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set(CredentialsHeader, base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"k","address":"0x1111111111111111111111111111111111111111"}`)))
	h.ServeHTTP(httptest.NewRecorder(), r)
	c := market.CredentialsFrom(got.Context())
	if c == nil || c.Wire() != `{"apiKey":"k"}` || got.Header.Get(CredentialsHeader) != "" {
		t.Errorf("credentials %v, headers %v", c, got.Header)
	}
	if r.Header.Get(CredentialsHeader) == "" {
		t.Error("the caller's own request was changed")
	}
}

// TestBodiesThatBreakOff ends in the middle of a body.
func TestBodiesThatBreakOff(t *testing.T) {
	h := bounded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was executed") }), Config{MaxBody: 100, Timeout: time.Minute})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathGraphQL, io.MultiReader(strings.NewReader(`{"query":`), brokenReader{}))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the body could not be read") || strings.Contains(w.Body.String(), "canary") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestGraphiQLKeepsNoHeaders(t *testing.T) {
	page := string(graphiQL())
	if !strings.Contains(page, "shouldPersistHeaders: false") || strings.Contains(page, "shouldPersistHeaders: true") {
		t.Error("the page keeps headers, which hold credentials, on disk")
	}
}
