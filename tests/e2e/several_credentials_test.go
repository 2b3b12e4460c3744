package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
	"oddsgraph/resolvers"
)

// leaks notes the requests that have a client's credentials.
type leaks struct {
	mu       sync.Mutex
	found    []string
	requests int
}

func (l *leaks) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.requests++
		for _, name := range []string{"X-Api-Credentials", "Authorization", httpapi.CredentialsHeader} {
			if r.Header.Get(name) != "" {
				l.found = append(l.found, r.URL.Path+" "+name)
			}
		}
		if strings.Contains(r.URL.RawQuery, "redentials") {
			l.found = append(l.found, r.URL.String())
		}
		l.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

// TestNoCredentialsReachAnotherVenue runs all examples and the subscriptions to accounts with credentials and with a bearer token. No
// request and no frame to a further venue may contain them.
func TestNoCredentialsReachAnotherVenue(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"generic", "polymarket", "kalshi"} {
		t.Run(driver, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen leaks
				a, b := simulate(t, "generic", demo.Config{}, nil), simulate(t, driver, demo.Config{}, seen.watch)
				accounts := "--accounts-file=" + newAccountsFile(t).path
				withHeader, withToken := readSeveral(t, a, b, nil, accounts).withStreams(t), readSeveral(t, a, b, nil, accounts).withStreams(t)
				send := func(query string, variables vars) {
					body := asJSON(vars{"query": query, "variables": variables})
					token := withToken.request(t, body, anonymous)
					token.Header.Set("Authorization", "Bearer token-of-50")
					for s, r := range map[*service]*http.Request{withHeader: withHeader.request(t, body, keyOf50), withToken: token} {
						if strings.HasPrefix(query, "subscription") {
							s.stream(t, query, r)
						} else if got := s.do(t, r); got.status != http.StatusOK {
							t.Errorf("got the status %d: %.200s", got.status, got.body)
						}
					}
				}
				for _, file := range exampleFiles(t) {
					send(b.exampleOf(t, file, "b:"))
				}
				for _, name := range []string{"portfolioChanged", "ordersChanged", "userTradesAdded", "balanceChanged"} {
					send(`subscription { `+name+`(address: "`+addressOf50+`", venue: "b") { reason } }`, nil)
				}
				const both = `query ($a: Address!) { user(address: $a) { balance { cashBalance } } other: user(address: $a, venue: "b") { balance { reportedTotalValue } positions { totalCount } }
					searchMarkets(venues: ["generic", "b"], first: 4) { nodes { venue tokens { price { price } } } } }`
				send(both, vars{"a": addressOf50})
				id := a.engine.Tokens()[0].TokenID
				send(`subscription ($ids: [String!]!) { pricesChanged(tokenIds: $ids) { reason } }`, vars{"ids": []string{id, "b:" + b.id(id)}})
				time.Sleep(20 * time.Second)
				for _, one := range seen.found {
					t.Errorf("the further venue got credentials: %s", one)
				}
				b.mu.Lock()
				defer b.mu.Unlock()
				for _, frame := range b.frames {
					if bytes.Contains(frame, []byte("demo-50")) || bytes.Contains(frame, []byte("secret")) {
						t.Errorf("the further venue got the frame %s", frame)
					}
				}
				if seen.requests < 10 || driver == "generic" && len(b.frames) == 0 {
					t.Errorf("the further venue got %d requests and %d frames", seen.requests, len(b.frames))
				}
			})
		})
	}
}

// askFrom sends a query from an address that all calls share.
func (s *service) askFrom(t *testing.T, query, credentials string) string {
	t.Helper()
	r := s.request(t, asJSON(vars{"query": query}), credentials)
	r.Header.Set("X-Forwarded-For", "192.0.2.7")
	return s.do(t, r).body
}

// TestGuessAtPublicVenue checks that a further venue with public accounts, which accepts everybody, confirms no credentials.
func TestGuessAtPublicVenue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := simulate(t, "generic", demo.Config{Markets: 40}, nil), simulate(t, "polymarket", demo.Config{Markets: 40}, nil)
		s := readSeveral(t, a, b, nil)
		own, public := `{ user(address: "`+addressOf3+`") { balance { cashBalance } } }`, `{ user(address: "`+addressOf3+`", venue: "b") { positions { totalCount } } }`
		guess := func(n string) string { return credentials("demo-3", "secret", "guess "+n) }
		if got := s.askFrom(t, public, guess("first")); strings.Contains(got, "errors") {
			t.Fatalf("a public account got %s", got)
		}
		for n := range 45 {
			s.askFrom(t, own, guess(string(rune('A'+n))))
		}
		if got := s.askFrom(t, public, guess("first")); !strings.Contains(got, "RATE_LIMITED") {
			t.Errorf("guesses are used up, and credentials that only the public venue has seen got %s", got)
		}
	})
}

