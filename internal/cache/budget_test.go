package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// openLimited returns a cache and the ratelimit.Budget that limits its calls.
func openLimited(t *testing.T, v venue.Reader, cfg ratelimit.Config, change ...func(*Config)) (*Cache, *ratelimit.Budget) {
	t.Helper()
	cfg.Fresh = true
	b := ratelimit.New(cfg)
	t.Cleanup(b.Close)
	return open(t, v, append(change, withAdmission(b))...), b
}

// callerContext returns a context with a caller and a timeout.
func callerContext(t testing.TB, caller string, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(request.With(t.Context(), func(r *request.Request) { r.Caller = caller }), d)
	t.Cleanup(cancel)
	return ctx
}

// spend makes calls until b.Status().Left is at most remaining.
func spend(t *testing.T, b *ratelimit.Budget, remaining int) {
	t.Helper()
	for i := 0; b.Status().Left > remaining; i++ {
		k := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: fmt.Sprint(i)})
		if k.Err() != nil || k.AdmitCall(t.Context()) != nil {
			t.Fatal("a call was not admitted")
		}
		k.Release(true)
	}
}

// retryAfter returns the wait in a RATE_LIMITED error.
func retryAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	var e *market.Error
	if !errors.As(err, &e) || e.Code != market.CodeRateLimited || e.RetryAfter <= 0 {
		t.Fatalf("got %v, want RATE_LIMITED with a wait", err)
	}
	return e.RetryAfter
}

const window = time.Minute + time.Millisecond

// TestOnlyLateCallerIsRefused checks that a caller is refused if its deadline is before the admission of the call. A caller of the
// same key with a later deadline must get the price.
func TestOnlyLateCallerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{})
		spend(t, b, 0)
		start := time.Now()
		patient := fetch(callerContext(t, "a", 2*time.Minute), c, "k", "l")
		wantPending(t, patient)
		hasty := fetch(callerContext(t, "b", 10*time.Second), c, "k", "m")
		for _, r := range receive(t, hasty) {
			if wait := retryAfter(t, r.Err); wait != window {
				t.Errorf("got retry after %s, want a minute", wait)
			}
		}
		wantPending(t, patient)
		if s := b.Status(); s.Waiting[upstream.PriorityPrices] != 1 {
			t.Errorf("got %+v, want one waiting", s)
		}
		time.Sleep(window)
		wantPrices(t, receive(t, patient), "k", "l")
		if calls := v.calls(); len(calls) != 1 || !slices.Equal(calls[0].keys, []string{"k", "l"}) || time.Since(start) != window {
			t.Errorf("got calls %+v after %s, want one of k and l after a minute", calls, time.Since(start))
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestLateCallerOfARefresh checks a caller that needs the key of a refresh that waits through a pause of the venue. If its deadline
// is before the end of the pause, it must get an answer at once: the stale value in the stale time, later RATE_LIMITED.
func TestLateCallerOfARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{}, func(cfg *Config) { cfg.Stretch = 0 })
		mustRead(t, c.Prices(), "k")
		k := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices})
		k.Answered(upstream.Answer{Endpoint: upstream.EndpointPrices, Refused: true, RetryAfter: window, Limit: -1, Remaining: -1})
		k.Release(false)
		start := time.Now()
		time.Sleep(29 * time.Second)
		mustRead(t, c.Prices(), "k") // starts the refresh
		synctest.Wait()
		if s := b.Status(); s.Waiting[upstream.PriorityRefresh] != 1 {
			t.Fatalf("got %+v, want a waiting refresh", s)
		}
		if r := c.Prices().Fetch(callerContext(t, "a", 10*time.Second), []string{"k"})[0]; r.Err != nil || !r.Value.Stale || time.Since(start) != 29*time.Second {
			t.Errorf("in the stale time: got %+v after %s, want a stale price after 29s", r, time.Since(start))
		}
		time.Sleep(3 * time.Second)
		_, err := readOne(callerContext(t, "a", 10*time.Second), c.Prices(), "k")
		if wait := retryAfter(t, err); wait != window-32*time.Second || time.Since(start) != 32*time.Second {
			t.Errorf("after the stale time: got retry after %s after %s, want the rest of the pause after 32s", wait, time.Since(start))
		}
		patient := fetch(callerContext(t, "b", window), c, "k")
		wantPending(t, patient)
		time.Sleep(window - 32*time.Second)
		wantPrices(t, receive(t, patient), "k")
		wantIdle(t, c.prices.routes[0])
	})
}

