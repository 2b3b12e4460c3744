package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/httpapi"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// branch is a part of the response to wholeQuery. The data of a branch come from one endpoint.
type branch struct {
	// path is the URL path of the endpoint, and endpoint is the last element of this path. The field at is the path of the branch's
	// data in the response.
	endpoint, path, at string
	// errors are the paths of the errors in the response if the endpoint fails.
	errors []string
	// staleAfter is a duration after which the cached data of the branch are no longer fresh. The service still serves public data
	// of this age, marked stale.
	staleAfter time.Duration
}

// wholeBranches are the branches of wholeQuery, in the order in which their errors appear in a response.
var wholeBranches = []branch{
	{"orderbook", "/api/exchange/orderbook", "book", []string{"book.orderbook"}, 5 * time.Second},
	{"price-history", "/api/exchange/price-history", "chart", []string{"chart.history"}, 2 * time.Minute},
	{"market-details", "/api/exchange/market-details", "details", []string{"details"}, 2 * time.Minute},
	{"prices", "/api/exchange/prices", "prices", []string{"prices.0", "prices.1", "prices.2"}, 5 * time.Second},
	{"market-search", "/api/exchange/market-search", "search", []string{"search"}, 20 * time.Second},
	{"spreads", "/api/exchange/spreads", "spreads", []string{"spreads.0", "spreads.1", "spreads.2"}, 5 * time.Second},
	{"balance", "/api/user/balance", "user.balance", []string{"user.balance"}, 5 * time.Second},
	{"history", "/api/user/history", "user.history", []string{"user.history"}, 5 * time.Second},
	{"orders", "/api/user/orders", "user.orders", []string{"user.orders"}, 5 * time.Second},
	{"positions", "/api/user/positions", "user.positions", []string{"user.positions"}, 5 * time.Second},
	{"trades", "/api/user/trades", "user.trades", []string{"user.trades"}, 5 * time.Second},
}

func (b *branch) public() bool { return !strings.HasPrefix(b.at, "user") }

// wholeQuery has one branch for each endpoint.
const wholeQuery = `query ($ids: [String!]!, $id: String!, $market: String!, $a: Address!, $day: Date!) {
  prices: tokenPrices(tokenIds: $ids) { tokenId price freshness { stale } }
  spreads(tokenIds: $ids) { tokenId bestBid bestAsk basis freshness { stale } }
  book: token(tokenId: $id) { orderbook(depth: 20) { bids { price size } asks { price size } freshness { stale } } }
  chart: token(tokenId: $id) { history(from: $day, to: $day) { points { timestamp price } freshness { stale } } }
  search: searchMarkets(first: 5) { nodes { marketId question freshness { stale } } }
  details: market(marketId: $market) { marketId question description freshness { stale } }
  user(address: $a) {
    balance { cashBalance totalValue }
    positions { nodes { tokenId size avgPrice } }
    orders { nodes { orderId side price size filledSize } }
    trades(first: 5) { nodes { tradeId price size } }
    history(first: 5) { nodes { id kind amount } }
  }
}`

const (
	// operationTimeout is the timeout of an operation.
	operationTimeout = 2 * time.Minute
	// callTimeout is the timeout of a call to the venue, in the test cases in which calls hang.
	callTimeout = 3 * time.Second
)

// shortTimeout is the timeout of an operation in the test cases with longCallTimeout, so that the operation times out before its
// calls.
const shortTimeout = 6 * time.Second

// longCallTimeout is a flag for test cases in which no call may time out, even on a busy machine.
const longCallTimeout = "--venue-timeout=90s"

// answerLimit is the time limit for a response that does not wait for a timeout. Even a busy machine needs less time. The limit is
// shorter than operationTimeout and longCallTimeout, so a response that waits for one of these timeouts exceeds the limit.
const answerLimit = time.Minute

// lane is a service whose venue can have faults. The test cases of a lane run one after the other. Several lanes may run at the
// same time.
type lane struct {
	*service
	variables vars
	// whole maps branch.at to the branch's data without faults, formatted by valuesAt.
	whole map[string]string
	// calls are the calls that wholeQuery makes with cold caches and without faults.
	calls calls
	// otherURL is the URL of another host, to which the venue may redirect a call.
	otherURL string
	// otherRequests counts the requests to the host of otherURL.
	otherRequests *atomic.Int64
	reads         *completedReads
}

// completedReads records for each endpoint when the newest completed read started. A read is complete when the service has
// processed its results.
type completedReads struct {
	mu      sync.Mutex
	started map[string]time.Time
}

func (e *completedReads) note(b upstream.Batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, call := range b.Calls {
		if b.Left.After(e.started[call.Endpoint]) {
			e.started[call.Endpoint] = b.Left
		}
	}
}

// instant returns a time that is later than the start of all reads so far. It sleeps, because time in a synctest bubble passes only
// during sleeps.
func (e *completedReads) instant() time.Time {
	time.Sleep(time.Millisecond)
	return time.Now()
}

