package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
)

// branch is a part of the answer that is read from one endpoint.
type branch struct {
	// endpoint is the last element of path, the URL path. at is the branch's path in the data.
	endpoint, path, at string
	// errors are the paths of its errors.
	errors []string
	// past is a time after which the branch is no longer fresh. Public data are still served stale then.
	past time.Duration
}

// wholeBranches are the branches of wholeQuery, in the order of their errors.
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

// wholeQuery reads each endpoint for one branch.
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

// operationTime is the timeout of a lane's operations. callTime is the timeout of each venue call in lanes where calls
// hang.
const (
	operationTime = 2 * time.Minute
	callTime      = 3 * time.Second
)

// shortTime is the timeout of operations that end before a hanging call does.
const shortTime = 6 * time.Second

// unhurried is the flag of lanes where no call hangs. Its long timeout allows for a busy machine.
const unhurried = "--venue-timeout=90s"

// prompt is the time limit for an answer that waits for nothing. A busy machine needs less, and an answer that waits
// for a call or an operation to time out needs more.
const prompt = time.Minute

// lane is a service over a venue with faults, with its answer from before the faults.
type lane struct {
	*service
	variables vars
	// whole holds the data of each branch without faults, calls the venue's calls for them.
	whole map[string]string
	calls calls
	// elsewhere is the URL of another host, strays its requests.
	elsewhere string
	strays    *atomic.Int64
	// within is the time limit for an operation, with its answer.
	within time.Duration
	// budget is the rate limit of the venue; nil without one.
	budget *ratelimit.Budget
	// flying counts the book calls in flight. openWatched sets it.
	flying *atomic.Int64
	reads  *endedReads
}

// endedReads records, by endpoint, when the latest of the completed reads began. A read is complete when its results
// have been processed.
type endedReads struct {
	mu   sync.Mutex
	left map[string]time.Time
}

func (e *endedReads) note(b market.Batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, call := range b.Calls {
		if b.Left.After(e.left[call.Endpoint]) {
			e.left[call.Endpoint] = b.Left
		}
	}
}

// instant returns a time after the start of all reads so far. It sleeps, since time may stand still in a bubble.
func (e *endedReads) instant() time.Time {
	time.Sleep(time.Millisecond)
	return time.Now()
}

// since reports whether a read of an endpoint that began at the given time or later is complete.
func (e *endedReads) since(endpoint string, at time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.left[endpoint].Before(at)
}

// newLane starts a service on a small venue. rig may be nil.
func newLane(t testing.TB, rig func(*app.Wiring), args ...string) *lane {
	t.Helper()
	return newLaneAt(t, time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), rig, args...)
}

// newLaneAt is newLane with a start time.
func newLaneAt(t testing.TB, now time.Time, rig func(*app.Wiring), args ...string) *lane {
	t.Helper()
	l := openLane(t, startRigged, now, rig, args...)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { l.strays.Add(1) }))
	t.Cleanup(other.Close)
	l.elsewhere = other.URL + "/elsewhere"
	return l
}

// newPipedLane is newLane in a synctest bubble, without another host.
func newPipedLane(t testing.TB, args ...string) *lane {
	t.Helper()
	return openLane(t, startPiped, time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), nil, args...)
}

