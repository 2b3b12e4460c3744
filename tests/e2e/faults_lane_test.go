package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
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