// completedSince reports whether the endpoint has a completed read that began at the given time or later.
func (e *completedReads) completedSince(endpoint string, at time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.started[endpoint].Before(at)
}

// newLane starts a service with a small venue.
func newLane(t testing.TB, args ...string) *lane {
	t.Helper()
	l := openLane(t, startRigged, args...)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { l.otherRequests.Add(1) }))
	t.Cleanup(other.Close)
	l.otherURL = other.URL + "/elsewhere"
	return l
}

// newPipedLane is like newLane, but for a test in a synctest bubble. The lane has no otherURL.
func newPipedLane(t testing.TB, args ...string) *lane {
	t.Helper()
	return openLane(t, startPiped, args...)
}

func openLane(t testing.TB, start func(testing.TB, time.Time, func(*app.Wiring), ...string) *service, args ...string) *lane {
	t.Helper()
	args = append([]string{
		"--demo-markets=60", "--log-level=error", fmt.Sprint("--venue-timeout=", callTimeout), fmt.Sprint("--request-timeout=", operationTimeout),
	}, args...)
	l := &lane{otherRequests: &atomic.Int64{}, reads: &completedReads{started: make(map[string]time.Time)}}
	l.service = start(t, startTime, func(w *app.Wiring) {
		w.Client.MaxBody = 256 << 10
		w.Client.Rand = func() float64 { return rand.Float64() / 8 } // shortens the waits before retries, which take real time
		observe := w.Reads.Observer
		w.Reads.Observer = func(b upstream.Batch, waited []*request.Log) {
			l.reads.note(b)
			if observe != nil {
				observe(b, waited)
			}
		}
	}, args...)
	ids := l.openTokens(3)
	l.variables = vars{"ids": ids, "id": ids[0], "market": l.openMarkets(1)[0], "a": addressOf3, "day": startTime.AddDate(0, 0, -13).Format(time.DateOnly)}
	var data any
	l.calls = l.callsDuring(func() { data = l.ask(t, wholeQuery, l.variables, keyOf3) })
	l.whole = make(map[string]string)
	for _, b := range wholeBranches {
		l.whole[b.at] = valuesAt(data, b.at)
		if l.calls[b.endpoint][0] != 1 || strings.Contains(l.whole[b.at], "null") || strings.Contains(l.whole[b.at], "[]") {
			t.Fatalf("%s: without a fault, got the calls %v and the data %s, want one call and no missing values", b.endpoint, l.calls[b.endpoint], l.whole[b.at])
		}
	}
	l.wantState(t, data)
	return l
}

// wantState checks that the prices, spreads, book, cash and positions in a response to wholeQuery are those of the venue.
func (l *lane) wantState(t testing.TB, data any) {
	t.Helper()
	for i, id := range l.variables["ids"].([]string) {
		q, _ := l.venue.Quote(id)
		wantText(t, data, fmt.Sprintf("prices.%d.price", i), plain(q.Price))
		wantText(t, data, fmt.Sprintf("spreads.%d.bestBid", i), plain(q.BestBid))
		wantText(t, data, fmt.Sprintf("spreads.%d.bestAsk", i), plain(q.BestAsk))
	}
	wantBook(t, data, "book.orderbook.", l.bookOf(t, l.variables["id"].(string), 20))
	balance, _ := l.venue.Balance(addressOf3)
	wantText(t, data, "user.balance.cashBalance", plain(balance.CashBalance))
	for i, p := range l.venue.Positions(addressOf3) {
		wantText(t, data, fmt.Sprintf("user.positions.nodes.%d.tokenId", i), p.TokenID)
		wantText(t, data, fmt.Sprintf("user.positions.nodes.%d.size", i), plain(p.Size))
	}
}

// valuesAt formats the part of a response at the given path as JSON, without the fields "freshness".
func valuesAt(data any, path string) string {
	var strip func(v any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := make(map[string]any, len(v))
			for name, member := range v {
				if name != "freshness" {
					out[name] = strip(member)
				}
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = strip(v[i])
			}
			return out
		}
		return v
	}
	return asJSON(strip(at(data, path)))
}

// reply is the response to a query, with its duration and the calls to the venue.
type reply struct {
	data   any
	errors []graphError
	took   time.Duration
	calls  calls
}

// try sends a query, and counts the calls that the venue receives before the response arrives. It returns errors instead of failing
// the test, so any goroutine may call it.
func (l *lane) try(query string, variables vars, credentials string) (r reply, err error) {
	var out graphResult
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	began := time.Now()
	r.calls = l.callsDuring(func() { err = l.post(ctx, query, variables, credentials, &out) })
	r.data, r.errors, r.took = out.Data, out.Errors, time.Since(began)
	return r, err
}

// row is a test case. It fails if run returns an error.
type row struct {
	name string
	run  func(l *lane) error
	// alone is true if no other test case may run at the same time, because the memory of this test case is measured.
	alone bool
}