func openLane(t testing.TB, start func(testing.TB, time.Time, func(*app.Wiring), ...string) *service, now time.Time, rig func(*app.Wiring), args ...string) *lane {
	t.Helper()
	args = append([]string{
		"--demo-markets=60", "--log-level=error", "--venue-max-body=256KiB", fmt.Sprint("--venue-timeout=", callTime), fmt.Sprint("--request-timeout=", operationTime),
	}, args...)
	l := &lane{strays: &atomic.Int64{}, flying: &atomic.Int64{}, reads: &endedReads{left: make(map[string]time.Time)}, within: operationTime}
	l.service = start(t, now, func(w *app.Wiring) {
		w.Client.Rand = func() float64 { return rand.Float64() / 8 } // retries wait in real time, so shorten their wait
		if rig != nil {
			rig(w)
		}
		observe := w.Reads.Observer
		w.Reads.Observer = func(b market.Batch, waited []*market.Journal) {
			l.reads.note(b)
			if observe != nil {
				observe(b, waited)
			}
		}
		admission := w.Reads.Admission
		if a, changed := admission.(admitting); changed {
			admission = a.Admission
		}
		l.budget, _ = admission.(*ratelimit.Budget)
	}, args...)
	ids := l.openTokens(3)
	l.variables = vars{"ids": ids, "id": ids[0], "market": l.openMarkets(1)[0], "a": addressOf3, "day": now.AddDate(0, 0, -13).Format(time.DateOnly)}
	var data any
	l.calls = l.counted(func() { data = l.ask(t, wholeQuery, l.variables, keyOf3) })
	l.whole = make(map[string]string)
	for _, b := range wholeBranches {
		l.whole[b.at] = valuesAt(data, b.at)
		if l.calls[b.endpoint][0] != 1 || strings.Contains(l.whole[b.at], "null") || strings.Contains(l.whole[b.at], "[]") {
			t.Fatalf("%s: %v calls, %s", b.endpoint, l.calls[b.endpoint], l.whole[b.at])
		}
	}
	l.wantState(t, data)
	return l
}

// wantState compares an answer with the venue's state.
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

// valuesAt formats a part of an answer without its freshness.
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

// reply is what a client received.
type reply struct {
	data   any
	errors []graphError
	took   time.Duration
	calls  calls
}

// try sends a query and counts the venue's calls meanwhile. It returns errors instead of failing the test, so any
// goroutine may call it.
func (l *lane) try(query string, variables vars, credentials string) (r reply, err error) {
	var out struct {
		Data   any          `json:"data"`
		Errors []graphError `json:"errors"`
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.within)
	defer cancel()
	began := time.Now()
	r.calls = l.counted(func() { err = l.post(ctx, query, variables, credentials, &out) })
	r.data, r.errors, r.took = out.Data, out.Errors, time.Since(began)
	return r, err
}

// row is one case of the matrix. run returns what is wrong.
type row struct {
	name string
	run  func(l *lane) error
	// open starts the row's own lane; nil if the row shares one.
	open func(t testing.TB, rig func(*app.Wiring)) *lane
	// alone: no other row runs meanwhile, so that the row's memory can be measured.
	alone bool
}

// report collects what is wrong with a row.
type report struct{ wrong []error }

func (r *report) f(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf(format, args...))
}

func (r *report) err() error { return errors.Join(r.wrong...) }

// timely reports an answer that took too long.
func (r *report) timely(when string, got reply, within time.Duration) {
	if got.took > within {
		r.f("%s: the answer took %v, want it within %v", when, got.took, within)
	}
}

// fault is a way in which an endpoint can fail.
type fault struct {
	name string
	demo.Fault
	code string
	// passing: the client retries the call. wait is the Retry-After of the venue.
	passing bool
	wait    time.Duration
	// unclear: the client may conclude that the venue does not support lists.
	unclear bool
	// bulk: the venue sends tens of megabytes.
	bulk bool
}

