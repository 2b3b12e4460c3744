package ratelimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// TestThrottled checks that a 429 response stops all calls until the time that the venue named, and lowers the limit for a while
// afterwards.
func TestThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := begin(t, b, prices("", time.Second))
		k.Throttled(within(20 * time.Second))
		k.Release(false)
		until := within(20 * time.Second)
		if s := b.Status(); !s.ThrottledUntil.Equal(until) || s.Left != 0 || s.Limit != 86 || b.Left() != 0 {
			t.Errorf("got %+v, want limit 86, none left, throttled until %s", s, until)
		}
		if wait := retryAfter(t, b.Reserve(prices("", 10*time.Second))); wait != 20*time.Second {
			t.Errorf("got retry after %s, want 20s", wait)
		}
		patient := b.Reserve(prices("", 30*time.Second))
		wantWaiting(t, patient)
		impatient := b.Reserve(prices("", 25*time.Second))
		wantWaiting(t, impatient)
		k.Throttled(within(10 * time.Second)) // the window is already blocked for longer, so nothing changes
		if s := b.Status(); !s.ThrottledUntil.Equal(until) || s.Limit != 86 {
			t.Errorf("after a 429 with an earlier time the status is %+v, want limit 86, throttled until %s", s, until)
		}
		k.Throttled(within(26 * time.Second))
		if wait := retryAfter(t, impatient); wait != 26*time.Second {
			t.Errorf("got retry after %s, want 26s", wait)
		}
		time.Sleep(26*time.Second - 1)
		wantWaiting(t, patient)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(patient) {
			t.Error("the call still waits at the time that the venue named")
		}
		patient.Release(true)
		time.Sleep(10 * time.Minute)
		if s := b.Status(); s.Limit != 95 || !s.ThrottledUntil.IsZero() {
			t.Errorf("got %+v, want limit 95 and no throttling", s)
		}
		k.Throttled(within(100 * time.Hour))
		if s := b.Status(); s.ThrottledUntil.After(within(patience)) {
			t.Errorf("throttled until %s, want at most %s from now", s.ThrottledUntil, patience)
		}
		wantThrottled := func(want time.Duration) {
			t.Helper()
			if s := b.Status(); s.Throttled != want {
				t.Errorf("throttled for %s in all, want %s", s.Throttled, want)
			}
		}
		wantThrottled(26 * time.Second)
		time.Sleep(time.Minute)
		wantThrottled(86 * time.Second)
		time.Sleep(time.Hour)
		wantThrottled(26*time.Second + patience)
	})
}

// TestObserve checks that the venue's headers change the limit, but never raise it above the configured limit. The budget must also
// count the calls of other clients at the same IP address, which the headers reveal.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := b.Reserve(prices("", time.Minute))
		defer k.Release(true)
		_ = k.AdmitCall(t.Context())
		wantLeft := func(limit, want int) {
			t.Helper()
			if s := b.Status(); s.Limit != limit || s.Left != want {
				t.Errorf("the status is %+v, want %d of %d calls left", s, want, limit)
			}
		}
		k.Observe(-1, -1, time.Time{})
		wantLeft(95, 94)
		k.Observe(40, -1, time.Time{})
		wantLeft(38, 37)
		k.Observe(1000, -1, time.Time{})
		wantLeft(95, 94)
		k.Observe(100, 99, within(time.Minute))
		wantLeft(95, 94)
		k.Observe(100, 10, within(20*time.Second)) // other clients have made 89 calls
		wantLeft(95, 5)
		time.Sleep(20 * time.Second)
		wantLeft(95, 94)
		k.Observe(100, 0, time.Time{})
		waiting := b.Reserve(prices("", 2*time.Minute))
		wantWaiting(t, waiting)
		time.Sleep(span)
		if synctest.Wait(); !admitted(waiting) {
			t.Error("the call still waits after the calls of other clients left the window")
		}
		waiting.Release(true)

		// A lower limit applies at once. A call whose turn becomes too late is refused.
		late := b.Reserve(prices("", 5*time.Second))
		late.Release(true)
		exhaust(t, b)
		late = b.Reserve(prices("", span+time.Second))
		wantWaiting(t, late)
		k.Observe(2, -1, time.Time{})
		wantWaiting(t, late) // with the limit 2, one call a minute is usable, and the turn is still before the deadline
		k.Throttled(within(2 * time.Minute))
		retryAfter(t, late)
	})
}

