package venue

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
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
	"oddsgraph/internal/market/reqctx"
)

// cutOff answers 200 with a body that ends with an error of the connection.
func cutOff(err error) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, _ := says(200, "")(r)
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"tokenId":`), broken{err}))
		return resp, nil
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestOnlyPassingFailuresAreRetried(t *testing.T) {
	certificate := x509.UnknownAuthorityError{}
	for name, tt := range map[string]struct {
		answer  func(*http.Request) (*http.Response, error)
		passing bool
	}{
		"425": {says(425, ""), true}, "502": {says(502, "<html>", "Content-Type", "text/html"), true}, "503": {says(503, ""), true}, "504": {says(504, ""), true},
		"refused": {fails(syscall.ECONNREFUSED), true}, "reset": {fails(syscall.ECONNRESET), true}, "hung up": {fails(io.EOF), true},
		"no host": {fails(&net.DNSError{}), true}, "cut off": {cutOff(io.ErrUnexpectedEOF), true}, "reset in the body": {cutOff(syscall.ECONNRESET), true},
		"truncated": {says(200, `{"tokenId":"101","pri`), true},

		"400": {says(400, ""), false}, "401": {says(401, ""), false}, "403": {says(403, ""), false}, "404": {says(404, ""), false},
		"408": {says(408, ""), false}, "429": {says(429, ""), false}, "429 with 0": {says(429, "", "Retry-After", "0"), false},
		"500": {says(500, ""), false}, "501": {says(501, ""), false}, "302": {says(302, "", "Location", "/x"), false},
		"HTML": {says(200, "<html>", "Content-Type", "text/html"), false}, "not JSON": {says(200, "{]"), false}, "nothing": {says(200, " "), false},
		"success false": {says(200, `{"success":false,"code":"UNAVAILABLE"}`), false}, "wrong form": {says(200, `{"bids":7,"asks":true}`), false},
		"certificate": {fails(certificate), false}, "hang": {hangs, false}, "too large": {says(200, strings.Repeat(" ", DefaultMaxBody+1)), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &scripted{answer: tt.answer}
				c := v.client(t, 0.5, func(cfg *Config) { cfg.Retries = 0 })
				_, err := c.Book(t.Context(), "101", 20)
				want := 1
				if tt.passing {
					want = 1 + DefaultRetries
				}
				if v.calls() != want || err == nil && name != "404" {
					t.Errorf("%v after %d calls, want %d", err, v.calls(), want)
				}
				if tt.passing && (v.at[1].Sub(v.at[0]) != 125*time.Millisecond || v.at[2].Sub(v.at[1]) != 250*time.Millisecond) {
					t.Errorf("at %v", v.at)
				}
			})
		})
	}
}

func TestARetryMendsTheRead(t *testing.T) {
	for _, r := range reads {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &scripted{}
				v.answer = func(rq *http.Request) (*http.Response, error) {
					if v.calls() == 1 {
						return says(503, "")(rq)
					}
					return truth(rq)
				}
				p := &permit{}
				seen := &drifts{}
				c := v.client(t, 0.5, func(cfg *Config) { cfg.Retries, cfg.Observer = 1, seen })
				if _, err := r.call(reqctx.WithPermit(asUser(t), p), c); err != nil || v.calls() != 2 || len(seen.calls) != 2 {
					t.Fatalf("%v after %q", err, v.asked)
				}
				if v.asked[0] != v.asked[1] {
					t.Errorf("first %s, then %s", v.asked[0], v.asked[1])
				}
				if p.admitted != 2 {
					t.Errorf("%d of 2 calls were admitted", p.admitted)
				}
				if c.backoffs.keys.Len() != 0 {
					t.Error("the failure is remembered")
				}
			})
		})
	}
}

