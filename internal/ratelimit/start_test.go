package ratelimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/upstream"
)

// answered makes a call of a new caller, reports an answer, and reports whether the call was admitted at once.
func answered(b *Budget, scope string) bool {
	return call(b, upstream.CallRequest{Scope: scope, Priority: upstream.PriorityUser, Caller: fmt.Sprint(b.Status().Admitted), Deadline: within(time.Second)})
}

// count makes calls until a call is not admitted at once, and returns their number.
func count(b *Budget, scope string) (n int) {
	for answered(b, scope) {
		n++
	}
	return n
}

// TestStart checks that half of the limit is free at the start over a venue that other processes may have called, and that the rest
// returns evenly within a period. Nothing is assumed about a new venue.
func TestStart(t *testing.T) {
	for _, test := range []struct{ limit, atOnce, usable int }{{100, 48, 95}, {40, 19, 38}, {2, 1, 1}, {1, 1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			b := openCold(t, Config{Public: test.limit})
			if n := count(b, ""); n != test.atOnce {
				t.Errorf("limit %d: got %d calls at the start, want %d", test.limit, n, test.atOnce)
			}
			if b.Scarce("", upstream.EndpointPrices) != (test.atOnce == test.usable) {
				t.Errorf("limit %d: assumed calls make calls scarce", test.limit)
			}
			n := test.atOnce
			for range 59 {
				time.Sleep(time.Second)
				more := count(b, "")
				if n += more; more > 1 {
					t.Errorf("limit %d: %d calls became free within a second, want at most 1", test.limit, more)
				}
			}
			if n < test.usable-1 || n > test.usable {
				t.Errorf("limit %d: got %d calls in the first minute, want %d", test.limit, n, test.usable)
			}
			if n := count(open(t, Config{Public: test.limit}), ""); n != test.usable {
				t.Errorf("limit %d: got %d calls to a new venue, want %d", test.limit, n, test.usable)
			}
		})
	}
}

// TestStartOfCredentials checks that a window of credentials starts with half of its calls, plus those of the assumed calls that have
// returned since the start. A window that opens after the first period starts with all its calls.
func TestStartOfCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{Key: 300})
		for _, test := range []struct {
			at   time.Duration
			want int
		}{{0, 143}, {30 * time.Second, 213}, {time.Minute + time.Second, 285}} {
			time.Sleep(test.at - time.Since(b.opened))
			scope := fmt.Sprint(test.at)
			if !answered(b, scope) { // opens the window
				t.Fatal("the first call was not admitted at once")
			}
			if n := count(b, scope); n != test.want {
				t.Errorf("after %s: got %d calls, want %d", test.at, n, test.want)
			}
		}
	})
}

// TestFirstAnswer checks that two calls are in flight at the start. Their number grows with the calls that the venue has answered, and
// nothing bounds it a minute after the start.
func TestFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		first, second, third := b.Reserve(prices("a", time.Minute)), b.Reserve(prices("b", time.Minute)), b.Reserve(prices("c", time.Minute))
		if !admitted(first) || !admitted(second) {
			t.Fatal("one of two calls was not admitted at once")
		}
		wantWaiting(t, third)
		_ = first.AdmitCall(t.Context())
		first.Release(false) // ended without an answer
		if !admitted(third) {
			t.Error("the third call still waits, although only one call is in flight")
		}
		fourth := b.Reserve(prices("d", time.Minute))
		wantWaiting(t, fourth)
		_ = second.AdmitCall(t.Context())
		serve(second)
		wantWaiting(t, fourth)
		for _, k := range []upstream.Reservation{second, third, fourth} {
			k.Release(true)
		}
		wantInFlight := func(n int) {
			t.Helper()
			var all []upstream.Reservation
			for range n {
				all = append(all, begin(t, b, prices("e", time.Second)))
			}
			k := b.Reserve(prices("e", 10*time.Second))
			all = append(all, k)
			if n < 8 {
				wantWaiting(t, k)
			}
			for _, k := range all {
				serve(k)
				k.Release(true)
			}
		}
		wantInFlight(2)
		spend(t, b, "f", 16)
		wantInFlight(3)
		time.Sleep(span)
		answered(b, "")
		wantInFlight(8)

		large := openCold(t, Config{Public: 100_000}) // two calls show that far more are free
		answered(large, "")
		answered(large, "")
		if got := large.public.maxInFlight; got < 50 {
			t.Errorf("after two calls under a limit of 100,000, at most %d calls are in flight", got)
		}
	})
}