// TestScopes checks that credentials get their own window when the venue has accepted the credentials. Until then, calls with the
// credentials count in the public window.
func TestScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The margins are 1 and 2 calls, so 19 public calls and 38 calls for each of two sets of credentials are usable.
		b := open(t, Config{Public: 20, Key: 40, Scopes: 2})
		user := func(scope string) reqctx.CallRequest {
			return reqctx.CallRequest{Scope: scope, Priority: reqctx.PriorityUser, Caller: "u", Deadline: within(time.Second)}
		}
		junk := 0
		for i := range 100 {
			k := b.Reserve(user(fmt.Sprint("junk", i)))
			if k.Err() == nil && k.AdmitCall(t.Context()) == nil {
				junk++
			}
			k.Release(false) // the venue has rejected the credentials
		}
		if s := b.Status(); junk != 19 || s.Scopes != 0 || s.Left != 0 {
			t.Errorf("%d calls with invalid credentials were admitted and the status is %+v, want 19 calls, no scopes and no calls left", junk, s)
		}
		time.Sleep(span)
		wantCalls := func(scope string, want int) {
			t.Helper()
			n := 0
			for call(b, user(scope)) {
				n++
			}
			if n != want {
				t.Errorf("%s: got %d calls, want %d", scope, n, want)
			}
		}
		wantCalls("alice", 38)
		if s := b.Status(); s.Left != 18 || s.Scopes != 1 {
			t.Errorf("the status is %+v, want 18 calls left and 1 scope", s)
		}
		wantCalls("bob", 38)
		wantCalls("carol", 17) // carol has no window and uses the public window, because the windows of alice and bob still contain calls
		time.Sleep(span)
		wantCalls("carol", 38)
		// The window of alice is gone, but Admitted and Refused still count her calls.
		if s := b.Status(); s.Scopes != 2 || b.keys["alice"] != nil || s.Admitted != 19+38+38+17+38 || s.Refused != 81+4 {
			t.Errorf("the status is %+v, want 2 scopes, without alice, 150 admitted calls and 85 refusals", s)
		}
	})
}

// TestCallsBeforeAcceptance checks that the window of credentials also counts the calls made before the venue accepted the
// credentials.
func TestCallsBeforeAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 100, Key: 20})
		want := reqctx.CallRequest{Scope: "key", Priority: reqctx.PriorityUser, Deadline: time.Now().Add(time.Second)}
		made := 0
		call := func(k reqctx.Reservation) {
			if k.AdmitCall(t.Context()) == nil {
				made++
			}
		}
		first := []reqctx.Reservation{b.Reserve(want), b.Reserve(want), b.Reserve(want)}
		for _, k := range first {
			call(k)
		}
		call(first[0]) // another call of the first read
		for _, k := range first {
			k.Release(true)
		}
		for range 30 {
			k := b.Reserve(want)
			call(k)
			k.Release(true)
		}
		if made != 19 { // the margin of the limit 20 is 1 call
			t.Errorf("got %d calls, want 19", made)
		}
	})
}

// TestKeyResponsesDoNotLimitPublic checks that responses to calls with new credentials do not limit other callers.
func TestKeyResponsesDoNotLimitPublic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		key := func(scope string) reqctx.CallRequest {
			return reqctx.CallRequest{Scope: scope, Priority: reqctx.PriorityUser, Caller: "owner", Deadline: within(time.Second)}
		}
		before := b.Status()

		// Other processes have made 250 calls with the same credentials.
		k := begin(t, b, key("busy"))
		k.Observe(300, 49, within(time.Minute))
		k.Observe(10, -1, time.Time{})
		k.Release(true)
		if s := b.Status(); s.Limit != before.Limit || s.Left != before.Left-1 || s.Scopes != 1 {
			t.Errorf("after the first call with busy credentials the status is %+v, want one call less and no other change", s)
		}
		// The credentials now have a window, and the next response applies to this window.
		k = begin(t, b, key("busy"))
		k.Observe(300, 3, within(time.Minute))
		if w := b.keys["busy"]; w.foreign != 300-3-w.used() {
			t.Errorf("the window has %d foreign calls, want %d", w.foreign, 300-3-w.used())
		}
		k.Release(true)

		// The venue refuses all calls with the credentials named empty, and one call with each of 20 other sets of credentials. These
		// refusals must not change the public limit.
		for i := range 20 {
			for _, scope := range []string{"empty", fmt.Sprint("empty", i)} {
				k := b.Reserve(key(scope))
				if err := k.Err(); i > 0 && scope == "empty" {
					if wait := retryAfter(t, k); wait != 40*time.Second {
						t.Errorf("got retry after %s, want 40s", wait)
					}
				} else if err != nil || k.AdmitCall(t.Context()) != nil {
					t.Errorf("%s: %v", scope, err)
				}
				k.Throttled(within(40 * time.Second))
				if err := k.AdmitCall(t.Context()); market.CodeOf(err) != market.CodeRateLimited {
					t.Errorf("further call: got %v, want RATE_LIMITED", err)
				}
				k.Release(false)
			}
		}
		if s := b.Status(); !s.ThrottledUntil.IsZero() || s.Limit != before.Limit || s.Left != before.Left-1-1-20 {
			t.Errorf("after refusals of credentials the status is %+v, want an unchanged public limit", s)
		}
		if !call(b, prices("another", time.Second)) {
			t.Error("a public call of another caller was not admitted")
		}
		time.Sleep(40 * time.Second)
		if !call(b, key("empty")) {
			t.Error("no call was admitted at the time that the venue named")
		}
		if b.Status().Scopes != 2 {
			t.Errorf("got %d windows for credentials after the call was accepted, want 2", b.Status().Scopes)
		}

		// A 429 response that came before the venue accepted the credentials also delays the calls in their new window.
		first, second := b.Reserve(key("new")), b.Reserve(key("new"))
		_, _ = first.AdmitCall(t.Context()), second.AdmitCall(t.Context())
		first.Throttled(within(30 * time.Second))
		first.Release(false)
		second.Release(true)
		if wait := retryAfter(t, b.Reserve(key("new"))); wait != 30*time.Second {
			t.Errorf("got retry after %s, want 30s", wait)
		}
	})
}

