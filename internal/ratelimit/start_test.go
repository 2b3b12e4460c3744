package ratelimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// openCold returns a budget that an earlier process may have spent. Call it in a synctest bubble.
func openCold(t *testing.T, cfg Config) *Budget {
	t.Helper()
	b := open(t, cfg)
	b.Inherit(Unsure, nil, within(time.Minute))
	return b
}

// made returns how many calls of different callers are admitted at once, without an answer of the venue.
func made(b *Budget, scope string) (n int) {
	for call(b, reqctx.CallRequest{Scope: scope, Priority: reqctx.PriorityPrices, Caller: string(rune('a' + n)), Deadline: within(time.Second)}) {
		n++
	}
	return n
}

// A window without a record has the reserve for a minute, and everything from then on.
func TestColdStart(t *testing.T) {
	for limit, want := range map[int][2]int{100: {5, 95}, 40: {2, 38}, 20: {1, 19}, 1: {0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			b := openCold(t, Config{Public: limit})
			if n := made(b, ""); n != want[0] {
				t.Errorf("limit %d: %d calls at the start, want %d", limit, n, want[0])
			}
			if s := b.Status(); s.Left != 0 || !s.ThrottledUntil.Equal(within(time.Minute)) {
				t.Errorf("limit %d: %+v", limit, s)
			}
			if wait := retryAfter(t, b.Reserve(prices("z", time.Second))); wait != time.Minute {
				t.Errorf("limit %d: told to come back in %v", limit, wait)
			}
			time.Sleep(time.Minute - 1)
			if n := made(b, ""); n != 0 {
				t.Errorf("limit %d: %d calls before the minute is over", limit, n)
			}
			time.Sleep(2 * time.Millisecond)
			if n := made(b, ""); n != want[1] {
				t.Errorf("limit %d: %d calls after a minute, want %d", limit, n, want[1])
			}
		})
	}
}

// Who waits through the cold start is let through at its end.
func TestColdStartEndsForThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		made(b, "")
		k := b.Reserve(prices("z", 2*time.Minute))
		waits(t, k)
		time.Sleep(time.Minute)
		if synctest.Wait(); !admitted(k) {
			t.Error("waits although the start is over")
		}
		k.Release(false)
	})
}

// The windows of credentials have a reserve too, and none of them has it once the start is over.
func TestColdStartOfCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{Key: 300})
		mine := reqctx.CallRequest{Scope: "mine", Priority: reqctx.PriorityUser, Deadline: within(time.Second)}
		if !call(b, mine) || b.Status().Scopes != 1 {
			t.Fatal("not admitted")
		}
		if n := made(b, "mine"); n != 14 { // the first was public, and counts in both
			t.Errorf("%d calls at the start, want 14", n)
		}
		time.Sleep(time.Minute)
		if !call(b, reqctx.CallRequest{Scope: "later", Priority: reqctx.PriorityUser, Deadline: within(time.Second)}) || b.Status().Scopes != 2 {
			t.Fatal("not admitted")
		}
		if n := made(b, "later"); n != 284 {
			t.Errorf("%d calls after the start, want 284", n)
		}
	})
}

// What the venue says remains ends the cold start: less the margin, and less the calls that it may not have counted.
func TestColdStartEndsByTheVenuesWord(t *testing.T) {
	for _, test := range []struct{ remaining, more int }{{99, 94}, {50, 45}, {12, 7}, {9, 4}, {6, 4}, {0, 4}} {
		synctest.Test(t, func(t *testing.T) {
			b := openCold(t, Config{})
			k := b.Reserve(prices("", time.Second))
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			k.Observe(100, test.remaining, time.Time{})
			k.Release(true)
			if n := made(b, ""); n != test.more {
				t.Errorf("%d remain: %d more calls, want %d", test.remaining, n, test.more)
			}
		})
	}
}

// Calls that are under way may not be among those that the venue has counted.
func TestColdStartWithCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		var under []reqctx.Reservation
		for i := range 5 {
			k := b.Reserve(prices(string(rune('a'+i)), time.Second))
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			under = append(under, k)
		}
		under[0].Observe(100, 29, time.Time{}) // 70 of others and this one, or 66 and all five
		if s := b.Status(); s.Left != 29-5-4 {
			t.Errorf("%d left while four calls may not be counted, want 20", s.Left)
		}
		for _, k := range under {
			k.Release(true)
		}
		b.Reserve(prices("z", time.Second)).Observe(100, 25, time.Time{})
		if s := b.Status(); s.Left != 20 {
			t.Errorf("%d left when all are counted", s.Left)
		}
	})
}

