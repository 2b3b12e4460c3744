package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// TestLimits checks how many calls a budget admits under each limit. The limit 0 means the default limit.
func TestLimits(t *testing.T) {
	for limit, want := range map[int]int{0: 95, 100: 95, 10: 9, 2: 1, 1: 1, 60: 57} {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, Config{Public: limit})
			n := 0
			for call(b, prices("", time.Second)) {
				n++
			}
			if s := b.Status(); n != want || s.Limit != want || s.Left != 0 || s.Admitted != uint64(n) || s.Refused != 1 || !b.Scarce("", 0) {
				t.Errorf("limit %d: %d calls were admitted and the status is %+v, want %d calls, nothing left and 1 refusal", limit, n, s, want)
			}
		})
	}
}

// TestNeverMoreThanTheLimit checks that the venue never gets more than the 38 usable calls of the limit 40 in 60 seconds, whatever
// the durations of the calls. In five minutes, the venue must get at least four times 38 calls.
func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, Config{Public: 40})
			var mu sync.Mutex
			var arrivals []time.Time
			arrive := func() {
				mu.Lock()
				defer mu.Unlock()
				arrivals = append(arrivals, time.Now())
			}
			start := time.Now()
			var wg sync.WaitGroup
			for c := range 12 {
				r := rand.New(rand.NewPCG(seed, uint64(c)))
				wg.Go(func() {
					for time.Since(start) < 5*time.Minute {
						time.Sleep(time.Duration(r.ExpFloat64() * float64(3*time.Second)))
						want := upstream.CallRequest{
							Priority: upstream.Priority(r.IntN(upstream.Priorities)), Caller: fmt.Sprint(c), Deadline: within(time.Duration(r.IntN(20)) * time.Second),
						}
						ctx, cancel := context.WithDeadline(t.Context(), want.Deadline)
						k := b.Reserve(want)
						select {
						case <-k.Decided():
						case <-ctx.Done():
						}
						for range 1 + r.IntN(3) {
							if k.Err() != nil || ctx.Err() != nil || k.AdmitCall(ctx) != nil {
								break
							}
							travel := time.Duration(r.IntN(2000)) * time.Millisecond
							time.Sleep(travel)
							arrive()
							time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
						}
						k.Release(false)
						cancel()
					}
				})
			}
			wg.Wait()
			if most := mostWithin(arrivals, time.Minute+1); most > 38 { // a period of 60 seconds includes its end
				t.Errorf("seed %d: got %d calls in 60 seconds, want at most 38", seed, most)
			}
			if len(arrivals) < 4*38 {
				t.Errorf("seed %d: got %d calls in five minutes, want at least 152", seed, len(arrivals))
			}
			time.Sleep(2 * time.Minute)
			if s := b.Status(); s.Left != s.Limit || s.Waiting != [upstream.Priorities]int{} {
				t.Errorf("two minutes after the last call the status is %+v, want all calls left and none waiting", s)
			}
			w := b.public
			if w.expire(time.Now()); w.inFlight != 0 || w.callers.Len() != 0 || w.reserved != 0 || w.byPriority != [upstream.Priorities]int{} {
				t.Errorf("two minutes after the last call the window has %d calls in flight, %d callers, %d reserved calls and the calls %v by priority; want none", w.inFlight, w.callers.Len(), w.reserved, w.byPriority)
			}
		})
	}
}

// TestRefusalNamesTheWait checks that the wait in a refusal is the shortest wait after which a new call is admitted.
func TestRefusalNamesTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10}) // the margin is 1 call, so 9 calls are usable
		for range 9 {
			spend(t, b, "", 1)
			time.Sleep(time.Second)
		}
		var waiting []upstream.Reservation
		for range 3 {
			waiting = append(waiting, b.Reserve(prices("", time.Minute)))
		}
		k := b.Reserve(prices("", 10*time.Second))
		wait := retryAfter(t, k)
		if want := 54*time.Second + time.Millisecond; wait != want {
			t.Errorf("got retry after %s, want %s", wait, want)
		}
		if s := b.Status(); s.Waiting[upstream.PriorityPrices] != 3 {
			t.Errorf("the status is %+v, want 3 waiting calls", s)
		}
		time.Sleep(wait - 1)
		if k := b.Reserve(prices("", 1)); k.Err() == nil {
			t.Error("a call was admitted before the wait in the error was over")
		}
		time.Sleep(time.Nanosecond)
		for i, k := range waiting {
			if !admitted(k) {
				t.Errorf("reservation %d still waits", i)
			}
		}
		if !call(b, prices("", time.Nanosecond)) {
			t.Error("no call was admitted after the wait in the error")
		}
	})
}

// TestUnusedCallsAreGivenBack checks that the next read in the queue is admitted when an admitted read is released without a call.
func TestUnusedCallsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 10})
		spend(t, b, "", 8)
		unused := b.Reserve(prices("a", time.Second))
		if !admitted(unused) {
			t.Fatal("the call of a was not admitted at once")
		}
		first, second := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "b"}), b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "c"})
		wantWaiting(t, first)
		wantWaiting(t, second)
		turnBefore := turnOf(t, second)
		if s := b.Status(); s.Admitted != 8 { // Admitted counts calls, and the reservation unused has made no call
			t.Errorf("the status is %+v, want 8 admitted calls", s)
		}
		first.Release(false)
		first.Release(false)
		if turn := turnOf(t, second); turn.After(turnBefore) {
			t.Errorf("the turn moved from %s to %s, want no later turn", turnBefore, turn)
		}
		unused.Release(false)
		if !admitted(second) {
			t.Error("the second reservation was not admitted after a call was given back")
		}
		if first.AdmitCall(t.Context()) == nil || unused.AdmitCall(t.Context()) == nil {
			t.Error("a released reservation made a call")
		}
		if err := second.AdmitCall(t.Context()); err != nil || b.Status().Admitted != 9 {
			t.Errorf("got the error %v and the status %+v, want 9 admitted calls", err, b.Status())
		}
	})
}