var faults = []fault{
	{name: "429 with seconds", Fault: demo.Fault{Kind: demo.FaultStatus, Status: 429, RetryAfter: "7"}, code: "RATE_LIMITED", wait: 7 * time.Second},
	{name: "429 with a date", Fault: demo.Fault{Kind: demo.FaultStatus, Status: 429, RetryAfter: inSeconds}, code: "RATE_LIMITED", wait: 9 * time.Second},
	{name: "429 with 0", Fault: demo.Fault{Kind: demo.FaultStatus, Status: 429, RetryAfter: "0"}, code: "RATE_LIMITED"},
	{name: "429 without a word", Fault: demo.Fault{Kind: demo.FaultStatus, Status: 429, Body: "empty"}, code: "RATE_LIMITED"},
	{name: "429 as HTML", Fault: demo.Fault{Kind: demo.FaultStatus, Status: 429, Body: "html"}, code: "RATE_LIMITED"},
	{name: "500", Fault: demo.Fault{Kind: demo.FaultStatus}, code: "UPSTREAM_UNAVAILABLE"},
	{name: "503", Fault: demo.Fault{Kind: demo.FaultStatus, Status: 503}, code: "UPSTREAM_UNAVAILABLE", passing: true},
	{name: "HTML", Fault: demo.Fault{Kind: demo.FaultHTML}, code: "UPSTREAM_BAD_RESPONSE"},
	{name: "empty body", Fault: demo.Fault{Kind: demo.FaultEmpty}, code: "UPSTREAM_BAD_RESPONSE"},
	{name: "truncated JSON", Fault: demo.Fault{Kind: demo.FaultTruncated}, code: "UPSTREAM_BAD_RESPONSE", passing: true},
	{name: "wrong types", Fault: demo.Fault{Kind: demo.FaultWrongTypes}, code: "UPSTREAM_BAD_RESPONSE", unclear: true},
	{name: "missing fields", Fault: demo.Fault{Kind: demo.FaultMissingFields}, code: "UPSTREAM_BAD_RESPONSE", unclear: true},
	{name: "200 with success:false", Fault: demo.Fault{Kind: demo.FaultSuccessFalse}, code: "UPSTREAM_UNAVAILABLE"},
	{name: "200 with error", Fault: demo.Fault{Kind: demo.FaultErrorOnly}, code: "UPSTREAM_UNAVAILABLE", unclear: true},
	{name: "hang", Fault: demo.Fault{Kind: demo.FaultHang}, code: "UPSTREAM_TIMEOUT"},
	{name: "hang in the body", Fault: demo.Fault{Kind: demo.FaultHangBody}, code: "UPSTREAM_TIMEOUT"},
	{name: "slow drip", Fault: demo.Fault{Kind: demo.FaultDrip, DelayMs: 500}, code: "UPSTREAM_TIMEOUT"},
	{name: "reset in the body", Fault: demo.Fault{Kind: demo.FaultReset}, code: "UPSTREAM_UNAVAILABLE", passing: true},
	{name: "refused", Fault: demo.Fault{Kind: demo.FaultRefused}, code: "UPSTREAM_UNAVAILABLE", passing: true},
	{name: "64 MiB body", Fault: demo.Fault{Kind: demo.FaultLarge}, code: "UPSTREAM_BAD_RESPONSE", bulk: true},
	{name: "gzip bomb", Fault: demo.Fault{Kind: demo.FaultGzipBomb}, code: "UPSTREAM_BAD_RESPONSE", bulk: true},
	{name: "large header", Fault: demo.Fault{Kind: demo.FaultLargeHeader}, code: "UPSTREAM_UNAVAILABLE"},
	{name: "redirect to another host", Fault: demo.Fault{Kind: demo.FaultRedirect, Status: 307, Location: otherHost}, code: "UPSTREAM_BAD_RESPONSE"},
}

// Placeholders in faults. A lane replaces them by a date nine seconds ahead and by its other host.
const (
	inSeconds = "in 9 seconds"
	otherHost = "http://elsewhere.invalid/"
)

// at returns the fault for the lane's venue, with placeholders replaced.
func (f *fault) at(l *lane, b *branch) demo.Fault {
	out := f.Fault
	out.Path = b.path
	if out.RetryAfter == inSeconds {
		out.RetryAfter = l.clock.Now().Add(9 * time.Second).Format(http.TimeFormat)
	}
	if out.Location == otherHost {
		out.Location = l.elsewhere
	}
	return out
}

// attempts returns the least and the most calls for a branch with the fault.
func (f *fault) attempts(b *branch) (least, most int64) {
	switch {
	case f.passing:
		return 3, 3
	case f.unclear && (b.endpoint == "spreads" || b.endpoint == "market-details"):
		return 1, 2 // the client tries once whether the venue supports lists
	}
	return 1, 1
}

// drifts returns the rows in which an endpoint uses another format.
func drifts(b *branch) (rows []row) {
	for _, kind := range []demo.FaultKind{demo.FaultUnknownFields, demo.FaultText, demo.FaultNested} {
		rows = append(rows, row{name: fmt.Sprintf("%s, %s", b.endpoint, kind), run: func(l *lane) error { return l.drift(b, kind) }})
	}
	if len(b.errors) > 1 {
		rows = append(rows, row{name: b.endpoint + ", a bad element", run: func(l *lane) error { return l.badElement(b) }})
	}
	return rows
}