// Answers that overtake each other hide no calls: the venue counted those that were answered first as well.
func TestColdStartWithAnswersThatOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		b.Inherit(Unsure, nil, within(time.Minute))
		enter := func() reqctx.Reservation {
			k := b.Reserve(prices(fmt.Sprint(b.Status().Admitted), time.Second))
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			return k
		}
		answer := func(k reqctx.Reservation, remaining int) {
			k.Observe(100, remaining, time.Time{})
			k.Release(true)
		}
		answer(enter(), 60) // 39 of others
		var under []reqctx.Reservation
		for range 10 {
			under = append(under, enter())
		}
		for i := range under {
			answer(under[i], 50+i) // the last that arrived is answered first
		}
		if s := b.Status(); s.Left != 45 {
			t.Errorf("%d left, want the 50 that the venue named less the margin", s.Left)
		}
		answer(enter(), 70) // others' calls have left the minute
		if s := b.Status(); s.Left != 65 {
			t.Errorf("%d left when the venue names 70", s.Left)
		}
	})
}

// When the venue's window moves on, one call finds out how many remain.
func TestColdStartAsksAgainAtTheReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		for i := range 5 {
			k := b.Reserve(prices(string(rune('a'+i)), time.Second))
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			k.Observe(100, 4-i, within(3*time.Second))
			k.Release(true)
		}
		if n := made(b, ""); n != 0 {
			t.Errorf("%d calls although nothing remains", n)
		}
		k := b.Reserve(prices("z", 10*time.Second))
		if k.Err() == nil {
			t.Error("waits for a call that is not planned")
		}
		patient := b.Reserve(prices("y", 2*time.Minute))
		waits(t, patient)
		time.Sleep(3 * time.Second)
		if synctest.Wait(); !admitted(patient) {
			t.Fatal("nobody asks again")
		}
		if n := made(b, ""); n != 0 {
			t.Errorf("%d calls beside the one that asks", n)
		}
		if err := patient.AdmitCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		patient.Observe(100, 40, within(3*time.Second))
		patient.Release(true)
		if n := made(b, ""); n != 35 {
			t.Errorf("%d calls of 40 that remain, want 35", n)
		}
	})
}

// A limit that the venue names is one that the reserve is taken from.
func TestReserveOfALowerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		k := b.Reserve(prices("", time.Second))
		k.Observe(40, -1, time.Time{})
		k.Release(false)
		if n := made(b, ""); n != 2 {
			t.Errorf("%d calls, want a twentieth of 40", n)
		}
	})
}

// What a record knows of the process before counts until it has left the minute, one second after the other.
func TestInheritAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		start := time.Now()
		b.Inherit(Alone, []Spent{{Calls: 20, At: start}, {Calls: 30, At: start.Add(-30 * time.Second)}, {Calls: 40, At: start.Add(-50 * time.Second)}, {Calls: 7, At: start.Add(-2 * time.Minute)}}, time.Time{})
		if n := made(b, ""); n != 5 {
			t.Errorf("%d calls, want the 5 that are left", n)
		}
		for _, step := range []struct {
			at    time.Duration
			calls int
		}{{10*time.Second + time.Millisecond, 40}, {30*time.Second + time.Millisecond, 30}, {60*time.Second + time.Millisecond, 25}} {
			time.Sleep(time.Until(start.Add(step.at)) - 1)
			if n := made(b, ""); n != 0 {
				t.Errorf("%d calls before %v", n, step.at)
			}
			time.Sleep(time.Nanosecond)
			if n := made(b, ""); n != step.calls {
				t.Errorf("%d calls after %v, want %d", n, step.at, step.calls)
			}
		}
		time.Sleep(2 * time.Minute)
		w := b.public
		if w.expire(time.Now()); w.used() != 0 || w.byPriority != [reqctx.Priorities]int{} || w.reserved != 0 {
			t.Errorf("at rest: %d used, %v, %d reserved", w.used(), w.byPriority, w.reserved)
		}
	})
}

// Those who wait are told their turn by what is inherited too.
func TestInheritedCallsArePlannedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		b.Inherit(Alone, []Spent{{Calls: 95, At: within(-20 * time.Second)}}, time.Time{})
		k := b.Reserve(prices("", 2*time.Minute))
		if want := within(40*time.Second + time.Millisecond); !k.ReadyAt().Equal(want) {
			t.Errorf("its turn is at %v, want %v", k.ReadyAt(), want)
		}
		time.Sleep(40*time.Second + time.Millisecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("it waits")
		}
		k.Release(false)
	})
}

