package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/graph"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// heldBalances is a source whose Fetch waits until the test closes the channel answer. If accepted is false, Fetch rejects all
// credentials.
type heldBalances struct {
	refusing
	asked    chan struct{}
	answer   chan struct{}
	accepted bool
}

func (h *heldBalances) Fetch(ctx context.Context, keys []market.Address) []market.Result[market.Read[*market.Balance]] {
	h.asked <- struct{}{}
	<-h.answer
	if h.accepted {
		return h.missing.Fetch(ctx, keys)
	}
	return h.refusing.Fetch(ctx, keys)
}

// guessConfig returns a configuration with real Refusals, which limit the guesses of an address. Its balances come from the
// returned source, which accepts all credentials or none.
func guessConfig(t *testing.T, accepted bool) (Config, *heldBalances) {
	t.Helper()
	cfg := testConfig(t)
	who, _ := newTestIdentities(t)
	venue := &heldBalances{asked: make(chan struct{}, 1000), answer: make(chan struct{}), accepted: accepted}
	cfg.Refusals, cfg.Sources, cfg.Operations = who.refusals, loaders.Sources{Balances: venue, Prices: &shelf{}}, 256
	cfg.Compiler = graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{
		Clock: market.SystemClock{}, Feed: feed.New(feed.Config{}), Sources: cfg.Sources, Timeout: time.Minute,
		Scope: func(context.Context, market.Address) string { return "" },
	}})
	return cfg, venue
}

// guessKey returns the value of CredentialsHeader for the n-th credentials.
func guessKey(n int) string { return credentialsOf(fmt.Sprint("guess-", n)) }

// balanceQuery returns a request for a balance and for more fields.
func balanceQuery(more string) string {
	return `{"query":"{ user(address: \"` + testAddress + `\") { balance { cashBalance } } ` + more + `}"}`
}

// firstEvent requests an event stream with credentials and returns the data of the first event.
func firstEvent(t *testing.T, url, credentials, body string) string {
	t.Helper()
	response := answerFrom(t, url, body, "Accept", typeEvents, CredentialsHeader, credentials)
	defer response.Close()
	for lines := bufio.NewScanner(response); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

// TestGuessesAreBounded checks that one address can read with at most 20 unknown credentials at once. Later, other credentials must
// be accepted only if the venue has accepted the first 20.
func TestGuessesAreBounded(t *testing.T) {
	const subscription = `{"query":"subscription { balanceChanged(address: \"` + testAddress + `\") { reason } }"}`
	for _, transport := range transportNames {
		for _, accepted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, accepted %v", transport, accepted), func(t *testing.T) {
				cfg, venue := guessConfig(t, accepted)
				api := New(cfg)
				server := httptest.NewServer(api)
				defer server.Close()
				defer api.Drain(t.Context())
				// ask sends a query or a subscription with the n-th credentials. It returns the response, or the first event or error.
				ask := func(n int) string {
					switch transport {
					case transportHTTP:
						return post(t, api, balanceQuery(""), CredentialsHeader, guessKey(n)).Body.String()
					case transportEvents:
						return firstEvent(t, server.URL+PathGraphQL, guessKey(n), subscription)
					default:
						return converseAs(t, server.URL+PathGraphQL, guessKey(n), `"id":"1"`, `{"id":"1","type":"subscribe","payload":`+subscription+`}`)
					}
				}
				var all sync.WaitGroup
				var limited atomic.Int64
				for n := range 60 {
					all.Go(func() {
						if strings.Contains(ask(n), "RATE_LIMITED") {
							limited.Add(1)
						}
					})
				}
				eventually(t, func() bool { return limited.Load() == 40 && len(venue.asked) == 20 })
				close(venue.answer)
				all.Wait()
				if n := limited.Load(); n != 40 {
					t.Errorf("%d of 60 reads were refused with RATE_LIMITED, want 40", n)
				}
				if got := ask(1000); strings.Contains(got, "RATE_LIMITED") == accepted {
					t.Errorf("other credentials, after the venue has accepted the first 20 (%v): got %s", accepted, got)
				}
			})
		}
	}
}

// TestAFieldThatFailsDoesNotMakeAGuess checks that credentials count as accepted if the venue accepts them for one field of a query
// while another field fails.
func TestAFieldThatFailsDoesNotMakeAGuess(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		cfg, venue := guessConfig(t, accepted)
		close(venue.answer)
		h := New(cfg)
		ask := func(n int, more string) string {
			return post(t, h, balanceQuery(more), CredentialsHeader, guessKey(n)).Body.String()
		}
		if got := ask(1, `tokenPrices(tokenIds: [\"bad\"]) { price }`); !strings.Contains(got, "UPSTREAM_TIMEOUT") {
			t.Fatalf("the query with a failing field: got %s, want UPSTREAM_TIMEOUT", got)
		}
		venue.accepted = false
		for n := range 20 {
			ask(100+n, "")
		}
		venue.accepted = accepted
		if got := ask(1, ""); strings.Contains(got, "RATE_LIMITED") == accepted {
			t.Errorf("the credentials of the first query, which the venue accepts (%v): got %s", accepted, got)
		}
		if got := ask(2, ""); !strings.Contains(got, "RATE_LIMITED") {
			t.Errorf("new credentials after 20 refused guesses: got %s, want RATE_LIMITED", got)
		}
	}
}

// TestRefusedGuessesHaveStatus429 checks the status of a query with one guess too many, for each way in which a query is executed.
func TestRefusedGuessesHaveStatus429(t *testing.T) {
	for _, test := range []struct {
		name   string
		bytes  int64
		header string
	}{{"cached", 1 << 20, "X-Nothing"}, {"not cached", 0, "X-Nothing"}, {"with its cost", 1 << 20, CostHeader}, {"explained", 1 << 20, ExplainHeader}} {
		t.Run(test.name, func(t *testing.T) {
			cfg, venue := guessConfig(t, false)
			close(venue.answer)
			cfg.ResponseBytes, cfg.Explain, cfg.Clock = test.bytes, true, market.SystemClock{}
			h := New(cfg)
			ask := func(n int) *httptest.ResponseRecorder {
				return post(t, h, balanceQuery(""), CredentialsHeader, guessKey(n), test.header, "1")
			}
			for n := range 20 {
				ask(n)
			}
			w := ask(20)
			if a := answerOf(t, w); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || a.Errors[0].Extensions.Code != "RATE_LIMITED" || a.Data != nil {
				t.Errorf("one guess too many: got %d %v %s, want 429, Retry-After and RATE_LIMITED", w.Code, w.Header(), w.Body)
			}
		})
	}
}
