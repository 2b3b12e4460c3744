package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/graph"
	"oddsgraph/httpapi/content"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// guarded is a source of balances that accepts credentials only while accepts is true.
type guarded struct {
	refusing
	accepts atomic.Bool
}

func (g *guarded) Fetch(ctx context.Context, keys []market.Address) []reads.Result[*market.Balance] {
	if g.accepts.Load() {
		return g.missing.Fetch(ctx, keys)
	}
	return g.refusing.Fetch(ctx, keys)
}

// firstEvent requests an event stream with credentials and returns the data of the first event.
func firstEvent(t *testing.T, url, credentials, body string) string {
	t.Helper()
	response := answerFrom(t, url, body, "Accept", content.Events, CredentialsHeader, credentials)
	defer response.Close()
	for lines := bufio.NewScanner(response); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

// TestGuessesAreBounded checks for each transport that a client cannot try other credentials after the venue has refused 20. It must
// still serve credentials that the venue has accepted for one field of a query while another field failed.
func TestGuessesAreBounded(t *testing.T) {
	const subscription = `{"query":"subscription { balanceChanged(address: \"` + testAddress + `\") { reason } }"}`
	for _, transport := range transportNames {
		t.Run(transport, func(t *testing.T) {
			cfg := testConfig(t)
			who, _ := newTestIdentities(t)
			venue := &guarded{}
			cfg.Refusals, cfg.Sources = who.refusals, loaders.Sources{Balances: venue, Prices: &shelf{}}
			cfg.Compiler = graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{
				Clock: market.SystemClock{}, Timeout: time.Minute,
				Feeds: []*feed.Feed{feed.New(feed.Config{})}, Sources: cfg.Sources,
				Venues: []resolvers.Venue{{Scope: func(context.Context, market.Address) string { return "" }}},
			}})
			api := New(cfg)
			server := httptest.NewServer(api)
			defer server.Close()
			defer api.Drain(t.Context())
			query := func(n int) *httptest.ResponseRecorder {
				return post(t, api, `{"query":"{ user(address: \"`+testAddress+`\") { balance { cashBalance } } tokenPrices(tokenIds: [\"bad\"]) { price } }"}`,
					CredentialsHeader, credentialsOf(fmt.Sprint("guess-", n)))
			}
			// ask sends a query or a subscription with the n-th credentials. It returns the response, or the first event or error.
			ask := func(n int) string {
				key := credentialsOf(fmt.Sprint("guess-", n))
				switch transport {
				case transportHTTP:
					return query(n).Body.String()
				case transportEvents:
					return firstEvent(t, server.URL+PathGraphQL, key, subscription)
				default:
					return converseAs(t, server.URL+PathGraphQL, key, `"id":"1"`, `{"id":"1","type":"subscribe","payload":`+subscription+`}`)
				}
			}
			venue.accepts.Store(true)
			if got := query(0).Body.String(); !strings.Contains(got, "UPSTREAM_TIMEOUT") {
				t.Fatalf("the query with a failing field: got %s, want UPSTREAM_TIMEOUT", got)
			}
			venue.accepts.Store(false)
			for n := range 20 {
				if got := ask(100 + n); !strings.Contains(got, "UNAUTHENTICATED") {
					t.Fatalf("guess %d got %s, want UNAUTHENTICATED", n, got)
				}
			}
			if w := query(200); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "4" || !strings.Contains(w.Body.String(), "RATE_LIMITED") {
				t.Errorf("one guess too many: got %d %v %s, want 429, Retry-After and RATE_LIMITED", w.Code, w.Header(), w.Body)
			}
			venue.accepts.Store(true)
			if got := query(0).Body.String(); strings.Contains(got, "RATE_LIMITED") {
				t.Errorf("credentials that the venue has accepted got %s", got)
			}
		})
	}
}
