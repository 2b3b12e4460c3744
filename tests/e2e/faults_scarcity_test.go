package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/ratelimit"
)

// In the test cases of this file, the venue accepts budgetPerMinute calls per minute without a key, and keyPerMinute calls per
// minute with each key. The clock of the service shows almost the real time, because deadlines are in real time.
const (
	budgetPerMinute = 40
	keyPerMinute    = 20
)

// openBudget starts the lane of a test case. The clock of the lane starts two minutes in the past and then advances to the present,
// so that the calls during the start of the lane no longer count against the rate limit. Requests time out after 30 s. This is too
// short to wait until the rate limit allows new calls.
func openBudget(t testing.TB) *lane {
	return openBudgetOf(t, nil, 30*time.Second)
}

// patientTimeout is a timeout of requests that can wait for the rate limit.
const patientTimeout = 3 * time.Minute

func openBudgetOf(t testing.TB, rig func(*app.Wiring), patience time.Duration) *lane {
	t.Helper()
	const ago = 2 * time.Minute
	l := newLaneAt(t, time.Now().Add(-ago), rig, longCallTimeout, fmt.Sprint("--request-timeout=", patience), "--demo-markets=300",
		fmt.Sprint("--demo-public-per-minute=", budgetPerMinute), fmt.Sprint("--demo-key-per-minute=", keyPerMinute))
	l.clock.Advance(ago)
	return l
}

