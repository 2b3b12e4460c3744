package ratelimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// TestRefused checks that a 429 response stops all calls until the time that the venue named, at most for a minute except for the
// endpoint, and lowers the limit for a while afterwards.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := begin(t, b, prices("", time.Second))
		refuse(k, 20*time.Second)
		k.Release(false)
		until := within(20 * time.Second)
		if s := b.Status(); !s.ThrottledUntil.Equal(until) || s.Left != 0 || s.Limit != 86 || !b.Scarce("", upstream.EndpointPrices) {
			t.Errorf("got %+v, want limit 86, none left, throttled until %s", s, until)
		}
		if wait := retryAfter(t, b.Reserve(prices("", 10*time.Second))); wait != 20*time.Second {
			t.Errorf("got retry after %s, want 20s", wait)
		}
		patient := b.Reserve(prices("", 30*time.Second))
		wantWaiting(t, patient)
		impatient := b.Reserve(prices("", 25*time.Second))
		wantWaiting(t, impatient)
		refuse(k, 10*time.Second) // the window already pauses for longer, so nothing changes
		if s := b.Status(); !s.ThrottledUntil.Equal(until) || s.Limit != 86 {
			t.Errorf("after a 429 with an earlier time the status is %+v, want limit 86, throttled until %s", s, until)
		}
		refuse(k, 26*time.Second)
		if wait := retryAfter(t, impatient); wait != 26*time.Second {
			t.Errorf("got retry after %s, want 26s", wait)
		}
		time.Sleep(26*time.Second - 1)
		wantWaiting(t, patient)
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !admitted(patient) {
			t.Error("the call still waits at the time that the venue named")
		}
		_ = patient.AdmitCall(t.Context())
		if next := b.Reserve(prices("", 30*time.Second)); admitted(next) {
			t.Error("two calls are in flight before the venue has answered again")
		}
		serve(patient)
		patient.Release(true)
		time.Sleep(10 * time.Minute)
		if s := b.Status(); s.Limit != 95 || !s.ThrottledUntil.IsZero() || s.Throttled != 26*time.Second {
			t.Errorf("got %+v, want limit 95 and no throttling, after 26 s of it", s)
		}
	})
}

// TestBackoff checks the pauses after refusals without Retry-After: they double, and an answer ends the series.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		for i, want := range []time.Duration{2500, 5000, 10_000, 20_000, 30_000, 30_000, 2500} {
			k := begin(t, b, upstream.CallRequest{Priority: upstream.PriorityPrices, Endpoint: upstream.Endpoint(i)})
			if i == 6 {
				serve(k)
				time.Sleep(time.Second)
				k.Release(true)
				k = begin(t, b, upstream.CallRequest{Priority: upstream.PriorityPrices, Endpoint: 7})
			}
			refuse(k, 0)
			k.Release(false)
			if wait := time.Until(b.Status().ThrottledUntil); wait != want*time.Millisecond {
				t.Errorf("refusal %d: got a pause of %s, want %s", i+1, wait, want*time.Millisecond)
			}
			time.Sleep(want * time.Millisecond)
		}
	})
}

// TestOneEndpointIsRefused checks that an endpoint with a long Retry-After holds the other endpoints for at most a minute, and then
// not again. The endpoint itself is probed with one call every five minutes.
func TestOneEndpointIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		refused, served, firstServed := 0, 0, time.Duration(0)
		for start := time.Now(); time.Since(start) < 16*time.Minute; time.Sleep(time.Second) {
			for _, e := range []upstream.Endpoint{upstream.EndpointSearch, upstream.EndpointSearch, upstream.EndpointPrices} {
				k := b.Reserve(upstream.CallRequest{Priority: upstream.PriorityUser, Caller: "a", Endpoint: e, Deadline: within(time.Second)})
				switch {
				case !admitted(k) || k.AdmitCall(t.Context()) != nil:
				case e == upstream.EndpointSearch:
					refused++
					refuse(k, 24*time.Hour)
				default:
					if served++; served == 1 {
						firstServed = time.Since(start)
					}
					serve(k)
				}
				k.Release(true)
			}
		}
		if refused != 4 || firstServed != 61*time.Second || served < 15*60-70 {
			t.Errorf("got %d refusals and %d answers, the first after %s; want 4 refusals, and an answer each second from the second minute", refused, served, firstServed)
		}
		if !b.Scarce("", upstream.EndpointSearch) || b.Scarce("", upstream.EndpointPrices) {
			t.Error("want only the refused endpoint to be scarce")
		}
	})
}

// TestOneCallProbes checks that after the pause of an endpoint one call tests whether the venue answers, while other endpoints have
// any number of calls in flight.
func TestOneCallProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		search := upstream.CallRequest{Priority: upstream.PriorityUser, Caller: "a", Endpoint: upstream.EndpointSearch}
		k := begin(t, b, search)
		refuse(k, 10*time.Second)
		k.Release(true)
		time.Sleep(10 * time.Second)
		spend(t, b, "b", 2)
		probe, second := begin(t, b, search), b.Reserve(search)
		wantWaiting(t, second)
		spend(t, b, "b", 2)
		serve(probe)
		if !admitted(second) {
			t.Error("the second call still waits after an answer")
		}
		probe.Release(true)
		second.Release(true)
	})
}

