package follow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// outcome describes the first event of a stream. The field after is the time from the start of the stream to the event.
type outcome struct {
	initial bool
	problem error
	ended   error
	after   time.Duration
}

// first returns the first event or error that a stream yields within an hour.
func first[T any](ctx context.Context, stream follow.Stream[T]) (o outcome) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	began := time.Now()
	for e, err := range stream {
		return outcome{initial: err == nil && e.Problem == nil, problem: e.Problem, ended: err, after: time.Since(began)}
	}
	<-ctx.Done()
	return outcome{after: time.Since(began)}
}

// TestFirstEventIsInTime checks that each subscription sends its first state or an error within the timeout, however a read fails.
func TestFirstEventIsInTime(t *testing.T) {
	type reads struct {
		prices    *restSource[*market.Price]
		books     *restSource[*market.Book]
		markets   *restSource[*market.Market]
		balances  *restSource[*market.Balance]
		orders    *restSource[*[]market.Order]
		positions *restSource[*[]market.Position]
		trades    *restSource[*queries.TradePage]
		values    *priced
	}
	subscriptions := map[string]func(s *testVenue, r *reads) outcome{
		"priceChanged": func(s *testVenue, r *reads) outcome {
			return first(s.ctx, follow.Prices(s.ctx, s.source(), []string{"T", "U"}, 0, r.prices.list))
		},
		"orderbookChanged": func(s *testVenue, r *reads) outcome {
			return first(s.ctx, follow.Book(s.ctx, s.source(), "T", 20, true, 0, r.books.read))
		},
		"marketChanged": func(s *testVenue, r *reads) outcome {
			return first(s.ctx, follow.Markets(s.ctx, s.source(), []string{"M", "N"}, r.markets.list))
		},
		"tradesAdded": func(s *testVenue, _ *reads) outcome {
			return first(s.ctx, follow.Trades(s.ctx, s.source(), []string{"T"}, nil))
		},
		"portfolioChanged": func(s *testVenue, r *reads) outcome { return first(s.ctx, s.portfolio(r.positions, r.values)) },
		"ordersChanged": func(s *testVenue, r *reads) outcome {
			return first(s.ctx, follow.Orders(s.ctx, s.source(), follow.Account[[]market.Order]{Topic: account, Read: r.orders.read}))
		},
		"userTradesAdded": func(s *testVenue, r *reads) outcome { return first(s.ctx, s.userTrades(r.trades)) },
		"balanceChanged": func(s *testVenue, r *reads) outcome {
			return first(s.ctx, follow.Balance(s.ctx, s.source(), follow.Account[market.Balance]{Topic: account, Read: r.balances.read}))
		},
		"streamStatusChanged": func(s *testVenue, _ *reads) outcome {
			return first(s.ctx, follow.StreamStatus(s.ctx, s.source(), func() int { return 1 }, func(a, b *int) bool { return *a == *b }))
		},
	}
	// Each function sets the error and the duration of one kind of read that a subscription makes.
	type spoil = func(r *reads, err error, takes time.Duration)
	failing := map[string]map[string]spoil{
		"priceChanged":     {"prices": func(r *reads, err error, d time.Duration) { r.prices.err, r.prices.duration = err, d }},
		"orderbookChanged": {"book": func(r *reads, err error, d time.Duration) { r.books.err, r.books.duration = err, d }},
		"marketChanged":    {"markets": func(r *reads, err error, d time.Duration) { r.markets.err, r.markets.duration = err, d }},
		"portfolioChanged": {
			"positions": func(r *reads, err error, d time.Duration) { r.positions.err, r.positions.duration = err, d },
			"prices":    func(r *reads, err error, d time.Duration) { r.values.err, r.values.duration = err, d },
		},
		"ordersChanged":   {"orders": func(r *reads, err error, d time.Duration) { r.orders.err, r.orders.duration = err, d }},
		"userTradesAdded": {"trades": func(r *reads, err error, d time.Duration) { r.trades.err, r.trades.duration = err, d }},
		"balanceChanged":  {"balance": func(r *reads, err error, d time.Duration) { r.balances.err, r.balances.duration = err, d }},
	}
	failures := map[string]struct {
		err   error
		takes time.Duration
		want  market.Code // empty if the first event contains the state
		ends  bool
	}{
		"no failure":  {},
		"slow":        {takes: 6 * time.Second}, // longer than the interval between polls
		"unavailable": {err: errDown, want: market.CodeUpstreamUnavailable},
		"rate limit":  {err: upstream.RateLimited(time.Minute), want: market.CodeRateLimited},
		"unreadable":  {err: market.Errorf(market.CodeUpstreamBadResponse, "1.02"), want: market.CodeUpstreamBadResponse},
		"hanging":     {takes: 24 * time.Hour, want: market.CodeUpstreamTimeout},
		"refused":     {err: market.Errorf(market.CodeForbidden, "no"), want: market.CodeForbidden, ends: true},
		"not served":  {err: market.Errorf(market.CodeUnsupported, "no"), want: market.CodeUnsupported, ends: true},
	}
	for name, open := range subscriptions {
		parts := failing[name]
		if parts == nil {
			parts = map[string]spoil{"": func(*reads, error, time.Duration) {}}
		}
		for part, spoil := range parts {
			for how, failure := range failures {
				if part == "" && failure.want != "" {
					continue
				}
				t.Run(name+"/"+part+"/"+how, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newTestVenue(t)
						r := &reads{
							&restSource[*market.Price]{value: priceOf("T", "0.5")}, &restSource[*market.Book]{value: &market.Book{TokenID: "T"}},
							&restSource[*market.Market]{value: marketNow("a", market.StatusOpen)}, &restSource[*market.Balance]{}, &restSource[*[]market.Order]{value: &[]market.Order{}},
							&restSource[*[]market.Position]{value: positionsOf("T")}, &restSource[*queries.TradePage]{value: pageOf("t1")}, newPriced("0.5"),
						}
						spoil(r, failure.err, failure.takes)
						o := open(s, r)
						err := o.problem
						if personal := map[string]bool{"portfolioChanged": true, "ordersChanged": true, "userTradesAdded": true, "balanceChanged": true}; failure.ends && personal[name] {
							err = o.ended
						}
						switch {
						case o.after > timeout:
							t.Fatalf("no event came within %v", timeout)
						case failure.want == "" && !o.initial:
							t.Fatalf("the first event is %+v, want a state", o)
						case failure.want != "" && market.CodeOf(err) != failure.want:
							t.Fatalf("the first event is %+v, want %s", o, failure.want)
						}
					})
				})
			}
		}
	}
}