// rows returns the rows of an endpoint with the fault.
func (f *fault) rows(b *branch) []row {
	if b.endpoint == "spreads" && f.code != "RATE_LIMITED" {
		return []row{
			{name: fmt.Sprintf("%s, %s, cold", b.endpoint, f.name), run: func(l *lane) error { return l.coldFromBooks(b, f) }, alone: f.bulk},
			{name: fmt.Sprintf("%s, %s, warm", b.endpoint, f.name), run: func(l *lane) error { return l.warmFromBooks(b, f) }, alone: f.bulk},
		}
	}
	return []row{
		{name: fmt.Sprintf("%s, %s, cold", b.endpoint, f.name), run: func(l *lane) error { return l.cold(b, f) }, alone: f.bulk},
		{name: fmt.Sprintf("%s, %s, warm", b.endpoint, f.name), run: func(l *lane) error { return l.warm(b, f) }, alone: f.bulk},
	}
}

// hangs reports whether the call times out.
func (f *fault) hangs() bool { return f.code == "UPSTREAM_TIMEOUT" }

// within returns the time limit for an operation with the fault. Without a fault (nil), it waits for nothing. Both are
// far below operationTime.
func (f *fault) within() time.Duration {
	if f != nil && f.hangs() {
		return callTime + prompt
	}
	return prompt
}

// cold tests a branch that is not cached.
func (l *lane) cold(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{f.at(l, b)}); err != nil {
		return err
	}
	got := l.fails(&r, "cold", b, f)
	for endpoint, n := range l.calls {
		if endpoint != b.endpoint && got.calls[endpoint][0] > n[0] { // fewer if the refresh of the row before has just ended
			r.f("%s beside it was asked %d times, want %d", endpoint, got.calls[endpoint][0], n[0])
		}
	}
	if f.code != "UPSTREAM_BAD_RESPONSE" { // these failures start a backoff
		again := l.fails(&r, "at the same instant", b, nil)
		if n := again.calls[b.endpoint][0]; n != 0 {
			r.f("at the same instant the venue was asked %d times more", n)
		}
		if wait := f.wait - time.Second; wait > 0 {
			l.clock.advance(wait)
			if n := l.fails(&r, "before its time", b, nil).calls[b.endpoint][0]; n != 0 {
				r.f("a second before its time the venue was asked %d times more", n)
			}
		}
	}
	l.recovers(&r, b, f)
	return r.err()
}

// ofBooks rewrites the expected spreads as if they came from order books.
func ofBooks(values string) string { return strings.ReplaceAll(values, `"VENUE"`, `"ORDER_BOOK"`) }

// fromBooks sends wholeQuery while spreads fail, and expects them from order books, with a call for each token.
func (l *lane) fromBooks(r *report, when string, b *branch, f *fault) reply {
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		r.f("%s: %w", when, err)
		return got
	}
	r.timely(when, got, f.within())
	for _, e := range got.errors {
		r.f("%s: %s: %s", when, e, e.Message)
	}
	if values, want := valuesAt(got.data, b.at), ofBooks(l.whole[b.at]); values != want {
		r.f("%s: %s is %.300s, want %.300s", when, b.at, values, want)
	}
	for path := range strings.SplitSeq(b.freshness(got.data), " ") {
		if at(got.data, path) != false {
			r.f("%s: %s is marked stale", when, path)
		}
	}
	l.others(r, when, b, got.data)
	if n := l.strays.Swap(0); n != 0 {
		r.f("%s: another host was asked %d times", when, n)
	}
	return got
}

// coldFromBooks tests spreads that are not cached while they fail.
func (l *lane) coldFromBooks(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{f.at(l, b)}); err != nil {
		return err
	}
	got := l.fromBooks(&r, "cold", b, f)
	least, most := f.attempts(b)
	if n := got.calls[b.endpoint][0]; n < least || n > most {
		r.f("the venue was asked %d times, want %d to %d", n, least, most)
	}
	for endpoint, n := range l.calls {
		if endpoint == "orderbook" {
			n[0] += int64(len(b.errors))
		}
		if endpoint != b.endpoint && got.calls[endpoint][0] > n[0] {
			r.f("%s was asked %d times, want %d", endpoint, got.calls[endpoint][0], n[0])
		}
	}
	if n := l.fromBooks(&r, "at the same instant", b, nil).calls; n[b.endpoint][0] != 0 || n["orderbook"][0] != 0 {
		r.f("at the same instant the venue was asked %v more", n)
	}
	l.prepare(&r) // drops the spreads that came from books
	l.recovers(&r, b, f)
	return r.err()
}