// TestARetryThatCannotEndInTimeIsNotMade: an attempt is taken to last as long as the one before.
func TestARetryThatCannotEndInTimeIsNotMade(t *testing.T) {
	const lasts, wait = 400 * time.Millisecond, 125 * time.Millisecond
	slow := func(r *http.Request) (*http.Response, error) {
		time.Sleep(lasts)
		return says(503, "")(r)
	}
	for name, tt := range map[string]struct {
		within func(ctx context.Context) (context.Context, context.CancelFunc)
		calls  int
	}{
		"no deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }, 3},
		"time for two": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 2*lasts+wait+1)
		}, 2},
		"time for one": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 2*lasts+wait)
		}, 1},
		"waiters' time": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return reqctx.WithCall(ctx, waiters{time.Now().Add(2*lasts + wait)}), func() {}
		}, 1},
		"waiters forever": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return reqctx.WithCall(ctx, waiters{}), func() {}
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &scripted{answer: slow}
				c := v.client(t, 0.5, func(cfg *Config) { cfg.Retries = 2 })
				ctx, cancel := tt.within(t.Context())
				defer cancel()
				started := time.Now()
				_, err := c.Book(ctx, "101", 20)
				if market.CodeOf(err) != market.CodeUpstreamUnavailable || v.calls() != tt.calls {
					t.Errorf("%v after %d calls, want %d", err, v.calls(), tt.calls)
				}
				if deadline, ok := ctx.Deadline(); ok && time.Now().After(deadline) || tt.calls == 1 && time.Since(started) != lasts {
					t.Errorf("it took %v", time.Since(started))
				}
			})
		})
	}
}

// waiters is a reqctx.Call of waiters that wait until a time, or for ever.
type waiters struct{ until time.Time }

func (waiters) Priority() reqctx.Priority { return reqctx.PriorityBooks }

func (w waiters) Deadline() (time.Time, bool) { return w.until, !w.until.IsZero() }

func (waiters) Trace() reqctx.TraceContext { return reqctx.TraceContext{} }

func (waiters) NoteCall(reqctx.UpstreamCall) {}

func TestARetryWaitsAsLongAsTheVenueSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: says(503, "", "Retry-After", "4")}
		_, _ = v.client(t, 0.5, func(cfg *Config) { cfg.Retries = 1 }).Book(t.Context(), "101", 20)
		if v.calls() != 2 || v.at[1].Sub(v.at[0]) != 4*time.Second {
			t.Errorf("at %v", v.at)
		}
		v = &scripted{answer: says(503, "", "Retry-After", "11")} // nobody is held for longer than a call may take
		_, err := v.client(t, 0.5, func(cfg *Config) { cfg.Retries = 1 }).Book(t.Context(), "101", 20)
		if v.calls() != 1 || retryAfterOf(err) != "UPSTREAM_UNAVAILABLE 11s" {
			t.Errorf("%v at %v", err, v.at)
		}
	})
}

func TestARetryThatTheBudgetRefusesIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: says(503, "")}
		p := &permit{refuseFrom: 2}
		c := v.client(t, 0.5, func(cfg *Config) { cfg.Retries = 2 })
		_, err := c.Book(reqctx.WithPermit(t.Context(), p), "101", 20)
		if market.CodeOf(err) != market.CodeUpstreamUnavailable || v.calls() != 1 {
			t.Errorf("%v after %d calls", err, v.calls())
		}
		if _, err := c.Book(reqctx.WithPermit(t.Context(), p), "102", 20); err != error(errBudget) || v.calls() != 1 {
			t.Errorf("a first call: %v after %d calls", err, v.calls())
		}
	})
}

func TestACallerWhoLeavesEndsTheWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &scripted{answer: says(503, "", "Retry-After", "5")}
		c := v.client(t, 0.5, func(cfg *Config) { cfg.Retries = 2 })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		started := time.Now()
		_, err := c.Book(ctx, "101", 20)
		if err == nil || v.calls() != 1 || time.Since(started) != time.Second {
			t.Errorf("%v after %d calls and %v", err, v.calls(), time.Since(started))
		}
	})
}

