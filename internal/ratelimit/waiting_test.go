package ratelimit

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/upstream"
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
		if s := b.Status(); s.Waiting[upstream.PriorityPrices] != 2 {
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