// TestTurnJustBeforeTheDeadline checks that a call is made even if its turn is just before the deadline. The deadline ends the call
// with a timeout, not with RATE_LIMITED.
func TestTurnJustBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: 400 * time.Millisecond}
		c, b := openLimited(t, v, ratelimit.Config{})
		spend(t, b, 0)
		hasty := fetch(callerContext(t, "a", window+time.Millisecond), c, "k")
		patient := fetch(callerContext(t, "b", window+time.Second), c, "k")
		time.Sleep(window + time.Millisecond)
		wantErrors(t, receive(t, hasty), market.CodeUpstreamTimeout)
		wantPending(t, patient)
		time.Sleep(v.latency)
		wantPrices(t, receive(t, patient), "k")
		if calls := v.calls(); len(calls) != 1 {
			t.Errorf("got %d calls, want 1", len(calls))
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestAbandonedBatch checks that a batch without waiters releases its reservation at once, before and after its admission.
func TestAbandonedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{})
		spend(t, b, 0)
		ctx, cancel := context.WithCancel(callerContext(t, "a", 2*time.Minute))
		gone := fetch(ctx, c, ids("t", 0, 200)...)
		next := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "b"})
		if s := b.Status(); s.Waiting[upstream.PriorityPrices] != 6 {
			t.Fatalf("got %+v, want 6 waiting", s)
		}
		cancel()
		receive(t, gone)
		if s := b.Status(); s.Waiting[upstream.PriorityPrices] != 1 {
			t.Errorf("got %+v, want 1 waiting", s)
		}
		next.Release(false)
		time.Sleep(2 * window)

		// Four calls hang. The fifth call is admitted, but must wait until one of the four calls ends.
		v.blocked = make(chan struct{})
		var hanging []chan prices
		for _, id := range ids("h", 0, 4) {
			hanging = append(hanging, fetch(callerContext(t, "a", time.Minute), c, id))
		}
		ctx, cancel = context.WithCancel(callerContext(t, "a", time.Minute))
		gone = fetch(ctx, c, "x")
		before := b.Status().Left
		cancel()
		receive(t, gone)
		if s := b.Status(); before != 90 || s.Left != 91 {
			t.Errorf("got %d left before and %d after, want 90 and 91", before, s.Left)
		}
		for range hanging {
			<-v.blocked
			synctest.Wait()
		}
		for i, ch := range hanging {
			wantPrices(t, receive(t, ch), fmt.Sprintf("h%03d", i))
		}
		wantIdle(t, c.prices.routes[0])
	})
}

// TestRefreshPriority checks that a refresh waits while less than a quarter of the limit is left. The call for a miss must also
// read the key of the waiting refresh.
func TestRefreshPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{})
		mustRead(t, c.Prices(), "k")
		time.Sleep(2 * time.Second)
		spend(t, b, 23) // less than a quarter of the limit is left
		if r := mustRead(t, c.Prices(), "k"); !r.Stale {
			t.Fatalf("got %+v, want a stale price", r)
		}
		synctest.Wait()
		if s := b.Status(); len(v.calls()) != 1 || s.Waiting[upstream.PriorityRefresh] != 1 {
			t.Fatalf("got %d calls and %+v, want 1 call and a waiting refresh", len(v.calls()), s)
		}
		mustRead(t, c.Prices(), "miss")
		if calls := v.calls(); len(calls) != 2 || !slices.Equal(calls[1].keys, []string{"k", "miss"}) && !slices.Equal(calls[1].keys, []string{"miss", "k"}) {
			t.Fatalf("got %+v, want a second call of k and miss", calls)
		}
		if r := mustRead(t, c.Prices(), "k"); r.Stale {
			t.Error("got a stale price after its refresh")
		}
		if s := b.Status(); s.Waiting != [upstream.Priorities]int{} {
			t.Errorf("got %+v, want none waiting", s)
		}
		// A refresh is made even if the rate limit admits it only after almost a minute.
		time.Sleep(2 * time.Second)
		mustRead(t, c.Prices(), "k")
		time.Sleep(59 * time.Second)
		if n := len(v.calls()); n != 3 {
			t.Errorf("got %d calls, want 3", n)
		}
	})
}

