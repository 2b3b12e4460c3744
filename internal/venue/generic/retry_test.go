package generic

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// cutOff returns a function that responds with status 200. Reading the body of the response ends with err.
func cutOff(err error) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, _ := respond(200, "")(r)
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"tokenId":`), brokenReader{err}))
		return resp, nil
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestOnlyTransientFailuresAreRetried(t *testing.T) {
	certificate := x509.UnknownAuthorityError{}
	for name, tt := range map[string]struct {
		answer  func(*http.Request) (*http.Response, error)
		retried bool
	}{
		"425": {respond(425, ""), true}, "502": {respond(502, "<html>", "Content-Type", "text/html"), true}, "503": {respond(503, ""), true}, "504": {respond(504, ""), true},
		"refused": {failWith(syscall.ECONNREFUSED), true}, "reset": {failWith(syscall.ECONNRESET), true}, "hung up": {failWith(io.EOF), true},
		"no host": {failWith(&net.DNSError{}), true}, "cut off": {cutOff(io.ErrUnexpectedEOF), true}, "reset in the body": {cutOff(syscall.ECONNRESET), true},
		"truncated": {respond(200, `{"tokenId":"101","pri`), true},

		"400": {respond(400, ""), false}, "401": {respond(401, ""), false}, "403": {respond(403, ""), false}, "404": {respond(404, ""), false},
		"408": {respond(408, ""), false}, "429": {respond(429, ""), false}, "429 with 0": {respond(429, "", "Retry-After", "0"), false},
		"500": {respond(500, ""), false}, "501": {respond(501, ""), false}, "302": {respond(302, "", "Location", "/x"), false},
		"HTML": {respond(200, "<html>", "Content-Type", "text/html"), false}, "not JSON": {respond(200, "{]"), false}, "nothing": {respond(200, " "), false},
		"success false": {respond(200, `{"success":false,"code":"UNAVAILABLE"}`), false}, "wrong form": {respond(200, `{"bids":7,"asks":true}`), false},
		"certificate": {failWith(certificate), false}, "hang": {hangUntilDone, false}, "too large": {respond(200, strings.Repeat(" ", rest.DefaultMaxBody+1)), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &scripted{answer: tt.answer}
				c := v.client(t, 0, func(cfg *Config) { cfg.Retries = 0 })
				started := time.Now()
				_, err := c.Book(t.Context(), upstream.Call{}, "101", 20)
				if took := time.Since(started); name == "hang" && (took != 10*time.Second || market.CodeOf(err) != market.CodeUpstreamTimeout) {
					t.Errorf("the read took %v and returned the error %v, want %s after 10s", took, err, market.CodeUpstreamTimeout)
				}
				want := 1
				if tt.retried {
					want = 1 + rest.DefaultRetries
				}
				if v.calls() != want || err == nil && name != "404" {
					t.Errorf("the read returned the error %v after %d calls, want %d calls", err, v.calls(), want)
				}
				if tt.retried && (v.askedAt[1].Sub(v.askedAt[0]) != 125*time.Millisecond || v.askedAt[2].Sub(v.askedAt[1]) != 250*time.Millisecond) {
					t.Errorf("the calls were at %v, want waits of 125ms and 250ms", v.askedAt)
				}
			})
		})
	}
}

func TestRetrySucceeds(t *testing.T) {
	for _, r := range reads {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &scripted{}
				v.answer = func(rq *http.Request) (*http.Response, error) {
					if v.calls() == 1 {
						return respond(503, "")(rq)
					}
					return validResponse(rq)
				}
				p := &permit{}
				seen := &recordingObserver{}
				c := v.client(t, 0, func(cfg *Config) { cfg.Retries, cfg.Observer = 1, seen })
				if _, err := r.call(t.Context(), withPermit(asUser(t), p), c); err != nil || v.calls() != 2 || len(seen.calls) != 2 {
					t.Fatalf("the read returned the error %v after the calls %q, want no error after two calls", err, v.asked)
				}
				if v.asked[0] != v.asked[1] {
					t.Errorf("the first call was %s, but the retry was %s", v.asked[0], v.asked[1])
				}
				if p.admitted != 2 {
					t.Errorf("the permit admitted %d calls, want 2", p.admitted)
				}
				if _, err := r.call(t.Context(), asUser(t), c); err != nil {
					t.Errorf("the read after a successful retry failed: %v", err)
				}
			})
		})
	}
}

