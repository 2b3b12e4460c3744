package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// TestDeadlineWithKeysInEveryState reads five keys at once. When the deadline passes, one has arrived, one has failed, one is on
// its way, the call for one was cancelled, and one waits for the budget.
func TestDeadlineWithKeysInEveryState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		v, a := &venue{}, newAdmission()
		v.fail = func(call ask) error {
			switch call.keys[0] {
			case "flying":
				<-call.ctx.Done()
				return context.Cause(call.ctx)
			case "cancelled":
				<-answer
				return context.Canceled
			case "forbidden":
				<-answer
				return market.Errorf(market.CodeForbidden, "no")
			}
			<-answer
			return nil
		}
		c := open(t, v, admitBy(a))
		read := func(ctx context.Context, tokens ...string) chan []market.Result[market.Read[*market.Book]] {
			keys := make([]queries.Book, len(tokens))
			for i, token := range tokens {
				keys[i] = queries.Book{TokenID: token, Depth: 1}
			}
			out := make(chan []market.Result[market.Read[*market.Book]], 1)
			go func() { out <- readAll(ctx, c.Books(), keys...) }()
			synctest.Wait()
			return out
		}
		for _, token := range []string{"flying", "arrived", "cancelled", "forbidden"} { // one after the other, so that each has its own call
			read(by(t, "b", time.Minute), token)
			a.verdict <- nil
			synctest.Wait()
		}
		mine := read(by(t, "a", time.Second), "flying", "arrived", "cancelled", "forbidden", "queued")
		if n := len(v.calls()); n != 4 {
			t.Fatalf("%d calls", n)
		}
		a.mu.Lock()
		a.entered[4].turn = time.Now().Add(20 * time.Second)
		a.mu.Unlock()
		close(answer)
		time.Sleep(time.Second)
		got := <-mine
		for i, token := range []string{"flying", "cancelled"} {
			if err := got[2*i].Err; market.CodeOf(err) != market.CodeUpstreamTimeout {
				t.Errorf("%s: %v", token, err)
			}
		}
		if r := got[1]; r.Err != nil || r.Value.Value == nil || r.Value.Value.TokenID != "arrived" {
			t.Errorf("arrived: %+v", r)
		}
		if err := got[3].Err; market.CodeOf(err) != market.CodeForbidden {
			t.Errorf("forbidden: %v", err)
		}
		if wait := told(t, got[4].Err); wait != 19*time.Second {
			t.Errorf("queued: come back in %s", wait)
		}
	})
}

// TestDeadlineWithoutATurn: without a known turn there is no time to come back, so the deadline is a timeout.
func TestDeadlineWithoutATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &venue{}, admitBy(newAdmission()))
		waiting := fetch(by(t, "a", time.Second), c, "k")
		time.Sleep(time.Second)
		allFail(t, done(t, waiting), market.CodeUpstreamTimeout)
	})
}

// TestCancelledCallerIsNotRefused cancels a caller that waits for the budget, and one that waited for it longer than for the answer
// so far. Neither ran out of time, so both get their own error and not RATE_LIMITED.
func TestCancelledCallerIsNotRefused(t *testing.T) {
	for _, admitted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v, a := &venue{latency: time.Second}, newAdmission()
			c := open(t, v, admitBy(a))
			ctx, cancel := context.WithCancel(by(t, "a", time.Minute))
			waiting := fetch(ctx, c, "k")
			a.mu.Lock()
			a.entered[0].turn = time.Now().Add(20 * time.Second)
			a.mu.Unlock()
			time.Sleep(20 * time.Second)
			if admitted {
				a.mu.Lock()
				a.entered[0].turn = time.Time{} // it waits no more
				a.mu.Unlock()
				a.verdict <- nil
				synctest.Wait()
			}
			cancel()
			if err := done(t, waiting)[0].Err; !errors.Is(err, context.Canceled) {
				t.Errorf("admitted %v: %v", admitted, err)
			}
			atRest(t, c.prices.routes[0])
		})
	}
}
