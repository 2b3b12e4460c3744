package ratelimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/reqctx"
)

// openCold returns a budget in a cold start: for a minute it has the allowance AllowMarginFirst, because an earlier process may
// have used up the limit. Call openCold inside synctest.Test.
func openCold(t *testing.T, cfg Config) *Budget {
	t.Helper()
	b := open(t, cfg)
	b.Inherit(AllowMarginFirst, nil, within(time.Minute))
	return b
}

// countAdmitted makes calls, each of a different caller, until a call is not admitted at once. It returns the number of admitted
// calls.
func countAdmitted(b *Budget, scope string) (n int) {
	for call(b, reqctx.CallRequest{Scope: scope, Priority: reqctx.PriorityPrices, Caller: string(rune('a' + n)), Deadline: within(time.Second)}) {
		n++
	}
	return n
}

// TestColdStart checks that a window has only its margin, a twentieth of the limit, in the first minute if earlier calls are
// unknown.
func TestColdStart(t *testing.T) {
	for limit, want := range map[int][2]int{100: {5, 95}, 40: {2, 38}, 20: {1, 19}, 1: {0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			b := openCold(t, Config{Public: limit})
			if n := countAdmitted(b, ""); n != want[0] {
				t.Errorf("limit %d: got %d calls at the start, want %d", limit, n, want[0])
			}
			if s := b.Status(); s.Left != 0 || !s.ThrottledUntil.Equal(within(time.Minute)) {
				t.Errorf("limit %d: the status is %+v, want no calls left until a minute after the start", limit, s)
			}
			if wait := retryAfter(t, b.Reserve(prices("z", time.Second))); wait != time.Minute {
				t.Errorf("limit %d: got retry after %v, want a minute", limit, wait)
			}
			time.Sleep(time.Minute - 1)
			if n := countAdmitted(b, ""); n != 0 {
				t.Errorf("limit %d: got %d calls before the minute is over, want 0", limit, n)
			}
			time.Sleep(2 * time.Millisecond)
			if n := countAdmitted(b, ""); n != want[1] {
				t.Errorf("limit %d: got %d calls after a minute, want %d", limit, n, want[1])
			}
		})
	}
}

// TestColdStartAdmitsWaiting checks that a call that waits during the cold start is admitted when the cold start ends.
func TestColdStartAdmitsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		countAdmitted(b, "")
		k := b.Reserve(prices("z", 2*time.Minute))
		wantWaiting(t, k)
		time.Sleep(time.Minute)
		if synctest.Wait(); !admitted(k) {
			t.Error("the call still waits after the cold start")
		}
		k.Release(false)
	})
}

// TestColdStartOfCredentials checks that a window of credentials that is opened during the cold start has only its margin. A window
// that is opened later must have all usable calls.
func TestColdStartOfCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{Key: 300})
		mine := reqctx.CallRequest{Scope: "mine", Priority: reqctx.PriorityUser, Deadline: within(time.Second)}
		if !call(b, mine) || b.Status().Scopes != 1 {
			t.Fatal("the first call was not admitted, or the credentials got no window")
		}
		// The margin is 15 calls. The first call counts in the public window and in the window of the credentials.
		if n := countAdmitted(b, "mine"); n != 14 {
			t.Errorf("got %d calls at the start, want 14", n)
		}
		time.Sleep(time.Minute)
		if !call(b, reqctx.CallRequest{Scope: "later", Priority: reqctx.PriorityUser, Deadline: within(time.Second)}) || b.Status().Scopes != 2 {
			t.Fatal("the later call was not admitted, or its credentials got no window")
		}
		if n := countAdmitted(b, "later"); n != 284 {
			t.Errorf("got %d calls after the start, want 284", n)
		}
	})
}

// TestRemainingEndsColdStart checks that the budget admits as many calls as the venue reports as remaining, minus the margin of 5
// calls. It must admit at least the 4 calls that are left of the margin.
func TestRemainingEndsColdStart(t *testing.T) {
	for _, test := range []struct{ remaining, more int }{{99, 94}, {50, 45}, {12, 7}, {9, 4}, {6, 4}, {0, 4}} {
		synctest.Test(t, func(t *testing.T) {
			b := openCold(t, Config{})
			k := begin(t, b, prices("", time.Second))
			k.Observe(100, test.remaining, time.Time{})
			k.Release(true)
			if n := countAdmitted(b, ""); n != test.more {
				t.Errorf("%d calls remain at the venue: got %d more calls, want %d", test.remaining, n, test.more)
			}
		})
	}
}