// TestEveryCallOfAReadIsAdmitted counts pages, and single calls in place of a list.
func TestEveryCallOfAReadIsAdmitted(t *testing.T) {
	page := func(r *http.Request) (*http.Response, error) {
		next := map[string]string{"": "a", "a": "b", "b": ""}[r.URL.Query().Get("cursor")]
		return says(200, `{"positions":[{"marketId":"M`+r.URL.Query().Get("cursor")+`","outcome":"YES","size":1}],"nextCursor":"`+next+`"}`)(r)
	}
	v, p := &scripted{answer: page}, &permit{}
	if list, err := v.client(t, 0.5).Positions(reqctx.WithPermit(asUser(t), p), wallet); err != nil || len(list) != 3 || p.admitted != 3 {
		t.Errorf("pages: %v, %v, %d admitted", list, err, p.admitted)
	}
	p = &permit{refuseFrom: 3}
	if list, err := v.client(t, 0.5).Positions(reqctx.WithPermit(asUser(t), p), wallet); err != error(errBudget) || list != nil {
		t.Errorf("refused in the middle: %v, %v", list, err)
	}
	singles := func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("tokenIds") {
			return says(400, "")(r)
		}
		return truth(r)
	}
	v, p = &scripted{answer: singles}, &permit{}
	if _, err := v.client(t, 0.5).Spreads(reqctx.WithPermit(t.Context(), p), []string{"101", "102", "103"}); err != nil || v.calls() != 4 || p.admitted != 4 {
		t.Errorf("one by one: %v, %d calls, %d admitted", err, v.calls(), p.admitted)
	}
}

// TestNoCallIsRepeatedOnItsWay: on a connection that was idle and on which nothing is answered, net/http would repeat a call by
// itself, behind the budget.
func TestNoCallIsRepeatedOnItsWay(t *testing.T) {
	var came, reused atomic.Int64
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		if came.Add(1) == 1 {
			answerWith(500, "application/json", "{}")(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	c, p := v.client(t), &permit{}
	ctx := httptrace.WithClientTrace(reqctx.WithPermit(t.Context(), p), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			reused.Add(1)
		}
	}})
	for _, token := range []string{"101", "102"} {
		if _, err := c.Book(ctx, token, 20); market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Errorf("%s: %v", token, err)
		}
	}
	if p.admitted != 2 || came.Load() != 2 || reused.Load() != 1 {
		t.Errorf("%d calls were admitted and %d came, %d on a connection that was idle", p.admitted, came.Load(), reused.Load())
	}
}

// TestAnEmptyBodyCostsNothing: what keeps a call from being repeated adds nothing to it, nor a goroutine and a timer by
// which net/http would find out that it is empty.
func TestAnEmptyBodyCostsNothing(t *testing.T) {
	c := (&scripted{}).client(t, 0)
	build := func() *http.Request { return c.newRequest(t.Context(), &request{}, nil, reqctx.TraceContext{}) }
	var sent connection
	w := bufio.NewWriter(&sent)
	if err := errors.Join(build().Write(w), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if sent.copied {
		t.Error("net/http makes a buffer to copy the body by")
	}
	if _, body, _ := strings.Cut(sent.String(), "\r\n\r\n"); body != "" || strings.Contains(sent.String(), "Transfer-Encoding") || strings.Contains(sent.String(), "Content-Length") {
		t.Errorf("sent is %q", sent.String())
	}
	allocations := func(encoding []string) float64 {
		return testing.AllocsPerRun(20, func() {
			r := build()
			r.TransferEncoding = encoding
			_ = r.Write(io.Discard)
		})
	}
	if as, probed := allocations(build().TransferEncoding), allocations(nil); as >= probed {
		t.Errorf("a call takes %v allocations, and %v where net/http finds out that its body is empty", as, probed)
	}
}

// connection is what a call is written to. A TCP connection has a ReadFrom of that kind, too.
type connection struct {
	strings.Builder
	copied bool
}

// ReadFrom implements io.ReaderFrom.
func (c *connection) ReadFrom(r io.Reader) (int64, error) {
	c.copied = true
	return io.Copy(&c.Builder, r)
}

func TestNegativeRetriesAreNone(t *testing.T) {
	v := &scripted{answer: says(503, "")}
	_, _ = v.client(t, 0, func(cfg *Config) { cfg.Retries = -1 }).Book(t.Context(), "101", 20)
	if v.calls() != 1 {
		t.Errorf("%d calls", v.calls())
	}
}
