package ratelimit

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// Further calls of one read that waited at once end with the read, each of them.
func TestFurtherCallsAtOnceEndWithTheirRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10}) // 9
		k := b.Reserve(prices("", 5*time.Minute))
		if err := k.AdmitCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		spend(t, b, "", 8)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := k.AdmitCall(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first waits when the second comes
		}
		if s := b.Status(); s.Waiting[reqctx.PriorityPrices] != 2 {
			t.Fatalf("%+v; want two waiting", s)
		}
		both.Wait()
		k.Release(true)
		time.Sleep(2 * time.Minute)
		if s := b.Status(); s.Left != 9 || b.public.flying != 0 {
			t.Errorf("at rest %d of 9 are left, %d under way", s.Left, b.public.flying)
		}
	})
}

// Planning ends where more calls wait than have a turn within the horizon, and says that those come after it.
func TestPlanningEndsAtTheHorizon(t *testing.T) {
	watchdog := time.AfterFunc(2*time.Minute, func() { panic("planning does not end") })
	defer watchdog.Stop()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 2}) // 1
		spend(t, b, "", 1)
		now := time.Now()
		var waiting []reqctx.Reservation
		for range 8 {
			waiting = append(waiting, b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})) // without a deadline
		}
		for i, k := range waiting {
			if want := now.Add(min(time.Duration(i+1)*span, horizon)); !k.ReadyAt().Equal(want) {
				t.Errorf("the turn of %d is in %v, want %v", i, k.ReadyAt().Sub(now), want.Sub(now))
			}
		}
		for _, k := range waiting {
			k.Release(false)
		}
	})
}

// When a caller who asked for nothing more loses its share, those who wait for it are let through at that moment.
func TestWaitersGetALapsedShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		b.Reserve(prices("idle", time.Second)).Release(false)
		lapses := time.Now().Add(span)
		time.Sleep(10 * time.Second)
		for call(b, prices("busy", time.Second)) {
		}
		if s := b.Status(); s.Left != 23 {
			t.Fatalf("%d left, want the share of the other caller", s.Left)
		}
		k := b.Reserve(prices("busy", 5*time.Minute))
		time.Sleep(time.Until(lapses) - 1)
		waits(t, k)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("waits although the share has lapsed")
		}
		k.Release(false)
	})
}

// When a limit that was cut is raised again, those who wait are let through at that moment, though no call ends.
func TestWaitersGetAMendedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10}) // 9
		var under []reqctx.Reservation
		for range 8 {
			k := b.Reserve(prices("", time.Second))
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			under = append(under, k)
		}
		under[0].Throttled(time.Now()) // 8 for two minutes
		k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})
		time.Sleep(2*span - 1)
		waits(t, k)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("waits although the limit is raised")
		}
		for _, k := range append(under, k) {
			k.Release(false)
		}
	})
}