// TestReport checks that the venue's headers change the limit, but never raise it above the configured limit. The budget must also
// count the calls of other clients at the same IP address, which the headers reveal.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		k := begin(t, b, prices("", time.Minute))
		defer k.Release(true)
		wantLeft := func(limit, want int) {
			t.Helper()
			if s := b.Status(); s.Limit != limit || s.Left != want {
				t.Errorf("the status is %+v, want %d of %d calls left", s, want, limit)
			}
		}
		report(k, -1, -1, time.Time{})
		wantLeft(95, 94)
		report(k, 40, -1, time.Time{})
		wantLeft(38, 37)
		report(k, 1000, -1, time.Time{})
		wantLeft(95, 94)
		report(k, 100, 99, within(time.Minute))
		wantLeft(95, 94)
		report(k, 100, 10, within(20*time.Second)) // other clients have made 89 calls
		wantLeft(95, 5)
		time.Sleep(20 * time.Second) // from now on the calls of others leave evenly
		wantLeft(95, 6)
		time.Sleep(span/2 + time.Millisecond)
		wantLeft(95, 6+44)
		report(k, 100, 0, time.Time{})
		waiting := b.Reserve(prices("", 2*time.Minute))
		wantWaiting(t, waiting)
		time.Sleep(span / 94)
		if synctest.Wait(); !admitted(waiting) {
			t.Error("the call still waits after a call of others left the window")
		}
		waiting.Release(true)
	})
}

// TestScopes checks that credentials get their own window when the venue has accepted the credentials. Until then, calls with the
// credentials count in the public window.
func TestScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The margins are 1 and 2 calls, so 19 public calls and 38 calls for each of two sets of credentials are usable.
		b := open(t, Config{Public: 20, Key: 40, Scopes: 2})
		user := func(scope string) upstream.CallRequest {
			return upstream.CallRequest{Scope: scope, Priority: upstream.PriorityUser, Caller: "u", Deadline: within(time.Second)}
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
		wantCalls("alice", 39)
		if s := b.Status(); s.Left != 18 || s.Scopes != 1 {
			t.Errorf("the status is %+v, want 18 calls left and 1 scope", s)
		}
		wantCalls("bob", 39)
		wantCalls("carol", 17) // carol has no window and uses the public window, because the windows of alice and bob still contain calls
		time.Sleep(span)
		wantCalls("carol", 39)
		// The window of alice is gone, but Admitted and Refused still count her calls.
		if s := b.Status(); s.Scopes != 2 || b.keys.Contains("alice") || s.Admitted != 19+39+39+17+39 || s.Refused != 81+4 {
			t.Errorf("the status is %+v, want 2 scopes, without alice, 153 admitted calls and 85 refusals", s)
		}
	})
}

// TestKeyResponsesDoNotLimitPublic checks that responses to calls with new credentials do not limit other callers.
func TestKeyResponsesDoNotLimitPublic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{})
		key := func(scope string) upstream.CallRequest {
			return upstream.CallRequest{Scope: scope, Priority: upstream.PriorityUser, Caller: "owner", Deadline: within(time.Second)}
		}
		before := b.Status()

		// Other processes have made 250 calls with the same credentials.
		k := begin(t, b, key("busy"))
		report(k, 300, 49, within(time.Minute))
		report(k, 10, -1, time.Time{})
		k.Release(true)
		if s := b.Status(); s.Limit != before.Limit || s.Left != before.Left-1 || s.Scopes != 1 {
			t.Errorf("after the first call with busy credentials the status is %+v, want one call less and no other change", s)
		}
		// The credentials now have a window, and the next response applies to this window.
		k = begin(t, b, key("busy"))
		report(k, 300, 3, within(time.Minute))
		if w, _ := b.keys.Peek("busy"); w.others.n != 285-1 {
			t.Errorf("the window counts %d calls of others, want 284, all that are left of the usable limit", w.others.n)
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
				refuse(k, 40*time.Second)
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
		refuse(first, 30*time.Second)
		first.Release(false)
		second.Release(true)
		if wait := retryAfter(t, b.Reserve(key("new"))); wait != 30*time.Second {
			t.Errorf("got retry after %s, want 30s", wait)
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
		report(k, 11, 0, within(20*time.Second))
		wantUntil("other clients have used up the limit", 20*time.Second)
		k.Release(true)
		wantCallThen("other clients have used up the limit")

		time.Sleep(2 * span)
		spend(t, b, "x", 5)
		time.Sleep(5 * time.Second)
		k = b.Reserve(prices("x", time.Second))
		k.Release(false)
		report(k, 4, -1, time.Time{})
		wantUntil("under a limit of 3 calls, three of five calls must leave the window", span-5*time.Second)
		report(k, 11, -1, time.Time{})
		refuse(k, 20*time.Second)
		wantUntil("the venue refuses calls", 20*time.Second)
		spent := b.Status()
		if spent.Left != 0 || !b.Scarce("", 0) {
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
		report(k, 4, -1, time.Time{})
		wantUntil("under a limit of 3 calls, the three calls from 20 s ago must leave the window", span-20*time.Second)
		report(k, 3, -1, time.Time{})
		wantUntil("under a limit of 2 calls, one of the two later calls must leave, too", span)
		report(k, 11, -1, time.Time{})

		time.Sleep(10 * time.Minute)
		var all []upstream.Reservation
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
