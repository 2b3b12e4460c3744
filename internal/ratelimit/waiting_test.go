package ratelimit

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// TestConcurrentFurtherCallsEnd checks that a read that makes two more calls concurrently leaves no call in flight when the read is
// released.
func TestConcurrentFurtherCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10}) // the margin is 1 call, so 9 calls are usable
		k := begin(t, b, prices("", 5*time.Minute))
		spend(t, b, "", 8)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := k.AdmitCall(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first of the two calls must wait before the second arrives
		}
		if s := b.Status(); s.Waiting[reqctx.PriorityPrices] != 2 {
			t.Fatalf("got %+v, want two waiting", s)
		}
		both.Wait()
		k.Release(true)
		time.Sleep(2 * time.Minute)
		if s := b.Status(); s.Left != 9 || b.public.flying != 0 {
			t.Errorf("at rest: got %d of 9 left and %d in flight, want 9 and 0", s.Left, b.public.flying)
		}
	})
}

// TestPlanningStopsAtHorizon checks that no turn is planned further ahead than the constant horizon.
func TestPlanningStopsAtHorizon(t *testing.T) {
	watchdog := time.AfterFunc(2*time.Minute, func() { panic("planning does not end") })
	defer watchdog.Stop()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 2}) // the margin is 1 call, so 1 call is usable
		spend(t, b, "", 1)
		now := time.Now()
		var waiting []reqctx.Reservation
		for range 8 {
			waiting = append(waiting, b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})) // without a deadline
		}
		for i, k := range waiting {
			if want := now.Add(min(time.Duration(i+1)*span, horizon)); !k.ReadyAt().Equal(want) {
				t.Errorf("got turn %d in %v, want %v", i, k.ReadyAt().Sub(now), want.Sub(now))
			}
		}
		for _, k := range waiting {
			k.Release(false)
		}
	})
}

// TestLapsedShareAdmitsWaiting checks that a call that waits because the share of an idle caller is kept free is admitted when the
// window forgets the idle caller.
func TestLapsedShareAdmitsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		b.Reserve(prices("idle", time.Second)).Release(false)
		lapses := time.Now().Add(span)
		time.Sleep(10 * time.Second)
		for call(b, prices("busy", time.Second)) {
		}
		if s := b.Status(); s.Left != 23 {
			t.Fatalf("got %d left, want 23, the share of the idle caller", s.Left)
		}
		k := b.Reserve(prices("busy", 5*time.Minute))
		time.Sleep(time.Until(lapses) - 1)
		waits(t, k)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("still waiting after the share lapsed")
		}
		k.Release(false)
	})
}

// TestRaisedLimitAdmitsWaiting checks that waiting calls are admitted when a lowered limit rises again, even if no call ends at
// that time.
func TestRaisedLimitAdmitsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10}) // the margin is 1 call, so 9 calls are usable
		var under []reqctx.Reservation
		for range 8 {
			under = append(under, begin(t, b, prices("", time.Second)))
		}
		under[0].Throttled(time.Now()) // lowers the limit to 8 calls for two minutes
		k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})
		time.Sleep(2*span - 1)
		waits(t, k)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("still waiting after the limit was raised")
		}
		for _, k := range append(under, k) {
			k.Release(false)
		}
	})
}
