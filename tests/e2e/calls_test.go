package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
)

// TestCallsOfAnOperationAreLimited checks that the service refuses an operation that needs too many calls, and makes none of these
// calls. Each uncached price history needs one call.
func TestCallsOfAnOperationAreLimited(t *testing.T) {
	s := start(t, "--limit-calls=3")
	made := s.callsDuring(func() {
		data, errs := s.query(t, `query ($ids: [String!]!) { tokens(tokenIds: $ids) { history { freshness { stale } } } }`, vars{"ids": s.openTokens(4)}, anonymous)
		wantErrors(t, errs, "tokens.0.history BAD_USER_INPUT")
		if data != nil || !strings.Contains(errs[0].Message, "needs at least 4 calls to the venue; at most 3 are accepted") {
			t.Errorf("got the data %v and the errors %+v, want no data and an error about 4 calls", data, errs)
		}
	})
	if len(made) != 0 {
		t.Errorf("a refused operation made the calls %v", made)
	}
}

// TestDocumentedCosts checks the points and calls in the table of docs/limits.md, with a cold cache.
func TestDocumentedCosts(t *testing.T) {
	s := start(t)
	rows := regexp.MustCompile(`(?m)^\| .*\(\.\./examples/(.*)\.graphql\).* \| ([0-9,]+) \| ([0-9]+) \|$`).FindAllStringSubmatch(read(t, "docs/limits.md"), -1)
	if len(rows) < 4 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		variables := vars{}
		decode(t, read(t, "examples/"+row[1]+".json"), &variables)
		if row[1] == "price-board" {
			variables["tokenIds"] = s.openTokens(200)
		}
		s.expireCaches()
		r := s.request(t, asJSON(vars{"query": read(t, "examples/"+row[1]+".graphql"), "variables": variables}), keyOf50)
		r.Header.Set(httpapi.CostHeader, "1")
		var answer struct {
			Extensions struct {
				Cost struct{ Points, UpstreamCalls int }
			}
		}
		decode(t, s.do(t, r).body, &answer)
		points, calls := numberIn(t, row[2]), numberIn(t, row[3])
		// On a busy machine, positions and orders may arrive at different times. The service then needs one more call for prices or
		// for markets.
		if got := answer.Extensions.Cost; got.Points != points || got.UpstreamCalls != calls && got.UpstreamCalls != calls+1 {
			t.Errorf("%s: docs/limits.md says %d points and %d calls, the service says %+v", row[1], points, calls, got)
		}
	}
}

func numberIn(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waves is a venue that expects certain calls at the same time. Each wave is a list of endpoints, named by the last segment of
// their path. The venue responds to a call when all endpoints of the same wave have been called, or after 20 seconds.
type waves struct {
	venue http.Handler
	waves [][]string
	// late is closed when a call has waited for 20 seconds.
	late chan struct{}

	mu        sync.Mutex
	calls     map[string]int
	called    []chan struct{} // the channel with index i is closed when all endpoints of waves[i] have been called
	closeLate sync.Once
}

func newWaves(venue http.Handler, lists ...[]string) *waves {
	w := &waves{venue: venue, waves: lists, late: make(chan struct{}), calls: map[string]int{}}
	for range lists {
		w.called = append(w.called, make(chan struct{}))
	}
	return w
}

// call counts a call. It returns a channel that is closed when the venue may respond. For an endpoint in no wave, the channel is
// w.late.
func (w *waves) call(path string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[path]++
	for i, paths := range w.waves {
		if !slices.Contains(paths, path) {
			continue
		}
		if w.calls[path] == 1 && !slices.ContainsFunc(paths, func(p string) bool { return w.calls[p] == 0 }) {
			close(w.called[i])
		}
		return w.called[i]
	}
	return w.late
}

func (w *waves) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	path := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	select {
	case <-w.call(path):
	case <-time.After(20 * time.Second):
		w.closeLate.Do(func() { close(w.late) })
	}
	w.venue.ServeHTTP(rw, r)
}

func (w *waves) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.calls)
}

const coldPage = `{
  searchMarkets(filter: { status: OPEN }, sort: VOLUME, first: 25) {
    nodes { question tokens { outcome price { price } orderbook(depth: 20) { bids { price size } asks { price size } } history { points { timestamp price } } } }
  }
}`

// TestColdReadsTakeTwoWaves checks that a query with empty caches makes as few calls as the venue's API allows. Calls that do not
// depend on each other must be concurrent.
func TestColdReadsTakeTwoWaves(t *testing.T) {
	for _, test := range []struct {
		name, query, key string
		vars             vars
		nodes            string
		items            int
		waves            [][]string
		want             map[string]int
	}{
		{
			name: "page of 25 markets", query: coldPage, nodes: "searchMarkets.nodes", items: 25,
			waves: [][]string{{"market-search"}, {"prices", "orderbook", "price-history"}},
			want:  map[string]int{"market-search": 1, "prices": 1}, // each book and each price history also takes one call
		},
		{
			name: "portfolio of 50 positions", query: portfolioQuery, key: keyOf50, vars: vars{"address": addressOf50}, nodes: "user.positions.nodes", items: 50,
			waves: [][]string{{"balance", "positions"}, {"market-details", "prices"}},
			want:  map[string]int{"balance": 1, "positions": 1, "market-details": 1, "prices": 1},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWaves(demo.New(demo.Config{Seed: 1}), test.waves...)
			v := httptest.NewServer(w)
			t.Cleanup(v.Close)
			s := start(t, "--venue-url="+v.URL, "--venue-timeout=30s", "--request-timeout=60s", "--limit-cost=200000", "--venue-public-per-minute=0")
			data := s.ask(t, test.query, test.vars, test.key)
			if n := len(list(data, test.nodes)); n != test.items {
				t.Errorf("%d items, want %d", n, test.items)
			}
			if test.items == 25 {
				tokens := 0
				for _, m := range list(data, test.nodes) {
					tokens += len(list(m, "tokens"))
				}
				test.want["orderbook"], test.want["price-history"] = tokens, tokens
			}
			select {
			case <-w.late:
				t.Errorf("calls of a wave were made one after the other: %v", w.counts())
			default:
			}
			if got := w.counts(); !maps.Equal(got, test.want) {
				t.Errorf("calls %v, want %v", got, test.want)
			}
		})
	}
}