// TestColdStartWithRunningCalls checks that the budget also subtracts calls in flight, because the venue may not have counted them
// yet.
func TestColdStartWithRunningCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		var running []reqctx.Reservation
		for i := range 5 {
			running = append(running, begin(t, b, prices(string(rune('a'+i)), time.Second)))
		}
		running[0].Observe(100, 29, time.Time{}) // the venue has counted 71 calls, and this process made 1 to 5 of them
		if s := b.Status(); s.Left != 29-5-4 {
			t.Errorf("%d calls are left while four calls may be uncounted, want 20", s.Left)
		}
		for _, k := range running {
			k.Release(true)
		}
		b.Reserve(prices("z", time.Second)).Observe(100, 25, time.Time{})
		if s := b.Status(); s.Left != 20 {
			t.Errorf("%d calls are left when all calls are counted, want 20", s.Left)
		}
	})
}

// TestColdStartWithReorderedResponses checks that the budget uses the smallest reported number of remaining calls if responses
// overtake each other.
func TestColdStartWithReorderedResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		beginCall := func() reqctx.Reservation { return begin(t, b, prices(fmt.Sprint(b.Status().Admitted), time.Second)) }
		answer := func(k reqctx.Reservation, remaining int) {
			k.Observe(100, remaining, time.Time{})
			k.Release(true)
		}
		answer(beginCall(), 60) // the venue has counted this call and 39 calls of other processes
		var running []reqctx.Reservation
		for range 10 {
			running = append(running, beginCall())
		}
		for i := range running {
			answer(running[i], 50+i) // the call that the venue counted last is the first to get its response
		}
		if s := b.Status(); s.Left != 45 {
			t.Errorf("%d calls are left, want 45: the 50 that the venue reports, minus the margin", s.Left)
		}
		answer(beginCall(), 70) // calls of other processes have left the window
		if s := b.Status(); s.Left != 65 {
			t.Errorf("%d calls are left when the venue reports 70, want 65", s.Left)
		}
	})
}

// TestColdStartProbesAfterReset checks that, at the reset time that the venue reported, one call is admitted to learn how many
// calls remain.
func TestColdStartProbesAfterReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		for i := range 5 {
			k := begin(t, b, prices(string(rune('a'+i)), time.Second))
			k.Observe(100, 4-i, within(3*time.Second))
			k.Release(true)
		}
		if n := countAdmitted(b, ""); n != 0 {
			t.Errorf("%d calls were admitted although none remain, want 0", n)
		}
		k := b.Reserve(prices("z", 10*time.Second))
		if k.Err() == nil {
			t.Error("the reservation waits, want a refusal, because its deadline is before its turn")
		}
		patient := b.Reserve(prices("y", 2*time.Minute))
		wantWaiting(t, patient)
		time.Sleep(3 * time.Second)
		if synctest.Wait(); !admitted(patient) {
			t.Fatal("no call was admitted after the reset")
		}
		if n := countAdmitted(b, ""); n != 0 {
			t.Errorf("%d calls were admitted besides the first call after the reset, want 0", n)
		}
		if err := patient.AdmitCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		patient.Observe(100, 40, within(3*time.Second))
		patient.Release(true)
		if n := countAdmitted(b, ""); n != 35 {
			t.Errorf("%d calls were admitted when 40 remain, want 35", n)
		}
	})
}

// TestMarginOfALowerLimit checks that the margin is computed from the limit that the venue reports.
func TestMarginOfALowerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		k := b.Reserve(prices("", time.Second))
		k.Observe(40, -1, time.Time{})
		k.Release(false)
		if n := countAdmitted(b, ""); n != 2 {
			t.Errorf("%d calls were admitted, want 2, a twentieth of 40", n)
		}
	})
}

// TestInheritAlone checks that calls of the previous process leave the window one minute after their end.
func TestInheritAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		start := time.Now()
		b.Inherit(AllowAll, []Spent{{Calls: 20, At: start}, {Calls: 30, At: start.Add(-30 * time.Second)}, {Calls: 40, At: start.Add(-50 * time.Second)}, {Calls: 7, At: start.Add(-2 * time.Minute)}}, time.Time{})
		if n := countAdmitted(b, ""); n != 5 {
			t.Errorf("%d calls were admitted, want the 5 that are left", n)
		}
		for _, step := range []struct {
			at    time.Duration
			calls int
		}{{10*time.Second + time.Millisecond, 40}, {30*time.Second + time.Millisecond, 30}, {60*time.Second + time.Millisecond, 25}} {
			time.Sleep(time.Until(start.Add(step.at)) - 1)
			if n := countAdmitted(b, ""); n != 0 {
				t.Errorf("got %d calls before %v, want 0", n, step.at)
			}
			time.Sleep(time.Nanosecond)
			if n := countAdmitted(b, ""); n != step.calls {
				t.Errorf("got %d calls after %v, want %d", n, step.at, step.calls)
			}
		}
		time.Sleep(2 * time.Minute)
		w := b.public
		if w.expire(time.Now()); w.used() != 0 || w.byPriority != [reqctx.Priorities]int{} || w.reserved != 0 {
			t.Errorf("after two minutes the window has %d calls, %v by priority, and %d reserved calls; want none", w.used(), w.byPriority, w.reserved)
		}
	})
}