// TestNoRetryPastTheDeadline checks that the client retries a call only if the retry would end before the deadline. The client
// expects a retry to take as long as the previous attempt.
func TestNoRetryPastTheDeadline(t *testing.T) {
	const latency, wait = 400 * time.Millisecond, 125 * time.Millisecond
	slow := func(r *http.Request) (*http.Response, error) {
		time.Sleep(latency)
		return respond(503, "")(r)
	}
	for name, tt := range map[string]struct {
		limit   time.Duration // of the context; 0 if it has no deadline
		waiters func() upstream.Waiters
		calls   int
	}{
		"no deadline":                      {0, nil, 3},
		"deadline after two calls":         {2*latency + wait + 1, nil, 2},
		"deadline in the second call":      {2*latency + wait, nil, 1},
		"deadline of the waiting callers":  {0, func() upstream.Waiters { return callWithDeadline{time.Now().Add(2*latency + wait)} }, 1},
		"waiting callers without deadline": {0, func() upstream.Waiters { return callWithDeadline{} }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &scripted{answer: slow}
				c := v.client(t, 0, func(cfg *Config) { cfg.Retries = 2 })
				ctx, cancel := context.WithCancel(t.Context())
				if tt.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
				}
				defer cancel()
				var call upstream.Call
				if tt.waiters != nil {
					call.Waiters = tt.waiters()
				}
				started := time.Now()
				_, err := c.Book(ctx, call, "101", 20)
				if market.CodeOf(err) != market.CodeUpstreamUnavailable || v.calls() != tt.calls {
					t.Errorf("the read returned the error %v after %d calls, want %d calls", err, v.calls(), tt.calls)
				}
				if deadline, ok := ctx.Deadline(); ok && time.Now().After(deadline) || tt.calls == 1 && time.Since(started) != latency {
					t.Errorf("the read took %v, want an end before the deadline", time.Since(started))
				}
			})
		})
	}
}

// callWithDeadline is an upstream.Waiters with the deadline until. If until is zero, the call has no deadline.
type callWithDeadline struct{ until time.Time }

func (callWithDeadline) Priority() upstream.Priority { return upstream.PriorityBooks }

func (w callWithDeadline) Deadline() (time.Time, bool) { return w.until, !w.until.IsZero() }

func (callWithDeadline) Trace() upstream.TraceContext { return upstream.TraceContext{} }

func (callWithDeadline) NoteCall(upstream.HTTPCall) {}

func TestRetryWaitsForRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(503, "", "Retry-After", "4")}
		_, _ = v.client(t, 0, func(cfg *Config) { cfg.Retries = 1 }).Book(t.Context(), upstream.Call{}, "101", 20)
		if v.calls() != 2 || v.askedAt[1].Sub(v.askedAt[0]) != 4*time.Second {
			t.Errorf("the calls were at %v, want two calls with a wait of 4s", v.askedAt)
		}
		v = &scripted{answer: respond(503, "", "Retry-After", "11")} // this wait is longer than Config.Timeout
		_, err := v.client(t, 0, func(cfg *Config) { cfg.Retries = 1 }).Book(t.Context(), upstream.Call{}, "101", 20)
		if v.calls() != 1 || retryAfterOf(err) != "UPSTREAM_UNAVAILABLE 11s" {
			t.Errorf("the read returned the error %v after calls at %v, want one call and RetryAfter 11s", err, v.askedAt)
		}
	})
}

func TestRateLimitRefusesRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(503, "")}
		p := &permit{refuseFrom: 2}
		c := v.client(t, 0, func(cfg *Config) { cfg.Retries = 2 })
		_, err := c.Book(t.Context(), upstream.Call{Permit: p}, "101", 20)
		if market.CodeOf(err) != market.CodeUpstreamUnavailable || v.calls() != 1 {
			t.Errorf("the read returned the error %v after %d calls, want %s after 1", err, v.calls(), market.CodeUpstreamUnavailable)
		}
		if _, err := c.Book(t.Context(), upstream.Call{Permit: p}, "102", 20); err != error(errBudget) || v.calls() != 1 {
			t.Errorf("the refused read returned the error %v after %d calls, want the error of the permit", err, v.calls())
		}
	})
}

func TestCancellationEndsRetryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: respond(503, "", "Retry-After", "5")}
		c := v.client(t, 0, func(cfg *Config) { cfg.Retries = 2 })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		started := time.Now()
		_, err := c.Book(ctx, upstream.Call{}, "101", 20)
		if err == nil || v.calls() != 1 || time.Since(started) != time.Second {
			t.Errorf("the read returned the error %v after %d calls and %v, want an error after 1 call and 1s", err, v.calls(), time.Since(started))
		}
	})
}

// TestTransportRepeatsNoCall checks that net/http does not repeat a call if the venue closes a reused connection, because the rate
// limit has admitted only one call.
func TestTransportRepeatsNoCall(t *testing.T) {
	var received, reused atomic.Int64
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		if received.Add(1) == 1 {
			answerWith(500, "application/json", "{}")(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	c, p := v.client(t), &permit{}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			reused.Add(1)
		}
	}})
	for _, token := range []string{"101", "102"} {
		if _, err := c.Book(ctx, upstream.Call{Permit: p}, token, 20); market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Errorf("the read of the book of %s returned %v, want %s", token, err, market.CodeUpstreamUnavailable)
		}
	}
	if p.admitted != 2 || received.Load() != 2 || reused.Load() != 1 {
		t.Errorf("the permit admitted %d calls, the venue received %d, and %d used an idle connection; want 2, 2 and 1", p.admitted, received.Load(), reused.Load())
	}
}