// TestHeldKeysAreBounded checks that Budget.heldUntil has at most maxHeld entries, and that a new entry removes expired entries.
func TestHeldKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := b.Reserve(reqctx.CallRequest{Scope: "key"}).(*reservation)
		defer k.Release(false)
		for i := range 2 * maxHeld {
			k.scope = fmt.Sprint(i)
			k.Throttled(within(time.Minute))
		}
		if len(b.heldUntil) != maxHeld {
			t.Errorf("heldUntil has %d entries, want %d", len(b.heldUntil), maxHeld)
		}
		time.Sleep(time.Minute)
		k.Throttled(within(100 * time.Hour))
		if len(b.heldUntil) != 1 || b.heldUntil[k.scope].After(within(patience)) {
			t.Errorf("heldUntil has %d entries, the last until %s; want 1 entry, until at most %s from now", len(b.heldUntil), b.heldUntil[k.scope], patience)
		}
	})
}

// TestThrottledUntil checks that ThrottledUntil is the time at which the next call is possible, for several causes of a delay.
func TestThrottledUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 11}) // the margin is 1 call, so 10 calls are usable
		wantUntil := func(what string, want time.Duration) {
			t.Helper()
			got := b.Status().ThrottledUntil
			if want == 0 && !got.IsZero() || want > 0 && !got.Equal(within(want)) {
				t.Errorf("%s: ThrottledUntil is %s, want %s from now, or the zero time for 0s", what, got, want)
			}
		}
		// wantCallThen checks that no call is admitted before ThrottledUntil and that a call is admitted at that time.
		wantCallThen := func(what string) {
			t.Helper()
			at := b.Status().ThrottledUntil
			time.Sleep(time.Until(at) - 1)
			if call(b, prices("x", time.Nanosecond)) {
				t.Errorf("%s: a call was admitted before ThrottledUntil", what)
			}
			time.Sleep(time.Nanosecond)
			if wantUntil(what, 0); !call(b, prices("x", time.Nanosecond)) {
				t.Errorf("%s: no call was admitted at ThrottledUntil", what)
			}
		}
		spend(t, b, "x", 3)
		time.Sleep(10 * time.Second)
		spend(t, b, "x", 6)
		wantUntil("one call is left", 0)
		inFlight := b.Reserve(prices("x", time.Second))
		wantUntil("the limit is used up", span-10*time.Second)
		inFlight.Release(false)
		wantUntil("a call was given back", 0)
		spend(t, b, "x", 1)
		wantCallThen("the limit is used up")

		time.Sleep(2 * span)
		k := begin(t, b, prices("x", time.Second))
		k.Observe(11, 0, within(20*time.Second))
		wantUntil("other clients have used up the limit", 20*time.Second)
		k.Release(true)
		wantCallThen("other clients have used up the limit")

		time.Sleep(2 * span)
		spend(t, b, "x", 5)
		time.Sleep(5 * time.Second)
		k = b.Reserve(prices("x", time.Second))
		k.Release(false)
		k.Observe(4, -1, time.Time{})
		wantUntil("under a limit of 3 calls, three of five calls must leave the window", span-5*time.Second)
		k.Observe(11, -1, time.Time{})
		k.Throttled(within(20 * time.Second))
		wantUntil("the venue refuses calls", 20*time.Second)
		spent := b.Status()
		if spent.Left != 0 || b.Left() != 0 {
			t.Errorf("the status is %+v, want no calls left", spent)
		}

		time.Sleep(2*span - 5*time.Second)
		spend(t, b, "x", 9)
		wantUntil("a lowered limit is used up", 5*time.Second)
		wantCallThen("a lowered limit is used up")

		time.Sleep(10 * time.Minute)
		spend(t, b, "x", 3)
		time.Sleep(20 * time.Second)
		spend(t, b, "x", 2)
		k = b.Reserve(prices("x", time.Second))
		k.Release(false)
		k.Observe(4, -1, time.Time{})
		wantUntil("under a limit of 3 calls, the three calls from 20 s ago must leave the window", span-20*time.Second)
		k.Observe(3, -1, time.Time{})
		wantUntil("under a limit of 2 calls, one of the two later calls must leave, too", span)
		k.Observe(11, -1, time.Time{})

		time.Sleep(10 * time.Minute)
		var all []reqctx.Reservation
		for range 10 {
			all = append(all, b.Reserve(prices("x", time.Second)))
			_ = all[len(all)-1].AdmitCall(t.Context())
		}
		wantUntil("all calls are in flight", span)
		for _, k := range all {
			k.Release(true)
		}
	})
}