// TestStaleTimeStretches checks that the stale time of public data extends to Config.Stretch while calls are scarce. Data of
// an endpoint that the venue does not refuse is read.
func TestStaleTimeStretches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{}, func(cfg *Config) { cfg.Stretch = 5 * time.Minute })
		first := mustRead(t, c.Prices(), "k")
		mine := callerContext(t, "a", 10*time.Second)
		account := market.Address("0x1")
		if _, err := readOne(mine, c.Balances(), account); err != nil {
			t.Fatal(err)
		}
		received := time.Now()
		throttle := func(d time.Duration) {
			k := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices})
			k.Answered(upstream.Answer{Endpoint: upstream.EndpointPrices, Refused: true, RetryAfter: d, Limit: -1, Remaining: -1})
			k.Release(false)
		}
		throttle(4 * time.Minute)
		for time.Since(received) < 3*time.Minute {
			r, err := readOne(callerContext(t, "a", 10*time.Second), c.Prices(), "k")
			if err != nil || r.Handle != first.Handle || r.Stale != (time.Since(received) >= time.Second) {
				t.Fatalf("after %s: got %+v, %v; want the first price", time.Since(received), r, err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if _, err := readOne(callerContext(t, "a", 10*time.Second), c.Balances(), account); err != nil {
			t.Errorf("user data: got %v, want an answer of an endpoint that was not refused", err)
		}
		throttle(5 * time.Minute)
		time.Sleep(2*time.Minute + time.Second - 1)
		if r := mustRead(t, c.Prices(), "k"); !r.Stale {
			t.Errorf("got %+v, want a stale price", r)
		}
		time.Sleep(time.Nanosecond)
		_, err := readOne(callerContext(t, "a", 10*time.Second), c.Prices(), "k")
		if wait := retryAfter(t, err); wait != 3*time.Minute-time.Second {
			t.Errorf("got retry after %s, want 2m59s", wait)
		}
		if n := len(v.calls()); n != 3 {
			t.Errorf("got %d calls to a venue that refuses prices, want 3", n)
		}
	})
}

// TestStaleTimeWithEnoughLeft checks that the stale time is not stretched while enough of the rate limit is free. For a caller that
// has used up its share of the limit, the stale time must be stretched.
func TestStaleTimeWithEnoughLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{})
		mustRead(t, c.Prices(), "k")
		v.fail = func(ask) error { return market.Errorf(market.CodeBadUserInput, "not served") }
		time.Sleep(31*time.Second - 1)
		if r := mustRead(t, c.Prices(), "k"); !r.Stale { // the stale time ends one nanosecond later
			t.Errorf("got %+v, want a stale price", r)
		}
		time.Sleep(time.Nanosecond)
		if r, err := readOne(t.Context(), c.Prices(), "k"); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("got %+v, %v; want the result of a call", r, err)
		}
		spend(t, b, 60)
		greedy := 0
		for b.Status().Left > 24 {
			k := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "greedy", Deadline: time.Now().Add(1)})
			if k.AdmitCall(t.Context()) != nil {
				break
			}
			greedy++
			k.Release(true)
		}
		calls := len(v.calls())
		if r, err := readOne(callerContext(t, "greedy", time.Second), c.Prices(), "k"); err != nil || !r.Stale {
			t.Errorf("got %+v, %v; want a stale price", r, err)
		}
		if greedy != 23 || len(v.calls()) != calls || b.Scarce("", upstream.EndpointPrices) {
			t.Errorf("got %d calls of the greedy caller and %d calls to the venue, scarce is %t; want 23 and 0, not scarce", greedy, len(v.calls())-calls, b.Scarce("", upstream.EndpointPrices))
		}
	})
}

// TestShortBudgetServesNothingWrong checks that the stale time of a changed market or of an absence is not extended, even if few
// calls are left.
func TestShortBudgetServesNothingWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &testVenue{}, newAdmission()
		c := open(t, v, withAdmission(a), func(cfg *Config) { cfg.Stretch = 24 * time.Hour })
		go func() {
			for { // admits every call
				select {
				case a.verdict <- nil:
				case <-t.Context().Done():
					return
				}
			}
		}()
		v.setUnknown("t", true)
		mustRead(t, c.Markets(), byID("m"))
		mustRead(t, c.Markets(), byID("same"))
		mustRead(t, c.Prices(), "t")
		c.StreamMarket("m", nil)
		v.setUnknown("t", false)
		ttl := DefaultConfig().Market
		time.Sleep(ttl.Fresh + ttl.Stale)
		a.mu.Lock()
		a.scarce = true
		a.mu.Unlock()
		if r := mustRead(t, c.Markets(), byID("same")); !r.Stale {
			t.Fatalf("got %+v, want a stale market because calls are scarce", r)
		}
		if r := mustRead(t, c.Markets(), byID("m")); r.Stale {
			t.Errorf("changed market: got %+v, want a fresh market", r)
		}
		if r := mustRead(t, c.Prices(), "t"); r.Value == nil {
			t.Errorf("token that has appeared: got %+v, want a price", r)
		}
	})
}