// TestInheritedCallsDelayTurns checks that a call waits until inherited calls have left the window.
func TestInheritedCallsDelayTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{})
		b.Inherit(AllowAll, []Spent{{Calls: 95, At: within(-20 * time.Second)}}, time.Time{})
		k := b.Reserve(prices("", 2*time.Minute))
		if want := within(40*time.Second + time.Millisecond); !k.ReadyAt().Equal(want) {
			t.Errorf("the turn is at %v, want %v", k.ReadyAt(), want)
		}
		time.Sleep(40*time.Second + time.Millisecond)
		if synctest.Wait(); !admitted(k) {
			t.Error("the call still waits at its turn")
		}
		k.Release(false)
	})
}

// TestInheritSecondAndThird checks that the second process has only the margin, whatever the venue reports, and that the third
// process makes no calls.
func TestInheritSecondAndThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		b.Inherit(AllowNone, nil, within(time.Minute))
		if n := countAdmitted(b, ""); n != 0 {
			t.Errorf("the third process made %d calls, want 0", n)
		}
		b.Inherit(AllowMargin, []Spent{{Calls: 2, At: time.Now()}}, within(time.Minute))
		k := begin(t, b, prices("", time.Second))
		k.Observe(100, 60, time.Time{})
		k.Release(true)
		if n := countAdmitted(b, ""); n != 2 {
			t.Errorf("the second process made %d more calls, want the 2 that are left of the margin", n)
		}
		time.Sleep(50 * time.Second)
		b.Inherit(AllowMargin, nil, within(time.Minute))
		time.Sleep(50 * time.Second)
		if n := countAdmitted(b, ""); n != 5 {
			t.Errorf("the second process made %d calls in the next minute, want 5, the margin", n)
		}
		k = b.Reserve(prices("z", 2*time.Minute))
		wantWaiting(t, k)
		b.Inherit(AllowAll, []Spent{{Calls: 80, At: time.Now()}}, time.Time{})
		if synctest.Wait(); !admitted(k) {
			t.Error("the call still waits after the other process ended")
		}
		k.Release(false)
		if n := countAdmitted(b, ""); n != 10 {
			t.Errorf("%d calls were admitted, want 10: 95 minus 80 calls of the other process and 5 of this process", n)
		}
	})
}

// recorder counts the calls of Take and End.
type recorder struct{ taken, ended int }

func (r *recorder) Take() { r.taken++ }
func (r *recorder) End()  { r.ended++ }

// TestRecord checks that Take is called before each public call, and End after the call. A reservation without a call must call
// neither Take nor End.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		b := open(t, Config{Record: &r})
		want := func(taken, ended int) {
			t.Helper()
			if r != (recorder{taken, ended}) {
				t.Errorf("got %+v, want %d taken and %d ended", r, taken, ended)
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
			t.Error("one call more than the limit was admitted")
		}
		want(95, 95)
		time.Sleep(2 * time.Minute)
		// The first call with new credentials counts as a public call.
		call(b, reqctx.CallRequest{Scope: "mine", Deadline: within(time.Second)})
		want(96, 96)
		call(b, reqctx.CallRequest{Scope: "mine", Deadline: within(time.Second)})
		want(96, 96)
	})
}

// TestColdStartProbe checks when the cold start admits one call to learn how many calls remain.
func TestColdStartProbe(t *testing.T) {
	for name, test := range map[string]struct {
		// All times are counted from the start. reset is the reset time in the first response. observed is the time at which a second
		// response arrives, or 0 if there is no second response.
		reset, observed time.Duration
		// At the time none, no call may be sent. At the time released, the last call ends and one more call may be sent. If released is
		// 0, the last call ends before the time none.
		none, released time.Duration
	}{
		"the reset time has passed":                                    {reset: -time.Second, none: 10 * time.Second},
		"a call is in flight at the reset time":                        {reset: 3 * time.Second, none: 5 * time.Second, released: 8 * time.Second},
		"a response without a reset time arrives after the cold start": {reset: 65 * time.Second, observed: 62 * time.Second, none: 66 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, start := openCold(t, Config{}), time.Now()
			var last reqctx.Reservation
			for i := range 5 {
				last = begin(t, b, prices(string(rune('a'+i)), time.Second))
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
			if n := countAdmitted(b, ""); n != 0 {
				t.Errorf("%s: got %d calls after %v, want 0", name, n, test.none)
			}
			if test.released > 0 {
				time.Sleep(time.Until(start.Add(test.released)))
				last.Release(true)
				if n := countAdmitted(b, ""); n != 1 {
					t.Errorf("%s: got %d calls after %v, want 1", name, n, test.released)
				}
			}
		})
	}
}
