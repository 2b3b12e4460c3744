package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/ratelimit"
)

// startScarce starts a service whose venue accepts 40 calls per minute. Requests time out after the given time. The clock of the
// service shows almost the real time, because deadlines are in real time.
func startScarce(t *testing.T, timeout time.Duration) (s *service, budget *ratelimit.Budget) {
	t.Helper()
	s = startRigged(t, time.Now(), func(w *app.Wiring) { budget = w.Reads.Admission.(*ratelimit.Budget) },
		longCallTimeout, fmt.Sprint("--request-timeout=", timeout), "--demo-markets=300", "--demo-public-per-minute=40", "--log-level=error")
	return s, budget
}

const (
	booksQuery  = `query ($ids: [String!]!) { tokens(tokenIds: $ids) { orderbook(depth: 5) { bids { price size } asks { price size } } } }`
	pricesQuery = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price freshness { stale } } }`
)

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

// TestGreedyClient checks that a client that reads few books gets all of them, although another client reads many books.
func TestGreedyClient(t *testing.T) {
	t.Parallel()
	s, _ := startScarce(t, 30*time.Second)
	ids := s.openTokens(60)
	ask := func(from netip.Addr, least int, ids ...string) {
		got, err := s.queryFrom(t.Context(), from, booksQuery, ids...)
		n, wrong := got.answerCount(len(ids))
		if err != nil || wrong != nil || n < least {
			t.Errorf("%s got %d of %d books, want at least %d: %v, %v", from, n, len(ids), least, wrong, err)
		}
	}
	ask(client(1), 1, ids[0])
	ask(client(2), 20, ids[1:51]...)
	ask(client(1), 8, ids[51:59]...)
	if n := s.venue.Stats().Statuses["429"]; n != 0 {
		t.Errorf("the venue refused %d calls", n)
	}
}

// TestPriceBeforeChart checks that the service makes a call for a price before a call for a chart, although the call for the chart
// has waited longer.
func TestPriceBeforeChart(t *testing.T) {
	t.Parallel()
	const chartQuery = `query ($ids: [String!]!) { tokens(tokenIds: $ids) { history { points { price } } } }`
	s, budget := startScarce(t, 3*time.Minute) // long enough to wait for the rate limit
	ids := s.openTokens(60)
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	ask := func(query, id string) error {
		got, err := s.queryFrom(ctx, client(1), query, id)
		if err == nil && len(got.errors) > 0 {
			err = fmt.Errorf("%v", got.errors)
		}
		return err
	}
	spend := func(query, id string) {
		t.Helper()
		if err := ask(query, id); err != nil {
			t.Fatal(err)
		}
	}
	spend(booksQuery, ids[0])
	s.clock.Advance(30 * time.Second)
	for i, query := range []string{chartQuery, pricesQuery} { // use up the calls that the rate limiter reserves for each priority
		spend(query, ids[1+i])
	}
	for i := 3; budget.Status().Left > 0; i++ {
		spend(booksQuery, ids[i])
	}
	s.clock.Advance(29 * time.Second)
	type answer struct {
		query string
		err   error
	}
	first := make(chan answer, 2)
	waiting := func() (n int) {
		for _, calls := range budget.Status().Waiting {
			n += calls
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
	s.clock.Advance(1500 * time.Millisecond)
	select {
	case got := <-first:
		if got.query != pricesQuery || got.err != nil {
			t.Errorf("the first response is for the query %s with the error %v, want the query for a price", got.query, got.err)
		}
	case <-ctx.Done():
		t.Errorf("neither query got a response; the rate limiter is %+v", budget.Status())
	}
	cancel()
	<-left
	<-left
}

// TestThrottledPrices reads prices after the venue has refused a call with a Retry-After of five minutes. The service must return
// stale prices until they are five minutes old, and must then refuse the query.
func TestThrottledPrices(t *testing.T) {
	t.Parallel()
	s, _ := startScarce(t, 30*time.Second)
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
	s.setFaults(t, demo.Fault{Path: "/api/exchange/orderbook", Kind: demo.FaultStatus, Status: 429, RetryAfter: "300"})
	if got, err := s.queryFrom(t.Context(), client(1), booksQuery, ids[5]); err != nil || len(got.errors) != 1 {
		t.Errorf("the throttled book: got the GraphQL errors %v and the error %v, want one GraphQL error", got.errors, err)
	}
	s.clock.Advance(50 * time.Second)
	ask("after a minute", true, 0)
	s.clock.Advance(240 * time.Second)
	ask("a second before the end", true, 0)
	s.clock.Advance(2 * time.Second)
	ask("after five minutes", true, 3)
}