// TestNoBalance checks that the first event of an account without a balance is the state, not a problem.
func TestNoBalance(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Balance]{}
		f := run(t, follow.Balance(s.ctx, s.source(), follow.Account[market.Balance]{Topic: account, Read: r.read}))
		show := func(b follow.BalanceUpdate) string {
			if b.Balance == nil {
				return "none"
			}
			return b.Balance.CashBalance.String()
		}
		time.Sleep(time.Second)
		f.want(show, "INITIAL none")
		time.Sleep(time.Minute)
		f.want(show)
		cash := market.MustDecimal("5")
		r.set(&market.Balance{CashBalance: &cash})
		time.Sleep(6 * time.Second)
		f.want(show, "CHANGE 5")
		r.set(nil)
		time.Sleep(6 * time.Second)
		f.want(show, "CHANGE none")
	})
}

// TestShortTimeout checks that a stream reports a problem within a timeout of 200 ms if its read hangs.
func TestShortTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, source := &restSource[*market.Price]{duration: time.Hour}, s.source()
		source.Timeout = 200 * time.Millisecond
		if o := first(s.ctx, follow.Prices(s.ctx, source, []string{"T"}, 0, r.list)); market.CodeOf(o.problem) != market.CodeUpstreamTimeout || o.after > source.Timeout {
			t.Errorf("the first event is %+v, want %s within %v", o, market.CodeUpstreamTimeout, source.Timeout)
		}
	})
}

// TestHangingReadIsReportedOnce checks that a hanging first read causes only one problem.
func TestHangingReadIsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{duration: time.Hour}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		time.Sleep(timeout)
		f.want(showPrice, "!UPSTREAM_TIMEOUT")
	})
}
