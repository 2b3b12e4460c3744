package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/graph"
	"oddsgraph/httpapi/auth"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// refusedBy counts refusals by the address of the client.
type refusedBy struct {
	noRefusals
	mu    sync.Mutex
	count map[string]int
}

func (r *refusedBy) Refused(client netip.Addr, _ auth.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[client.String()]++
}

// refusing is a source whose Fetch rejects the client's credentials.
type refusing struct {
	missing[market.Address, market.Balance]
}

func (refusing) Fetch(_ context.Context, keys []market.Address) []reads.Result[*market.Balance] {
	out := make([]reads.Result[*market.Balance], len(keys))
	for i := range out {
		out[i].Err = market.Errorf(market.CodeUnauthenticated, "no")
	}
	return out
}

// withID returns the context of a request with an id.
func withID(ctx context.Context, id string) context.Context {
	return request.With(ctx, func(r *request.Request) { r.ID = id })
}

// TestSharedFailures checks that two clients that share an execution get the error of the execution. Refused credentials must be
// counted once.
func TestSharedFailures(t *testing.T) {
	for name, test := range map[string]struct {
		end     func()
		want    string
		refused int // number of counted refusals
	}{
		"a panic":             {func() { panic("canary") }, `"requestId":"the execution"`, 0},
		"refused credentials": {func() {}, "UNAUTHENTICATED", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var log journal
			cfg := testConfig(t)
			end := make(chan struct{})
			balances := loaders.Sources{Balances: refusing{}}
			cfg.Compiler = graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{
				Clock: market.SystemClock{},
				Feeds: []*feed.Feed{feed.New(feed.Config{})}, Sources: balances,
				Venues: []resolvers.Venue{{Scope: func(context.Context, market.Address) string {
					<-end
					test.end()
					return ""
				}}},
			}})
			refusals := &refusedBy{count: map[string]int{}}
			cfg.Refusals = refusals
			cfg.Client = func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.URL.Query().Get("from")) }
			cfg.Shared = func(ctx context.Context) context.Context { return withID(ctx, "the execution") }
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			api := New(cfg)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				api.ServeHTTP(w, r.WithContext(withID(r.Context(), "request of "+r.URL.Query().Get("from"))))
			}))
			defer server.Close()
			defer api.Drain(t.Context())
			var clients sync.WaitGroup
			for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
				clients.Go(func() {
					got := converse(t, server.URL+PathGraphQL+"?from="+from, `"type":"error"`,
						`{"id":"1","type":"subscribe","payload":{"query":"subscription { balanceChanged(address: \"0x1111111111111111111111111111111111111111\") { reason } }"}}`)
					if !strings.Contains(got, test.want) || strings.Contains(got, "request of") {
						t.Errorf("%s: got %s", from, got)
					}
				})
			}
			eventually(t, func() bool { return api.Stats().Groups.Members == 2 })
			if n := api.Stats().Groups.Groups; n != 1 {
				t.Errorf("there are %d groups, want 1", n)
			}
			close(end)
			clients.Wait()
			refusals.mu.Lock()
			defer refusals.mu.Unlock()
			if n := refusals.count["192.0.2.1"] + refusals.count["192.0.2.2"]; n != test.refused { // counted before the error is sent
				t.Errorf("%d refusals were counted, want %d", n, test.refused)
			}
		})
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not hold within a minute")
		}
	}
}