// TestHeadersReplaceTheAssumption checks that the venue's number of remaining calls replaces the assumed calls.
func TestHeadersReplaceTheAssumption(t *testing.T) {
	for _, test := range []struct{ limit, remaining, more int }{{100, 99, 94}, {100, 50, 45}, {100, 0, 0}, {100, -1, 47}, {40, -1, 18}} {
		synctest.Test(t, func(t *testing.T) {
			b := openCold(t, Config{})
			k := begin(t, b, prices("", time.Second))
			report(k, test.limit, test.remaining, time.Time{})
			k.Release(true)
			if n := count(b, ""); n != test.more {
				t.Errorf("%d of %d calls remain at the venue: got %d more calls, want %d", test.remaining, test.limit, n, test.more)
			}
			if scarce := b.Scarce("", upstream.EndpointPrices); scarce != (test.remaining >= 0) {
				t.Errorf("%d of %d calls remain at the venue: got scarce = %t after they were used", test.remaining, test.limit, scarce)
			}
		})
	}
}

// TestRefusedAtTheStart checks that a 429 in the first minute counts the whole limit as used, and that it returns evenly after the
// pause. Meanwhile one call is in flight at a time, and each further 429 doubles the pause.
func TestRefusedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		k := begin(t, b, prices("", time.Second))
		refuse(k, 20*time.Second)
		k.Release(false)
		time.Sleep(20*time.Second + span/2)
		if n := count(b, ""); n != 42 {
			t.Errorf("got %d calls half a minute after the pause, want 42, half of the limit after a 429", n)
		}
		time.Sleep(2 * time.Second)
		first, second, third := begin(t, b, prices("a", time.Second)), b.Reserve(prices("b", time.Minute)), b.Reserve(prices("c", time.Minute))
		wantWaiting(t, second)
		serve(first)
		first.Release(true)
		_ = second.AdmitCall(t.Context())
		wantWaiting(t, third)
		refuse(second, time.Second)
		second.Release(true)
		time.Sleep(5*time.Second - 1)
		wantWaiting(t, third)
		time.Sleep(span) // the assumed calls have returned
		_ = third.AdmitCall(t.Context())
		serve(third)
		begin(t, b, prices("a", time.Second))
		if fourth := b.Reserve(prices("d", time.Second)); !admitted(fourth) {
			t.Error("two calls cannot be in flight although no calls are assumed")
		}
	})
}

// TestUsedUpAtTheStart simulates a process that starts after another process has used up the venue's limit in a burst 20 seconds
// ago. The venue refuses at most six calls, and everything is free again a minute after the last refusal.
func TestUsedUpAtTheStart(t *testing.T) {
	for _, retryAfter := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := openCold(t, Config{})
			free := time.Now().Add(40 * time.Second)
			refused, served := 0, 0
			for time.Since(b.opened) < 3*time.Minute {
				k := b.Reserve(prices(fmt.Sprint(served%5), time.Minute))
				switch {
				case !admitted(k) || k.AdmitCall(t.Context()) != nil:
				case time.Now().Before(free):
					refused++
					wait := time.Duration(0)
					if retryAfter {
						wait = time.Until(free)
					}
					refuse(k, wait)
				default:
					served++
					serve(k)
				}
				k.Release(false)
				time.Sleep(100 * time.Millisecond)
			}
			if most := map[bool]int{true: 1, false: 6}[retryAfter]; refused > most || served < 86 {
				t.Errorf("Retry-After %t: %d calls were refused and %d answered in three minutes, want at most %d refused and at least 86 answered", retryAfter, refused, served, most)
			}
		})
	}
}