// warmFromBooks tests expired spreads while they fail. The first answer has stale spreads. It starts a refresh, so a
// later answer has spreads from books.
func (l *lane) warmFromBooks(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	l.intact(&r, "warming up")
	l.clock.advance(b.past)
	if err := l.venue.SetFaults([]demo.Fault{f.at(l, b)}); err != nil {
		return err
	}
	began := l.reads.instant()
	l.intact(&r, "stale")
	if !until(patience, func() bool { return l.reads.since(b.endpoint, began) }) {
		r.f("no refresh has ended")
	}
	l.fromBooks(&r, "refreshed", b, f)
	l.prepare(&r)
	l.recovers(&r, b, f)
	return r.err()
}

// late returns the row of an endpoint that hangs for longer than the operation's timeout.
func late(b *branch) row {
	return row{name: b.endpoint + ", hang past the operation's time", run: func(l *lane) error { return l.hurried(b) }}
}

// hurried tests a branch that hangs for longer than the operation's timeout.
func (l *lane) hurried(b *branch) error {
	var r report
	l.prepare(&r)
	f := fault{Fault: demo.Fault{Kind: demo.FaultHang}, code: "UPSTREAM_TIMEOUT"}
	if err := l.venue.SetFaults([]demo.Fault{f.at(l, b)}); err != nil {
		return err
	}
	l.fails(&r, "cold", b, &f)
	if err := l.venue.SetFaults(nil); err != nil {
		return err
	}
	l.intact(&r, "when it is back") // the call was cancelled and has not failed, so there is no backoff
	return r.err()
}

// drift tests another format of the venue, which must not change the answer.
func (l *lane) drift(b *branch, kind demo.FaultKind) error {
	var r report
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{{Path: b.path, Kind: kind}}); err != nil {
		return err
	}
	l.intact(&r, "in other words")
	return r.err()
}

// badElement tests a list with one unreadable element.
func (l *lane) badElement(b *branch) error {
	var r report
	l.prepare(&r)
	bad := l.variables["ids"].([]string)[1]
	if err := l.venue.SetFaults([]demo.Fault{{Path: b.path, Kind: demo.FaultWrongTypes, TokenID: bad}}); err != nil {
		return err
	}
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		return err
	}
	r.timely("a bad element", got, prompt)
	want := []string{b.errors[1] + " UPSTREAM_BAD_RESPONSE"}
	if b.endpoint == "spreads" { // the spread comes from the token's order book
		want = nil
		if v := valuesAt(got.data, b.errors[1]); !strings.Contains(ofBooks(l.whole[b.at]), v) || v == "null" {
			r.f("element 1 is %s", v)
		}
	}
	if !slices.Equal(errorTexts(got.errors), want) {
		r.f("errors %q, want %q", errorTexts(got.errors), want)
	}
	for _, i := range []int{0, 2} {
		if v := valuesAt(got.data, fmt.Sprint(b.at, ".", i)); !strings.Contains(l.whole[b.at], v) || v == "null" {
			r.f("element %d is %s", i, v)
		}
	}
	l.others(&r, "beside it", b, got.data)
	return r.err()
}

func errorTexts(errors []graphError) []string {
	texts := make([]string, len(errors))
	for i, e := range errors {
		texts[i] = e.String()
	}
	return texts
}