// TestFailedCallServesStaleEntry checks that Fetch serves a stale entry if the call fails because of the venue or the rate limit,
// but not if the call fails with FORBIDDEN.
func TestFailedCallServesStaleEntry(t *testing.T) {
	for _, code := range []market.Code{market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse, market.CodeRateLimited, market.CodeForbidden} {
		synctest.Test(t, func(t *testing.T) {
			v := &testVenue{}
			c := open(t, v)
			mustRead(t, c.Prices(), "k")
			time.Sleep(2 * time.Second)
			v.fail = func(ask) error { return market.Errorf(code, "no") }
			r := c.Prices().Fetch(t.Context(), []string{"k", "unknown"})
			if excused := code != market.CodeForbidden; excused != (r[0].Err == nil) || excused != r[0].Value.Stale || market.CodeOf(r[1].Err) != code {
				t.Errorf("%s: got %+v, want a stale price: %v", code, r, excused)
			}
		})
	}
}

// TestCallsCountForCredentials checks that all calls with the same credentials count against one limit, even calls for different
// wallet addresses. Calls with other credentials must count against another limit.
func TestCallsCountForCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{Key: 20}) // the margin is 1 call, so 19 calls are usable after the first, which counts as public
		ctx := withCredentials(t, "alice")
		n := 0
		for i := range 40 {
			limit, cancel := context.WithTimeout(ctx, time.Second)
			_, err := readOne(limit, c.Balances(), market.Address(fmt.Sprint("0x", i)))
			if cancel(); err == nil {
				n++
			} else if wait := retryAfter(t, err); wait > window {
				t.Errorf("got retry after %s, want at most a minute", wait)
			}
		}
		if s := b.Status(); n != 20 || s.Left != 94 || s.Scopes != 1 {
			t.Errorf("got %d calls and %+v, want 20, 94 left, 1 scope", n, s)
		}
		if _, err := readOne(withCredentials(t, "bob"), c.Balances(), "0x1"); err != nil {
			t.Errorf("other credentials: %v", err)
		}
		if scope := c.scope.credentials(request.CredentialsFrom(ctx)); scope == c.scope.credentials(request.CredentialsFrom(withCredentials(t, "bob"))) || scope == "" || c.scope.credentials(nil) != "" {
			t.Error("the names of different credentials are equal or empty, or the name of no credentials is not empty")
		}
	})
}

// TestPagesAreAdmitted checks that each HTTP call of a read needs an admission.
func TestPagesAreAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{search: func(q queries.Search) *queries.SearchPage {
			page := &queries.SearchPage{Markets: []*market.Market{{MarketID: "m" + q.Page, EventID: q.EventID}}}
			if len(q.Page) < 4 {
				page.Next = q.Page + "+"
			}
			return page
		}}
		c, b := openLimited(t, v, ratelimit.Config{Public: 8}) // the margin is 1 call, so 7 calls are usable
		if e, err := readOne(callerContext(t, "a", time.Second), c.Events(), market.EventRef{EventID: "e"}); err != nil || len(e.Value.Markets) != 5 {
			t.Fatal(err)
		}
		if s := b.Status(); s.Left != 2 {
			t.Errorf("got %+v, want 2 left", s)
		}
		_, err := readOne(callerContext(t, "a", time.Second), c.Events(), market.EventRef{EventID: "f"})
		if wait := retryAfter(t, err); wait > window || len(v.calls()) != 7 {
			t.Errorf("got retry after %s after %d calls, want at most a minute after 7 calls", wait, len(v.calls()))
		}
	})
}

// TestRefreshJoinsBatchWithRoom checks that a waiting refresh joins the batch of a miss only if the batch is not full.
func TestRefreshJoinsBatchWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{})
		wantPrices(t, readAll(t.Context(), c.Prices(), "k"), "k")
		spend(t, b, 20) // less than a quarter of the limit is left, so refreshes wait
		time.Sleep(1100 * time.Millisecond)
		wantPrices(t, receive(t, fetch(t.Context(), c, "k")), "k") // returns the stale price and queues a refresh
		full := ids("a", 0, 40)
		wantPrices(t, readAll(callerContext(t, "a", time.Second), c.Prices(), full...), full...)
		if s := b.Status(); s.Waiting[upstream.PriorityRefresh] != 1 || len(v.calls()) != 2 {
			t.Errorf("got %d calls and %+v, want 2 and a waiting refresh", len(v.calls()), s)
		}
		roomy := ids("b", 0, 39)
		wantPrices(t, readAll(callerContext(t, "a", time.Second), c.Prices(), roomy...), roomy...)
		if s := b.Status(); s.Waiting[upstream.PriorityRefresh] != 0 || len(v.calls()) != 3 {
			t.Errorf("got %d calls and %+v, want 3 and no waiting refresh", len(v.calls()), s)
		}
		wantIdle(t, c.prices.routes[0])
	})
}