// TestFurtherCalls checks that another call of an admitted read comes before reads that were reserved later. The other call must be
// refused if its turn is after the deadline of the read.
func TestFurtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 4}) // the margin is 1 call, so 3 calls are usable
		k := b.Reserve(prices("a", 90*time.Second))
		for range 3 {
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		other := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "a"})
		further := make(chan error, 1)
		go func() { further <- k.AdmitCall(t.Context()) }()
		time.Sleep(57 * time.Second)
		if synctest.Wait(); len(further) != 0 {
			t.Fatal("got a fourth call in 60 seconds")
		}
		time.Sleep(time.Second + time.Millisecond)
		if err := <-further; err != nil {
			t.Fatal(err)
		}
		wantWaiting(t, other)

		// The deadline of k is in 29 seconds. Until then, two calls leave the window, so two new calls can be sent. The reservation other
		// gets the first new call, and k gets the second. A third new call is possible only after the deadline of k.
		time.Sleep(time.Second)
		if synctest.Wait(); !admitted(other) || other.AdmitCall(t.Context()) != nil {
			t.Fatal(other.Err())
		}
		if err := k.AdmitCall(t.Context()); err != nil { // the last of the first three calls has left the window
			t.Fatal(err)
		}
		if err := k.AdmitCall(t.Context()); market.CodeOf(err) != market.CodeRateLimited {
			t.Errorf("the call after the deadline: got %v, want RATE_LIMITED", err)
		}
		// A caller without a deadline joins the read. So the next call of the read is not refused, but waits.
		k.Join(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "b"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.AdmitCall(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call whose context ends: got %v, want DeadlineExceeded", err)
		}
		if s := b.Status(); s.Waiting != [upstream.Priorities]int{} {
			t.Errorf("the status is %+v, want no waiting calls", s)
		}
		go func() { further <- k.AdmitCall(t.Context()) }()
		time.Sleep(time.Minute)
		if err := <-further; err != nil {
			t.Error(err)
		}
		k.Release(true)
		other.Release(true)
		time.Sleep(2 * span)
		if s := b.Status(); s.Left != 3 {
			t.Errorf("the status is %+v, want 3 calls left", s)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{Public: 2})
		k := b.Reserve(prices("", time.Second))
		waiting := b.Reserve(prices("", 2*time.Minute))
		_ = k.AdmitCall(t.Context())
		k.Release(true)
		wantWaiting(t, waiting)
		b.Close()
		b.Close()
		for _, k := range []upstream.Reservation{waiting, b.Reserve(prices("", time.Second))} {
			<-k.Decided()
			if market.CodeOf(k.Err()) != market.CodeUpstreamUnavailable || k.AdmitCall(t.Context()) == nil {
				t.Errorf("after Close: got %v, want UPSTREAM_UNAVAILABLE and no call", k.Err())
			}
			k.Join(prices("", time.Second))
			k.Release(false)
		}
	})
}

// TestAllocations checks that a call that is admitted at once costs at most two allocations.
func TestAllocations(t *testing.T) {
	b := New(Config{Public: 1 << 20})
	defer b.Close()
	want := upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "c", Deadline: time.Now().Add(time.Hour)}
	ctx := context.Background()
	for range 4000 {
		call(b, want) // after these calls, the log of calls does not grow any more
	}
	n := testing.AllocsPerRun(1000, func() {
		k := b.Reserve(want)
		<-k.Decided()
		_ = k.AdmitCall(ctx)
		k.Release(true)
	})
	if n > 2 {
		t.Errorf("got %v allocations, want at most 2", n)
	}
}

// BenchmarkCall measures a call that is admitted at once.
func BenchmarkCall(b *testing.B) {
	budget := New(Config{Public: 1 << 40})
	defer budget.Close()
	want := upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "c", Deadline: time.Now().Add(time.Hour)}
	b.ReportAllocs()
	for b.Loop() {
		k := budget.Reserve(want)
		<-k.Decided()
		_ = k.AdmitCall(b.Context())
		k.Release(false)
	}
}

// BenchmarkRefusal measures the refusal of a read while the window is full, for queues of several lengths.
func BenchmarkRefusal(b *testing.B) {
	for _, waiting := range []int{0, 32, 90} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			budget := New(Config{})
			defer budget.Close()
			for call(budget, upstream.CallRequest{Priority: upstream.PriorityPrices, Deadline: within(1)}) {
			}
			for i := range waiting {
				budget.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: fmt.Sprint(i)})
			}
			b.ReportAllocs()
			for b.Loop() {
				k := budget.Reserve(upstream.CallRequest{Priority: upstream.PriorityPrices, Caller: "late", Deadline: within(time.Second)})
				if k.Err() == nil {
					b.Fatal("the reservation was admitted")
				}
			}
		})
	}
}