// warm tests a branch that is cached and expired.
func (l *lane) warm(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	l.intact(&r, "warming up")
	l.clock.advance(b.past)
	if err := l.venue.SetFaults([]demo.Fault{f.at(l, b)}); err != nil {
		return err
	}
	if b.public() {
		before, began := l.asked(b), l.reads.instant()
		got := l.intact(&r, "stale")
		for path := range strings.SplitSeq(b.freshness(got.data), " ") {
			if at(got.data, path) != true {
				r.f("%s is not marked stale in %s", path, asJSON(at(got.data, b.at)))
			}
		}
		least, most := f.attempts(b)
		// The refresh runs in the background, and waits between its attempts. It parses dates of the venue with the
		// lane's clock, so the clock must not advance before the refresh has ended.
		if !until(patience, func() bool { return l.reads.since(b.endpoint, began) }) {
			r.f("no refresh has ended")
		}
		if n := l.asked(b) - before; n < least || n > most {
			r.f("refreshing it took %d calls, want %d to %d", n, least, most)
		}
		l.clock.advance(3 * time.Hour)
		if err := l.venue.SetFaults([]demo.Fault{f.at(l, b)}); err != nil {
			return err
		}
	}
	l.fails(&r, "past its stale time", b, f)
	l.recovers(&r, b, f)
	return r.err()
}

// freshness returns the paths of values in the branch that are marked stale.
func (b *branch) freshness(data any) string {
	switch b.endpoint {
	case "prices", "spreads":
		return strings.Join([]string{b.at + ".0.freshness.stale", b.at + ".1.freshness.stale", b.at + ".2.freshness.stale"}, " ")
	case "orderbook":
		return "book.orderbook.freshness.stale"
	case "price-history":
		return "chart.history.freshness.stale"
	case "market-search":
		return "search.nodes.0.freshness.stale"
	}
	return b.at + ".freshness.stale"
}

// prepare removes the faults and cached values of the row before.
func (l *lane) prepare(r *report) {
	if err := l.venue.SetFaults(nil); err != nil {
		r.f("%w", err)
	}
	l.clock.advance(3 * time.Hour)
}

// asked returns how many calls the venue has received for a branch.
func (l *lane) asked(b *branch) int64 { return l.venue.Stats().Requests[b.path] }

// fails sends wholeQuery while an endpoint fails. Only its branch has errors, the others are unchanged. If f is not
// nil, it also checks the number of calls.
func (l *lane) fails(r *report, when string, b *branch, f *fault) reply {
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		r.f("%s: %w", when, err)
		return got
	}
	r.timely(when, got, f.within())
	paths, codes := []string{}, []string{}
	for _, e := range got.errors {
		path, code, _ := strings.Cut(e.String(), " ")
		paths = append(paths, path)
		codes = append(codes, code)
		if f != nil && f.wait > 0 && e.Extensions.RetryAfterMs != f.wait.Milliseconds() {
			r.f("%s: retryAfterMs is %d", when, e.Extensions.RetryAfterMs)
		}
	}
	if !slices.Equal(paths, b.errors) {
		r.f("%s: errors at %q, want them at %q", when, paths, b.errors)
	}
	for _, code := range codes {
		if f != nil && code != f.code {
			r.f("%s: an error %s, want %s", when, code, f.code)
		}
	}
	for _, path := range b.errors {
		if at(got.data, path) != nil {
			r.f("%s: %s is %s", when, path, asJSON(at(got.data, path)))
		}
	}
	l.others(r, when, b, got.data)
	if f != nil {
		least, most := f.attempts(b)
		if n := got.calls[b.endpoint][0]; n > most || n < least && when == "cold" { // it may join a refresh in flight
			r.f("%s: the venue was asked %d times, want %d to %d", when, n, least, most)
		}
	}
	if n := l.strays.Swap(0); n != 0 {
		r.f("%s: another host was asked %d times", when, n)
	}
	return got
}

// others compares all other branches with their data before the faults.
func (l *lane) others(r *report, when string, b *branch, data any) {
	for _, other := range wholeBranches {
		if b == nil || other.at != b.at {
			if got := valuesAt(data, other.at); got != l.whole[other.at] {
				r.f("%s: %s is %.300s, want %.300s", when, other.at, got, l.whole[other.at])
			}
		}
	}
}

// intact sends wholeQuery and expects all data.
func (l *lane) intact(r *report, when string) reply {
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		r.f("%s: %w", when, err)
		return got
	}
	r.timely(when, got, prompt)
	for _, e := range got.errors {
		r.f("%s: %s: %s", when, e, e.Message)
	}
	l.others(r, when, nil, got.data)
	return got
}

// firstBackoff is the longest wait after a first failure without Retry-After.
const firstBackoff = 250 * time.Millisecond