// TestRefusalsOfAnotherVenue checks that a further venue that refuses everybody locks no client of the first venue out.
func TestRefusalsOfAnotherVenue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuse := func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, `{"error":"unauthorized"}`, http.StatusUnauthorized)
			})
		}
		a, b := simulate(t, "generic", demo.Config{Markets: 40}, nil), simulate(t, "polymarket", demo.Config{Markets: 40}, refuse)
		s := readSeveral(t, a, b, nil, "--accounts-file="+newAccountsFile(t).path)
		for range 60 {
			got := s.askFrom(t, `{ user(address: "`+addressOf3+`") { balance { cashBalance } } other: user(address: "`+addressOf3+`", venue: "b") { positions { totalCount } } }`, keyOf3)
			if !strings.Contains(got, `"cashBalance":"`) || !strings.Contains(got, `"venue":"b"`) {
				t.Fatalf("got %s, want the balance and an error of the further venue", got)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// TestTimeOfTwoVenues checks that an operation over two venues takes hardly longer than one over the slower venue, whose steps must not
// wait for the other one's.
func TestTimeOfTwoVenues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := simulate(t, "generic", demo.Config{Markets: 60, Latency: 50 * time.Millisecond}, nil)
		b := simulate(t, "generic", demo.Config{Markets: 60, Latency: 200 * time.Millisecond}, nil)
		s := readSeveral(t, a, b, nil)
		s.venue = a.engine
		took := func(query string, variables vars) time.Duration {
			time.Sleep(afterCaches)
			began := time.Now()
			s.ask(t, query, variables, anonymous)
			return time.Since(began)
		}
		ids := s.openTokens(4)
		further := []string{"b:" + ids[0], "b:" + ids[1], "b:" + ids[2], "b:" + ids[3]}
		for steps, fields := range map[string]string{
			"1, prices": `price { price } spread { bestBid }`, "1, books": `orderbook(depth: 1) { bids { price } }`, "1, histories": `history { points { price } }`,
			"2": `market { tokens { price { price } } }`,
			"3": `market { event { markets(first: 4) { nodes { tokens { price { price } } } } } }`,
		} {
			query := `query ($ids: [String!]!) { tokens(tokenIds: $ids) { ` + fields + ` } }`
			first, second, both := took(query, vars{"ids": ids}), took(query, vars{"ids": further}), took(query, vars{"ids": append(further, ids...)})
			if both > max(first, second)*11/10 || second < 200*time.Millisecond {
				t.Errorf("%s steps: both venues take %v, the first one %v and the further one %v", steps, both, first, second)
			}
		}
		for _, fields := range []string{`marketId`, `tokens { price { price } }`, `event { markets(first: 4) { nodes { description } } }`} {
			query := `query ($venues: [String!]!) { searchMarkets(venues: $venues, first: 8) { nodes { ` + fields + ` } } }`
			slower, both := took(query, vars{"venues": []string{"b"}}), took(query, vars{"venues": []string{"generic", "b"}})
			if both > slower*11/10 {
				t.Errorf("the search for %s takes %v for both venues and %v for the further one", fields, both, slower)
			}
		}
	})
}

// TestMoneyIsOfOneVenue checks in the schema that no field over several ids or venues has an amount beside its rows. So nothing adds the
// money of two venues: all sums belong to a user, who has one venue.
func TestMoneyIsOfOneVenue(t *testing.T) {
	schema, checked := graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{}}).Schema(), 0
	for _, root := range []*ast.Definition{schema.Query, schema.Subscription} {
		for _, field := range root.Fields {
			several := slices.ContainsFunc(field.Arguments, func(a *ast.ArgumentDefinition) bool {
				return a.Type.Elem != nil && (strings.HasSuffix(strings.ToLower(a.Name), "ids") || a.Name == "venues")
			})
			if !several || field.Name == "portfolioChanged" {
				continue
			}
			checked++
			for _, sum := range schema.Types[field.Type.Name()].Fields {
				if sum.Type.Name() == "Decimal" && field.Type.Elem == nil && sum.Name != "previousPrice" {
					t.Errorf("%s.%s is one amount for several ids", field.Name, sum.Name)
				}
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d fields take several ids", checked)
	}
}