// Beside another process there is the reserve, whatever the venue says, and beside two there is nothing.
func TestInheritBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		b.Inherit(Third, nil, within(time.Minute))
		if n := made(b, ""); n != 0 {
			t.Errorf("%d calls beside two processes", n)
		}
		b.Inherit(Second, []Spent{{Calls: 2, At: time.Now()}}, within(time.Minute))
		k := b.Reserve(prices("", time.Second))
		if err := k.AdmitCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.Observe(100, 60, time.Time{})
		k.Release(true)
		if n := made(b, ""); n != 2 {
			t.Errorf("%d more calls beside another process, want 2 of the reserve", n)
		}
		time.Sleep(50 * time.Second)
		b.Inherit(Second, nil, within(time.Minute))
		time.Sleep(50 * time.Second)
		if n := made(b, ""); n != 5 {
			t.Errorf("%d calls, want the reserve of another minute", n)
		}
		k = b.Reserve(prices("z", 2*time.Minute))
		waits(t, k)
		b.Inherit(Alone, []Spent{{Calls: 80, At: time.Now()}}, time.Time{})
		if synctest.Wait(); !admitted(k) {
			t.Error("waits although the other process has gone")
		}
		k.Release(false)
		if n := made(b, ""); n != 10 {
			t.Errorf("%d calls, want what 80 of the other and 5 of this one leave", n)
		}
	})
}

// recorder notes what a record is told.
type recorder struct{ taken, ended int }

func (r *recorder) Take() { r.taken++ }
func (r *recorder) End()  { r.ended++ }

// Each public call is recorded before it may be made, and when it ends. Calls that are not made are not.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := open(t, Config{Record: &r})
		want := func(taken, ended int) {
			t.Helper()
			if r != (recorder{taken, ended}) {
				t.Errorf("%+v, want %d taken and %d ended", r, taken, ended)
			}
		}
		k := b.Reserve(prices("", time.Second))
		want(0, 0)
		k.Release(false)
		want(0, 0)
		k = b.Reserve(prices("", time.Second))
		for i := range 3 {
			if err := k.AdmitCall(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(i+1, i)
		}
		k.Release(true)
		want(3, 3)
		spend(t, b, "", 92)
		want(95, 95)
		if b.Reserve(prices("", time.Second)).AdmitCall(t.Context()) == nil {
			t.Error("a call too many")
		}
		want(95, 95)
		time.Sleep(2 * time.Minute)
		call(b, reqctx.CallRequest{Scope: "mine", Deadline: within(time.Second)}) // counted as a public one
		want(96, 96)
		call(b, reqctx.CallRequest{Scope: "mine", Deadline: within(time.Second)})
		want(96, 96)
	})
}

// Only a reset to come lets a call ask again, only when no other is under way, and only as long as the start is cold.
func TestWhenAColdStartAsksAgain(t *testing.T) {
	for name, test := range map[string]struct {
		reset, released, observed time.Duration // since the start; observed is another answer without a reset, 0 for none
		none, one                 time.Duration // when no call may leave, and when one may; 0 is never
	}{
		"a reset that is past":           {reset: -time.Second, none: 10 * time.Second},
		"a call under way":               {reset: 3 * time.Second, released: 8 * time.Second, none: 5 * time.Second, one: 8 * time.Second},
		"another answer after the start": {reset: 65 * time.Second, observed: 62 * time.Second, none: 66 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, start := openCold(t, Config{}), time.Now()
			var last reqctx.Reservation
			for i := range 5 {
				last = b.Reserve(prices(string(rune('a'+i)), time.Second))
				if err := last.AdmitCall(t.Context()); err != nil {
					t.Fatal(err)
				}
				if i < 4 {
					last.Release(true)
				}
			}
			last.Observe(100, 0, start.Add(test.reset))
			time.Sleep(time.Until(start.Add(test.observed)))
			if test.observed > 0 {
				last.Observe(100, 0, time.Time{})
			}
			if test.released == 0 {
				last.Release(true)
			}
			time.Sleep(time.Until(start.Add(test.none)))
			if n := made(b, ""); n != 0 {
				t.Errorf("%s: %d calls after %v", name, n, test.none)
			}
			if test.released > 0 {
				time.Sleep(time.Until(start.Add(test.released)))
				last.Release(true)
			}
			if test.one > 0 {
				if n := made(b, ""); n != 1 {
					t.Errorf("%s: %d calls after %v, want one", name, n, test.one)
				}
			}
		})
	}
}