// recovers sends wholeQuery one backoff after the fault has ended.
func (l *lane) recovers(r *report, b *branch, f *fault) {
	if err := l.venue.SetFaults(nil); err != nil {
		r.f("%w", err)
	}
	l.clock.advance(max(f.wait, firstBackoff))
	got := l.intact(r, "one backoff later")
	if n := got.calls[b.endpoint][0]; n != 1 {
		r.f("one backoff later the venue was asked %d times, want once", n)
	}
}

// lanes run at the same time, each with rows of its own.
type lanes []laneOf

type laneOf struct {
	*lane
	rows []row
}

// run runs all rows and reports the failed ones. Rows with alone run at the end, one at a time. It checks the memory of
// all other rows together, and of each row with alone.
func (all lanes) run(t testing.TB) (outcomes map[string]error) {
	t.Helper()
	outcomes = make(map[string]error)
	var mu sync.Mutex
	note := func(r *row, err error) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[r.name] = err
	}
	err := leveled(math.MaxInt64, uint64(len(all))*laneLeft, func() error {
		var running sync.WaitGroup
		for _, l := range all {
			running.Go(func() {
				for i := range l.rows {
					if r := &l.rows[i]; !r.alone {
						note(r, r.run(l.lane))
					}
				}
			})
		}
		running.Wait()
		return nil
	})
	if err != nil {
		t.Errorf("after all of these rows: %v", err)
	}
	for _, l := range all {
		for i := range l.rows {
			if r := &l.rows[i]; r.alone {
				note(r, leveled(bulkInPassing, bulkLeft, func() error { return r.run(l.lane) }))
			}
		}
	}
	return outcomes
}

// TestFaultMatrix reads each endpoint with each fault, with a cold and with a warm cache, beside all other endpoints.
func TestFaultMatrix(t *testing.T) {
	survived, total := 0, 0
	tally := func(t *testing.T, outcomes map[string]error) {
		for _, name := range slices.Sorted(maps.Keys(outcomes)) {
			if total++; outcomes[name] == nil {
				survived++
				continue
			}
			t.Errorf("%s:\n%v", name, outcomes[name])
		}
	}
	// Faults that hang run in a bubble, where a busy machine cannot cause timeouts.
	t.Run("what hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			patient, hurried := laneOf{lane: newPipedLane(t)}, laneOf{lane: newPipedLane(t, unhurried, fmt.Sprint("--request-timeout=", shortTime))}
			for i := range wholeBranches {
				for f := range faults {
					if faults[f].hangs() {
						patient.rows = append(patient.rows, faults[f].rows(&wholeBranches[i])...)
					}
				}
				hurried.rows = append(hurried.rows, late(&wholeBranches[i]))
			}
			tally(t, lanes{patient, hurried}.run(t))
		})
	})
	// All other faults have long timeouts, which allow for a busy machine.
	t.Run("what answers", func(t *testing.T) {
		var all lanes
		for i := range wholeBranches {
			rows := drifts(&wholeBranches[i])
			for f := range faults {
				if !faults[f].hangs() {
					rows = append(rows, faults[f].rows(&wholeBranches[i])...)
				}
			}
			all = append(all, laneOf{newLane(t, nil, unhurried), rows})
		}
		tally(t, all.run(t))
	})
	t.Logf("fault matrix: survived/total %d/%d", survived, total)
	if total < 100 {
		t.Errorf("there are only %d rows", total)
	}
}

// bulkInPassing is what a row with bulk may allocate temporarily, bulkLeft what it may leave in use. laneLeft is what a
// lane may leave after all its smaller rows, such as idle connections.
const (
	bulkInPassing = 48 << 20
	bulkLeft      = 4 << 20
	laneLeft      = 512 << 10
)

// leveled runs f and reports memory that f left in use or allocated beyond the limits.
func leveled(inPassing, left uint64, f func() error) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > inPassing {
		err = errors.Join(err, fmt.Errorf("%d MiB were allocated", n>>20))
	}
	if after.HeapAlloc > before.HeapAlloc+left {
		err = errors.Join(err, fmt.Errorf("%d KiB stayed in use", (after.HeapAlloc-before.HeapAlloc)>>10))
	}
	return err
}