const (
	booksQuery  = `query ($ids: [String!]!) { tokens(tokenIds: $ids) { orderbook(depth: 5) { bids { price size } asks { price size } } } }`
	pricesQuery = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price freshness { stale } } }`
)

// queryFrom sends a query for tokens from the given client address.
func (l *lane) queryFrom(ctx context.Context, from netip.Addr, query string, ids ...string) (r reply, err error) {
	var out graphResult
	began := time.Now()
	err = l.postFrom(ctx, from, query, vars{"ids": ids}, anonymous, &out)
	return reply{data: out.Data, errors: out.Errors, took: time.Since(began)}, err
}

// answered returns how many of the requested values arrived. Each other value must have an error RATE_LIMITED with a retry time of
// at most five minutes. The response must arrive within answerLimit.
func (r *reply) answered(asked int) (int, error) {
	if r.took > answerLimit {
		return 0, fmt.Errorf("the answer took %v", r.took)
	}
	for _, e := range r.errors {
		if ms := e.Extensions.RetryAfterMs; e.Extensions.Code != "RATE_LIMITED" || ms <= 0 || ms > 5*60_000 {
			return 0, fmt.Errorf("%s, to be tried again in %d ms", e, ms)
		}
	}
	return asked - len(r.errors), nil
}

// spend reads books until the rate limit allows at most left more calls.
func (l *lane) spend(from netip.Addr, ids []string, left int) error {
	for i := 0; l.budget.Status().Left > left; i++ {
		if got, err := l.queryFrom(context.Background(), from, booksQuery, ids[i]); err != nil || len(got.errors) > 0 {
			return fmt.Errorf("spending the budget: %v, %v", got.errors, err)
		}
	}
	return nil
}

// wantUnrefused adds an error to r if the venue has refused calls with status 429.
func (l *lane) wantUnrefused(r *report) {
	if n := l.venue.Stats().Statuses["429"]; n != 0 {
		r.add("the venue refused %d calls", n)
	}
}

// overBudgetRow reads more books than the rate limit allows. The service must return each book correctly or refuse it. The venue
// must refuse no call.
var overBudgetRow = row{name: "orderbook, more than the budget", open: openBudget, run: func(l *lane) error {
	var r report
	ids := l.openTokens(50)
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	for range 2 {
		got, err := l.queryFrom(ctx, client(1), booksQuery, ids...)
		if err != nil {
			return err
		}
		if n, err := got.answered(len(ids)); err != nil || n > budgetPerMinute {
			r.add("%d were answered: %v", n, err)
		}
		for i, id := range ids {
			v := at(list(got.data, "tokens")[i], "orderbook")
			b, _ := l.venue.Book(id)
			if v != nil && !same(ladderOf(v, ""), ladder{levelsOf(b.Bids, 5), levelsOf(b.Asks, 5)}) {
				r.add("the book of %s is %s", id, asJSON(v))
			}
		}
	}
	l.wantUnrefused(&r)
	return r.err()
}}

// greedyClientRow checks that a client that reads few books gets all of them, although another client reads many books.
var greedyClientRow = row{name: "orderbook, a greedy client", open: openBudget, run: func(l *lane) error {
	var r report
	ids := l.openTokens(60)
	ask := func(from netip.Addr, least int, ids ...string) {
		got, err := l.queryFrom(context.Background(), from, booksQuery, ids...)
		n, wrong := got.answered(len(ids))
		if err != nil || wrong != nil || n < least {
			r.add("%s was answered %d of %d: %v, %v", from, n, len(ids), wrong, err)
		}
	}
	ask(client(1), 1, ids[0])
	ask(client(2), 20, ids[1:51]...)
	ask(client(1), 8, ids[51:59]...)
	l.wantUnrefused(&r)
	return r.err()
}}

// priorityRow checks that the service makes a call for a price before a call for a chart, although the call for the chart has
// waited longer.
var priorityRow = row{name: "prices, after a chart at the end of the budget", open: func(t testing.TB) *lane { return openBudgetOf(t, nil, patientTimeout) }, run: func(l *lane) error {
	const chartQuery = `query ($ids: [String!]!) { tokens(tokenIds: $ids) { history { points { price } } } }`
	var r report
	ids := l.openTokens(60)
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	ask := func(query, id string) error {
		got, err := l.queryFrom(ctx, client(1), query, id)
		if err == nil && len(got.errors) > 0 {
			err = fmt.Errorf("%v", got.errors)
		}
		return err
	}
	if err := ask(booksQuery, ids[0]); err != nil {
		return err
	}
	l.clock.Advance(30 * time.Second)
	for i, query := range []string{chartQuery, pricesQuery} { // use up the calls that the rate limiter reserves for each priority
		if err := ask(query, ids[1+i]); err != nil {
			return err
		}
	}
	if err := l.spend(client(1), ids[3:], 0); err != nil {
		return err
	}
	l.clock.Advance(29 * time.Second)
	type answer struct {
		query string
		err   error
	}
	first := make(chan answer, 2)
	waiting := func() (n int) {
		for _, of := range l.budget.Status().Waiting {
			n += of
		}
		return n
	}
	left := make(chan struct{})
	for i, query := range []string{chartQuery, pricesQuery} {
		go func() {
			if err := ask(query, ids[58+i]); ctx.Err() == nil {
				first <- answer{query, err}
			}
			left <- struct{}{}
		}()
		until(operationTimeout, func() bool { return waiting() > i })
	}
	l.clock.Advance(1500 * time.Millisecond)
	select {
	case got := <-first:
		if got.query != pricesQuery || got.err != nil {
			r.add("the first is answered %s: %v", got.query, got.err)
		}
	case <-ctx.Done():
		r.add("neither is answered: %+v", l.budget.Status())
	}
	cancel()
	<-left
	<-left
	return r.err()
}}

// throttledRow reads prices after the venue has refused a call with a Retry-After of five minutes. The service must return stale
// prices until they are five minutes old, and must then refuse the query.
var throttledRow = row{name: "prices, throttled for five minutes", open: openBudget, run: func(l *lane) error {
	var r report
	ids := l.openTokens(6)
	ask := func(when string, stale bool, refused int) {
		before := l.venue.Stats().Requests["/api/exchange/prices"]
		got, err := l.queryFrom(context.Background(), client(1), pricesQuery, ids[:3]...)
		n, wrong := got.answered(3)
		if err != nil || wrong != nil || n != 3-refused {
			r.add("%s %d are answered: %v, %v", when, n, wrong, err)
		}
		for i, id := range ids[:3] {
			v := at(got.data, fmt.Sprint("tokenPrices.", i))
			if q, _ := l.venue.Quote(id); v != nil && (text(v, "price") != plain(q.Price) || at(v, "freshness.stale") != stale) {
				r.add("%s a price is %s", when, asJSON(v))
			}
		}
		if asked := l.venue.Stats().Requests["/api/exchange/prices"] - before; asked != 0 && (stale || refused > 0) {
			r.add("%s the venue was asked %d times", when, asked)
		}
	}
	ask("at first", false, 0)
	l.clock.Advance(10 * time.Second)
	if err := l.venue.SetFaults([]demo.Fault{{Path: "/api/exchange/orderbook", Kind: demo.FaultStatus, Status: 429, RetryAfter: "300"}}); err != nil {
		return err
	}
	if got, err := l.queryFrom(context.Background(), client(1), booksQuery, ids[5]); err != nil || len(got.errors) != 1 {
		r.add("the throttled book: %v, %v", got.errors, err)
	}
	l.clock.Advance(50 * time.Second)
	ask("after a minute", true, 0)
	l.clock.Advance(240 * time.Second)
	ask("a second before the end", true, 0)
	l.clock.Advance(2 * time.Second)
	ask("after five minutes", true, 3)
	return r.err()
}}

// keyBudgetRow uses up the rate limit of a key. Queries with another key and queries without a key must still get data.
var keyBudgetRow = row{name: "balance, past the budget of a key", open: openBudget, run: func(l *lane) error {
	var r report
	asked, refused := 0, 0
	ask := func(query string, variables vars, credentials string) []graphError {
		got, err := l.try(query, variables, credentials)
		if _, wrong := got.answered(0); err != nil || wrong != nil {
			r.add("%v, %v", wrong, err)
		}
		return got.errors
	}
	for range 6 {
		l.clock.Advance(3 * time.Second) // account data are fresh for two seconds
		asked += len(refusedBranches)
		refused += len(ask(branchesQuery, nil, keyOf50))
	}
	if answered := asked - refused; answered < keyPerMinute/2 || answered >= keyPerMinute {
		r.add("%d of %d calls were made with a key that allows %d", answered, asked, keyPerMinute)
	}
	if n := len(ask(`query ($a: Address!) { user(address: $a) { balance { cashBalance } } }`, vars{"a": addressOf3}, keyOf3)); n != 0 {
		r.add("another account is refused")
	}
	if n := len(ask(booksQuery, vars{"ids": l.openTokens(5)}, anonymous)); n != 0 {
		r.add("%d books of 5 are refused", n)
	}
	l.wantUnrefused(&r)
	return r.err()
}}

// shortQueue is the number of calls that may wait in fullQueueRow.
const shortQueue = 8

// fullQueueRow checks that at most shortQueue calls wait when the rate limit allows no more calls.
var fullQueueRow = row{name: "orderbook, more than may wait", open: func(t testing.TB) *lane {
	return openBudgetOf(t, func(w *app.Wiring) {
		b := ratelimit.New(ratelimit.Config{Public: budgetPerMinute, Key: keyPerMinute, Queue: shortQueue, Clock: w.Reads.Clock})
		t.Cleanup(b.Close)
		w.Reads.Admission = b
	}, patientTimeout)
}, run: func(l *lane) error {
	var r report
	ids := l.openTokens(120)
	if err := l.spend(client(1), ids[30:], 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	const clients = 3 * shortQueue
	left := make(chan struct{})
	before := l.budget.Status().Refused
	for i := range clients {
		go func() {
			_, _ = l.queryFrom(ctx, client(2+i), booksQuery, ids[i])
			left <- struct{}{}
		}()
	}
	waiting := 0
	until(operationTimeout, func() bool {
		s := l.budget.Status()
		waiting = s.Waiting[reqctx.PriorityBooks]
		return waiting > shortQueue || waiting+int(s.Refused-before) >= clients
	})
	if waiting == 0 || waiting > shortQueue {
		r.add("%d calls wait", waiting)
	}
	cancel()
	for range clients {
		<-left
	}
	return r.err()
}}

// budgetRows are the test cases in which the venue accepts few calls.
var budgetRows = []row{overBudgetRow, greedyClientRow, priorityRow, throttledRow, keyBudgetRow, fullQueueRow}
