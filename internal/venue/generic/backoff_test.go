package generic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

// TestFailedKeysAreNotReadDuringBackoff checks that after a temporary failure the client makes no call for the failed key until the
// backoff ends.
func TestFailedKeysAreNotReadDuringBackoff(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		code   market.Code
		wait   time.Duration
	}{
		"429":             {respond(429, ""), market.CodeRateLimited, 125 * time.Millisecond},
		"429 with wait":   {respond(429, "", "Retry-After", "7"), market.CodeRateLimited, 7 * time.Second},
		"429 with wait 0": {respond(429, "", "Retry-After", "0"), market.CodeRateLimited, 125 * time.Millisecond},
		"429 HTML":        {respond(429, "<html>slow down", "Content-Type", "text/html", "Retry-After", "7"), market.CodeRateLimited, 7 * time.Second},
		"429 with reset":  {respond(429, "", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9"), market.CodeRateLimited, 9 * time.Second},
		"200 and limited": {respond(200, `{"success":false,"code":"RATE_LIMITED"}`, "Retry-After", "7"), market.CodeRateLimited, 7 * time.Second},
		"500":             {respond(500, ""), market.CodeUpstreamUnavailable, 125 * time.Millisecond},
		"503 with wait":   {respond(503, "", "Retry-After", "3"), market.CodeUpstreamUnavailable, 3 * time.Second},
		"504":             {respond(504, ""), market.CodeUpstreamTimeout, 125 * time.Millisecond},
		"refused":         {failWith(syscall.ECONNREFUSED), market.CodeUpstreamUnavailable, 125 * time.Millisecond},
		"hang":            {hangUntilDone, market.CodeUpstreamTimeout, 125 * time.Millisecond},
	} {
		for _, r := range reads {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := &scripted{answer: tt.answer}
					if r.name == "spreads" { // if spreads fail, the client reads books, so books must fail too
						v.answer = withoutBooks(tt.answer)
					}
					c := v.client(t, 0)
					user := asUser(t)
					expect := func(left time.Duration) {
						t.Helper()
						_, err := r.call(t.Context(), user, c)
						var e *market.Error
						if !errors.As(err, &e) || e.Code != tt.code || e.RetryAfter != left {
							t.Fatalf("got the error %v with the code and RetryAfter %q, want %q", err, retryAfterOf(err), fmt.Sprint(tt.code, " ", left))
						}
					}
					expect(tt.wait)
					calls := v.calls()
					expect(tt.wait)
					time.Sleep(tt.wait / 4)
					expect((tt.wait*3/4 + time.Millisecond - 1).Truncate(time.Millisecond)) // RetryAfter is in whole milliseconds
					time.Sleep(tt.wait/4*3 - time.Microsecond)
					expect(time.Millisecond)
					if v.calls() != calls {
						t.Fatalf("the client sent %q before the end of the backoff", v.asked[calls:])
					}
					time.Sleep(time.Millisecond)
					v.answer = validResponse
					if _, err := r.call(t.Context(), user, c); err != nil || v.calls() == calls {
						t.Fatalf("after the backoff, the read returned the error %v and made %d calls", err, v.calls()-calls)
					}
					if _, err := r.call(t.Context(), user, c); err != nil {
						t.Fatalf("the read after a success failed: %v", err)
					}
				})
			})
		}
	}
}

func TestBackoffGrowsUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(503, "")}
		c := v.client(t, 1)
		fail := func(want time.Duration) {
			t.Helper()
			_, err := c.Book(t.Context(), upstream.Call{}, "101", 20)
			assertEqual(t, retryAfterOf(err), "UPSTREAM_UNAVAILABLE "+want.String())
			time.Sleep(want)
		}
		for _, want := range []time.Duration{250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000} {
			fail(want * time.Millisecond)
		}
		v.answer = validResponse
		if _, err := c.Book(t.Context(), upstream.Call{}, "101", 20); err != nil {
			t.Fatal(err)
		}
		v.answer = respond(503, "")
		fail(250 * time.Millisecond)
		fail(500 * time.Millisecond)
		v.answer = respond(404, "") // a 404 is a response, not a failure
		if b, err := c.Book(t.Context(), upstream.Call{}, "101", 20); b != nil || err != nil {
			t.Fatal(b, err)
		}
		v.answer = respond(503, "")
		fail(250 * time.Millisecond)
		v.answer = respond(200, `{"bids":7}`)
		if _, err := c.Book(t.Context(), upstream.Call{}, "101", 20); market.CodeOf(err) != market.CodeUpstreamBadResponse {
			t.Fatal(err)
		}
		v.answer = respond(503, "")
		fail(250 * time.Millisecond)
		time.Sleep(rest.MaxBackoff + time.Millisecond) // MaxBackoff after the end of a wait, earlier failures do not count
		fail(250 * time.Millisecond)
	})
}

func TestBackoffIsPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(429, "", "Retry-After", "60")}
		c := v.client(t, 0)
		if _, err := c.Prices(t.Context(), upstream.Call{}, []string{"101", "102"}); market.CodeOf(err) != market.CodeRateLimited {
			t.Fatal(err)
		}
		v.answer = validResponse
		results, err := c.Prices(t.Context(), upstream.Call{}, []string{"101", "103", "102", "103"})
		must(t, err)
		assertEqual(t, showResults(results, func(p *market.Price) string { return p.TokenID }), "RATE_LIMITED\n103\nRATE_LIMITED\n103")
		assertEqual(t, strings.Join(v.asked, " "), "prices?tokenIds=101,102 prices?tokenId=103")
		if results, err = c.Prices(t.Context(), upstream.Call{}, []string{"101", "102"}); err != nil || results[0].Err == nil || results[1].Err == nil {
			t.Errorf("got %v and the error %v, want an error for each id and no error of the read", results, err)
		}
		if _, err := c.Book(t.Context(), upstream.Call{}, "101", 20); err != nil {
			t.Errorf("the read of another endpoint failed: %v", err)
		}
	})
}

// TestBackoffIsPerCredentials checks the backoff of an account. Failed reads with the credentials of a stranger must not delay
// reads with the owner's credentials.
func TestBackoffIsPerCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(429, "", "Retry-After", "60")}
		c := v.client(t, 0)
		theirs := withCredentials(t, `{"apiKey":"junk"}`)
		for range 3 {
			if _, err := c.Balance(t.Context(), theirs, wallet); market.CodeOf(err) != market.CodeRateLimited {
				t.Fatal(err)
			}
		}
		v.answer = validResponse
		if _, err := c.Balance(t.Context(), asUser(t), wallet); err != nil || v.calls() != 2 {
			t.Errorf("the owner's read returned the error %v after %d calls, want no error after 2", err, v.calls())
		}
		if key := c.AccountKey(theirs, wallet); len(key) != 32 || strings.Contains(key, string(wallet)) || strings.Contains(key, "junk") {
			t.Errorf("the account key is %q, want a hash of 32 bytes", key)
		}
	})
}

// TestBackoffOnlyAfterVenueFailures checks that a call starts no backoff if its context ends or if the permit refuses the call.
func TestBackoffOnlyAfterVenueFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: hangUntilDone}
		c := v.client(t, 1)
		for name, end := range map[string]func() (context.Context, upstream.Call, context.CancelFunc){
			"cancelled": func() (context.Context, upstream.Call, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, upstream.Call{}, cancel
			},
			"past its deadline": func() (context.Context, upstream.Call, context.CancelFunc) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				return ctx, upstream.Call{}, cancel
			},
			"refused by the permit": func() (context.Context, upstream.Call, context.CancelFunc) {
				return t.Context(), upstream.Call{Permit: &permit{refuseFrom: 1}}, func() {}
			},
		} {
			ctx, call, cancel := end()
			_, err := c.Book(ctx, call, "101", 20)
			cancel()
			if err == nil {
				t.Errorf("the call that is %s returned no error", name)
			}
			if err := c.Refusal(upstream.EndpointBook, "101"); err != nil {
				t.Errorf("the call that is %s started a backoff: %v", name, err)
			}
		}
		v.answer = validResponse
		if _, err := c.Book(t.Context(), upstream.Call{}, "101", 20); err != nil {
			t.Error(err)
		}
	})
}

// TestPermitObservesLimits checks what the client reports to the upstream.Permit about the venue's rate limit.
func TestPermitObservesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		headers := []string{"X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "42"}
		for name, tt := range map[string]struct {
			answer    func(*http.Request) (*http.Response, error)
			observed  string
			throttled string
		}{
			"200 with limits":         {respond(200, `{"bids":[],"asks":[]}`, headers...), "100 42 -", "[]"},
			"200 without limits":      {respond(200, `{"bids":[],"asks":[]}`), "", "[]"},
			"200 with bad JSON":       {respond(200, `[`, headers...), "100 42 -", "[]"},
			"500":                     {respond(500, "", headers...), "100 42 -", "[]"},
			"503 with wait":           {respond(503, "", "Retry-After", "7"), "", "[]"},
			"429":                     {respond(429, "", "Retry-After", "7"), "", "[7s]"},
			"429 without wait":        {respond(429, "<html>", "Content-Type", "text/html"), "", "[0s]"},
			"429 with reset":          {respond(429, "", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12"), "-1 0 " + tool.Text(time.Now().Add(12*time.Second).UTC()), "[12s]"},
			"429 with wait and reset": {respond(429, "", "Retry-After", "3", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "12"), "-1 0 " + tool.Text(time.Now().Add(12*time.Second).UTC()), "[3s]"},
			"429 with calls left":     {respond(429, "", "X-RateLimit-Remaining", "5", "X-RateLimit-Reset", "12"), "-1 5 " + tool.Text(time.Now().Add(12*time.Second).UTC()), "[0s]"},
			"reported with 200":       {respond(200, `{"success":false,"code":"TOO_MANY_REQUESTS"}`, "Retry-After", "7"), "", "[7s]"},
			"no response":             {failWith(http.ErrHandlerTimeout), "", "[]"},
		} {
			p := &permit{}
			c := (&scripted{answer: tt.answer}).client(t, 1)
			_, _ = c.Book(t.Context(), upstream.Call{Permit: p}, "101", 20)
			if got := strings.Join(p.observed, ","); got != tt.observed || fmt.Sprint(p.throttledFor) != tt.throttled {
				t.Errorf("after %q, the permit observed %q and was throttled for %v, want %q and %s", name, got, p.throttledFor, tt.observed, tt.throttled)
			}
		}
	})
}