// report collects the errors of a test case.
type report struct{ wrong []error }

func (r *report) add(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf(format, args...))
}

func (r *report) err() error { return errors.Join(r.wrong...) }

// wantWithin adds an error if the response took longer than the given time.
func (r *report) wantWithin(when string, got reply, within time.Duration) {
	if got.took > within {
		r.add("%s: the answer took %v, want it within %v", when, got.took, within)
	}
}

const pricesQuery = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price freshness { stale } } }`

// queryFrom sends a query for tokens from the given client address.
func (s *service) queryFrom(ctx context.Context, from netip.Addr, query string, ids ...string) (r reply, err error) {
	var out graphResult
	began := time.Now()
	err = s.postFrom(ctx, from, query, vars{"ids": ids}, anonymous, &out)
	return reply{data: out.Data, errors: out.Errors, took: time.Since(began)}, err
}

// answerCount returns how many of the requested values arrived. Each other value must have an error RATE_LIMITED with a retry time
// of at most five minutes. The response must arrive within answerLimit.
func (r *reply) answerCount(asked int) (int, error) {
	if r.took > answerLimit {
		return 0, fmt.Errorf("the answer took %v", r.took)
	}
	for _, e := range r.errors {
		if ms := e.Extensions.RetryAfterMs; e.Extensions.Code != "RATE_LIMITED" || ms <= 0 || ms > 5*60_000 {
			return 0, fmt.Errorf("the error %s has the retry time %d ms", e, ms)
		}
	}
	return asked - len(r.errors), nil
}

// TestThrottledPrices reads prices after the venue has refused a call with a Retry-After of five minutes. The service must return
// stale prices until they are five minutes old, and must then refuse the query.
func TestThrottledPrices(t *testing.T) {
	t.Parallel()
	// The venue accepts 40 calls per minute. The clock shows almost the real time, because deadlines are in real time.
	s := startAt(t, time.Now(), longCallTimeout, "--request-timeout=30s", "--demo-markets=300", "--demo-public-per-minute=40", "--cache-stretch=5m", "--log-level=error")
	ids := s.openTokens(6)
	ask := func(when string, stale bool, refused int) {
		before := s.venue.Stats().Requests["/api/exchange/prices"]
		got, err := s.queryFrom(t.Context(), client(1), pricesQuery, ids[:3]...)
		n, wrong := got.answerCount(3)
		if err != nil || wrong != nil || n != 3-refused {
			t.Errorf("%s: got %d prices, want %d: %v, %v", when, n, 3-refused, wrong, err)
		}
		for i, id := range ids[:3] {
			v := at(got.data, fmt.Sprint("tokenPrices.", i))
			if q, _ := s.venue.Quote(id); v != nil && (text(v, "price") != plain(q.Price) || at(v, "freshness.stale") != stale) {
				t.Errorf("%s: a price is %s", when, asJSON(v))
			}
		}
		if asked := s.venue.Stats().Requests["/api/exchange/prices"] - before; asked != 0 && (stale || refused > 0) {
			t.Errorf("%s: the venue got %d calls for prices, want none", when, asked)
		}
	}
	ask("at first", false, 0)
	s.clock.Advance(10 * time.Second)
	s.setFaults(t, faults.Fault{Path: "/api/exchange/prices", Kind: faults.Status, Status: 429, RetryAfter: "300"})
	if got, err := s.queryFrom(t.Context(), client(1), pricesQuery, ids[5]); err != nil || len(got.errors) != 1 {
		t.Errorf("the throttled price: got the GraphQL errors %v and the error %v, want one GraphQL error", got.errors, err)
	}
	s.clock.Advance(50 * time.Second)
	ask("after a minute", true, 0)
	s.clock.Advance(240 * time.Second)
	ask("a second before the end", true, 0)
	s.clock.Advance(2 * time.Second)
	ask("after five minutes", true, 3)
}

// graphResult is a decoded response to a query.
type graphResult struct {
	Data   any
	Errors []graphError
}

// post sends a query from a new client address. It decodes the response into *out, with json.Number for numbers. post returns
// errors instead of failing the test, so any goroutine may call it.
func (s *service) post(ctx context.Context, query string, variables vars, credentials string, out any) error {
	n := requests.Add(1)
	return s.postFrom(ctx, netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), query, variables, credentials, out)
}

// postFrom is like post, but sends the given client address in X-Forwarded-For.
func (s *service) postFrom(ctx context.Context, client netip.Addr, query string, variables vars, credentials string, out any) error {
	body := asJSON(vars{"query": query, "variables": variables})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+httpapi.PathGraphQL, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", client.String())
	// The service may close an unused connection at the moment when the transport begins to use it. Because of this header, the
	// transport then retries the request.
	r.Header.Set("Idempotency-Key", "a query")
	if credentials != anonymous {
		r.Header.Set(httpapi.CredentialsHeader, credentials)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	d.UseNumber()
	return d.Decode(out)
}
