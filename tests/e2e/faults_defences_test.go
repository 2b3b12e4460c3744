package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
)

// circuitRow reads the books of many tokens while all calls for books fail. After five failures, the service must stop these calls,
// except for single probes. After a successful probe, the service must make the calls again.
var circuitRow = row{name: "orderbook, one token after the other", run: func(l *lane) error {
	var r report
	const book = `query ($id: String!, $ids: [String!]!) { token(tokenId: $id) { orderbook(depth: 5) { bids { price } } } tokenPrices(tokenIds: $ids) { price } }`
	ids := l.openTokens(12)
	ask := func(when, id string, calls int64, fails bool) {
		got, err := l.try(book, vars{"id": id, "ids": l.variables["ids"]}, anonymous)
		if err != nil {
			r.add("%s: %w", when, err)
			return
		}
		r.timely(when, got, answerLimit)
		if n := got.calls["orderbook"][0]; n != calls {
			r.add("%s: the venue was asked %d times, want %d", when, n, calls)
		}
		if failed := len(got.errors) == 1 && got.errors[0].String() == "token.orderbook UPSTREAM_UNAVAILABLE"; failed != fails || len(got.errors) > 1 {
			r.add("%s: errors %v", when, got.errors)
		}
		if strings.Contains(asJSON(at(got.data, "tokenPrices")), "null") {
			r.add("%s: prices beside it are %s", when, asJSON(at(got.data, "tokenPrices")))
		}
	}
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{{Path: "/api/exchange/orderbook", Kind: demo.FaultStatus}}); err != nil {
		return err
	}
	for _, id := range ids[:5] {
		ask("failing", id, 1, true)
	}
	for _, id := range ids[5:10] {
		ask("open", id, 0, true)
	}
	l.clock.Advance(time.Second)
	ask("the probe", ids[10], 1, true)
	ask("after the probe", ids[11], 0, true)
	if err := l.venue.SetFaults(nil); err != nil {
		return err
	}
	l.clock.Advance(2 * time.Second)
	ask("the probe when it is back", ids[9], 1, false)
	for _, id := range ids[7:9] {
		ask("closed again", id, 1, false)
	}
	return r.err()
}}

// callersRow checks that only the owner of an account gets the account's balance, although the balance is cached.
var callersRow = row{name: "balance, two callers", run: func(l *lane) error {
	var r report
	l.prepare(&r)
	l.wantAll(&r, "its owner")
	const balance = `query ($a: Address!) { user(address: $a) { balance { cashBalance } } }`
	for stranger, code := range map[string]string{credentials("junk"): "UNAUTHENTICATED", keyOf50: "FORBIDDEN"} {
		got, err := l.try(balance, vars{"a": addressOf3}, stranger)
		if err != nil {
			return err
		}
		r.timely("a stranger", got, answerLimit)
		if len(got.errors) != 1 || got.errors[0].String() != "user.balance "+code || at(got.data, "user.balance") != nil {
			r.add("a stranger gets %s, %v", asJSON(got.data), got.errors)
		}
	}
	return r.err()
}}

// openCountingLane starts a lane that counts the calls for books in flight.
func openCountingLane(t testing.TB) *lane {
	t.Helper()
	var calls atomic.Int64
	base := &http.Transport{DisableCompression: true}
	t.Cleanup(base.CloseIdleConnections)
	l := newLane(t, func(w *app.Wiring) {
		w.Client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/orderbook") {
				calls.Add(1)
				defer calls.Add(-1)
			}
			return base.RoundTrip(r)
		})
	}, longCallTimeout)
	l.inFlight = &calls
	return l
}

// waitInFlight waits up to ten seconds until n calls for books are in flight.
func (l *lane) waitInFlight(n int64) error {
	if !until(10*time.Second, func() bool { return l.inFlight.Load() == n }) {
		return fmt.Errorf("%d calls are under way, want %d", l.inFlight.Load(), n)
	}
	return nil
}

// abandonedRow checks that a call for a book ends when the only client that waits for the book disconnects.
var abandonedRow = row{name: "orderbook, nobody waits", open: openCountingLane, run: func(l *lane) error {
	var r report
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{{Path: "/api/exchange/orderbook", Kind: demo.FaultHang}}); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = l.queryFrom(ctx, client(1), booksQuery, l.openTokens(1)...)
	}()
	err := l.waitInFlight(1)
	leave()
	<-left
	return errors.Join(r.err(), err, l.waitInFlight(0))
}}

// sharedRow checks that a client still gets a book if another client that shared the call disconnects.
var sharedRow = row{name: "orderbook, one of two waits", open: openCountingLane, run: func(l *lane) error {
	var r report
	l.prepare(&r)
	if err := l.venue.SetFaults([]demo.Fault{{Path: "/api/exchange/orderbook", Kind: demo.FaultDelay, DelayMs: 2000}}); err != nil {
		return err
	}
	coalesced := func() uint64 {
		for _, s := range l.App.Cache.Stats() {
			if s.Kind == "book" {
				return s.Coalesced
			}
		}
		return 0
	}
	for _, id := range l.openTokens(5) {
		before, asked := coalesced(), l.venue.Stats().Requests["/api/exchange/orderbook"]
		ctx, leave := context.WithCancel(context.Background())
		left, came := make(chan struct{}), make(chan error, 1)
		go func() {
			defer close(left)
			_, _ = l.queryFrom(ctx, client(1), booksQuery, id)
		}()
		if err := l.waitInFlight(1); err != nil {
			r.add("%w", err)
		}
		go func() { // this query has another text, so that it does not share the execution of the first query
			got, err := l.queryFrom(context.Background(), client(2), strings.Replace(booksQuery, "depth: 5", "depth: 6", 1), id)
			if err == nil && (len(got.errors) > 0 || at(got.data, "tokens.0.orderbook") == nil) {
				err = fmt.Errorf("the other caller got %s, %v", asJSON(got.data), got.errors)
			}
			if err == nil && got.took > answerLimit {
				err = fmt.Errorf("the other caller waited %v", got.took)
			}
			came <- err
		}()
		until(patience, func() bool { return coalesced() > before || l.inFlight.Load() == 0 })
		joined := coalesced() > before
		leave()
		<-left
		if err := <-came; err != nil {
			r.add("%w", err)
		}
		if n := l.venue.Stats().Requests["/api/exchange/orderbook"] - asked; joined && n != 1 {
			r.add("the venue was asked %d times", n)
		}
		if joined {
			return r.err()
		}
	}
	r.add("on this machine nobody joins a call of two seconds")
	return r.err()
}}

func TestFaultsOverSeveralQueries(t *testing.T) {
	for _, r := range append([]row{circuitRow, callersRow, abandonedRow, sharedRow}, budgetRows...) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			open := r.open
			if open == nil {
				open = func(t testing.TB) *lane { return newLane(t, nil, longCallTimeout) }
			}
			if err := r.run(open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (e roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return e(r) }
