package ratelimit

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// TestConcurrentFurtherCallsEnd checks a read that makes two more calls concurrently: when the read is released, no call may be in
// flight.
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
			t.Fatalf("the status is %+v, want two waiting calls", s)
		}
		both.Wait()
		k.Release(true)
		time.Sleep(2 * time.Minute)
		if s := b.Status(); s.Left != 9 || b.public.inFlight != 0 {
			t.Errorf("after two minutes %d calls are left and %d are in flight, want 9 and 0", s.Left, b.public.inFlight)
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
				t.Errorf("the turn of reservation %d is in %v, want in %v", i, k.ReadyAt().Sub(now), want.Sub(now))
			}
		}
		for _, k := range waiting {
			k.Release(false)
		}
	})
}

// TestLapsedShareAdmitsWaiting checks that the window keeps the share of an idle caller free until it forgets this caller. Then a
// waiting call of another caller must be admitted.
func TestLapsedShareAdmitsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		b.Reserve(prices("idle", time.Second)).Release(false)
		lapseTime := time.Now().Add(span)
		time.Sleep(10 * time.Second)
		for call(b, prices("busy", time.Second)) {
		}
		if s := b.Status(); s.Left != 23 {
			t.Fatalf("%d calls are left, want 23, the share of the idle caller", s.Left)
		}
		k := b.Reserve(prices("busy", 5*time.Minute))
		time.Sleep(time.Until(lapseTime) - 1)
		wantWaiting(t, k)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("the call still waits after the window forgot the idle caller")
		}
		k.Release(false)
	})
}

// TestRaisedLimitAdmitsWaiting checks that waiting calls are admitted when a lowered limit rises again, even if no call ends at
// that time.
func TestRaisedLimitAdmitsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10}) // the margin is 1 call, so 9 calls are usable
		var running []reqctx.Reservation
		for range 8 {
			running = append(running, begin(t, b, prices("", time.Second)))
		}
		running[0].Throttled(time.Now()) // lowers the limit to 8 calls for two minutes
		k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})
		time.Sleep(2*span - 1)
		wantWaiting(t, k)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("the call still waits after the limit was raised")
		}
		for _, k := range append(running, k) {
			k.Release(false)
		}
	})
}
