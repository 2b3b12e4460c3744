package generic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// TestStatuses checks the error that a read of each endpoint returns for a failed response.
func TestStatuses(t *testing.T) {
	const failure = `{"success":false,"error":"the reason","code":"WHATEVER"}`
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	const (
		unavailable = market.CodeUpstreamUnavailable
		timeout     = market.CodeUpstreamTimeout
		bad         = market.CodeUpstreamBadResponse
		limited     = market.CodeRateLimited
	)
	for _, tt := range []struct {
		status       int
		body         string
		retryAfter   string
		public, user market.Code
		wait         time.Duration
	}{
		{status: 400, public: bad, user: bad},
		{status: 401, public: unavailable, user: market.CodeUnauthenticated},
		{status: 403, public: unavailable, user: market.CodeForbidden},
		{status: 404, body: "<html>no such host</html>", public: bad, user: bad},
		{status: 408, public: timeout, user: timeout},
		{status: 418, public: bad, user: bad},
		{status: 422, public: bad, user: bad},
		{status: 425, public: unavailable, user: unavailable},
		{status: 429, public: limited, user: limited},
		{status: 429, retryAfter: "7", public: limited, user: limited, wait: 7 * time.Second},
		{status: 429, retryAfter: "0", public: limited, user: limited},
		{status: 429, retryAfter: "soon", public: limited, user: limited},
		{status: 429, retryAfter: "-5", public: limited, user: limited},
		{status: 429, retryAfter: "99999999999999999999999", public: limited, user: limited, wait: wire.MaxWait},
		{status: 429, retryAfter: "301", public: limited, user: limited, wait: wire.MaxWait},
		{status: 429, retryAfter: "Sun, 22 Nov 2026 09:00:00 GMT", public: limited, user: limited, wait: wire.MaxWait},
		{status: 429, retryAfter: "Sat, 21 Nov 2026 09:01:30 GMT", public: limited, user: limited, wait: 90 * time.Second},
		{status: 429, retryAfter: "Sat, 21 Nov 2026 08:00:00 GMT", public: limited, user: limited},
		{status: 429, body: "<html>slow down</html>", retryAfter: "7", public: limited, user: limited, wait: 7 * time.Second},
		{status: 500, public: unavailable, user: unavailable},
		{status: 501, public: unavailable, user: unavailable},
		{status: 502, body: "<html>bad gateway</html>", public: unavailable, user: unavailable},
		{status: 503, retryAfter: "3", public: unavailable, user: unavailable, wait: 3 * time.Second},
		{status: 504, public: timeout, user: timeout},
		{status: 302, public: bad, user: bad},
		{status: 304, public: bad, user: bad},
		{status: 204, body: "-", public: bad, user: bad},
		{status: 200, body: "-", public: bad, user: bad},
		{status: 200, body: "null", public: bad, user: bad},
		{status: 200, body: "[]x", public: bad, user: bad},
		{status: 200, body: "{}", public: bad, user: bad},
		{status: 200, body: "7", public: bad, user: bad},
		{status: 200, body: `"x"`, public: bad, user: bad},
		{status: 200, body: `{"positions":null,"orders":null,"trades":null,"history":null,"markets":null,"prices":null,"spreads":null,"bids":null}`, public: bad, user: bad},
		{status: 200, body: `{"data":[[]]}`, public: bad, user: bad},
		{status: 200, body: failure, public: unavailable, user: unavailable},
		{status: 200, body: `{"error":"the reason"}`, public: unavailable, user: unavailable},
		{status: 200, body: `{"success":true,"data":{"error":"the reason"}}`, public: unavailable, user: unavailable},
		{status: 200, body: `{"success":false,"code":"TIMEOUT"}`, public: timeout, user: timeout},
		{status: 200, body: `{"success":false,"code":"Too-Many-Requests"}`, retryAfter: "2", public: limited, user: limited, wait: 2 * time.Second},
		{status: 200, body: `{"success":false,"code":"UNAUTHORIZED"}`, public: unavailable, user: market.CodeUnauthenticated},
		{status: 200, body: `{"success":false,"code":"FORBIDDEN"}`, public: unavailable, user: market.CodeForbidden},
	} {
		body, contentType := tt.body, "application/json"
		switch {
		case body == "":
			body = failure
		case body == "-":
			body = ""
		case body[0] == '<':
			contentType = "text/html; charset=utf-8"
		}
		for _, r := range reads {
			t.Run(fmt.Sprintf("%d %s/%s", tt.status, tt.body, r.name), func(t *testing.T) {
				v := newVenue(t, everywhere(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", contentType)
					if tt.retryAfter != "" {
						w.Header().Set("Retry-After", tt.retryAfter)
					}
					if tt.status == 302 {
						w.Header().Set("Location", "/elsewhere")
					}
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, body)
				}))
				c := v.client(t, func(cfg *Config) {
					cfg.Clock, cfg.Rand = tool.NewClock(now), func() float64 { return 0 }
				})
				absent, err := r.call(t.Context(), asUser(t), c)
				want := tt.public
				if r.user {
					want = tt.user
				}
				wait := tt.wait
				if wait == 0 && (want == limited || want == unavailable || want == timeout) {
					wait = rest.MinBackoff / 2 // the response has no usable Retry-After
				}
				var e *market.Error
				if !errors.As(err, &e) || e.Code != want || absent {
					t.Fatalf("got absent %v, error %v; want %s", absent, err, want)
				}
				if e.RetryAfter != wait {
					t.Errorf("RetryAfter is %v, want %v", e.RetryAfter, wait)
				}
				if !strings.HasSuffix(e.Message, "("+r.name+")") || strings.Contains(e.Message, "reason") {
					t.Errorf("the message is %q, want the endpoint and no text of the venue in it", e.Message)
				}
				if n := v.count(); n > 3 {
					t.Errorf("the read made %d calls for one key, want at most 3", n)
				}
			})
		}
	}
}

func TestNotFound(t *testing.T) {
	lists := []string{"market-search", "positions", "orders", "trades", "history"}
	for name, h := range map[string]http.HandlerFunc{
		"status":   answerWith(404, "application/json", `{"success":false,"error":"unknown","code":"NOT_FOUND"}`),
		"no body":  answerWith(404, "application/json", ""),
		"gone":     answerWith(410, "application/json", "{}"),
		"reported": answer(`{"success":false,"code":"NOT_FOUND"}`),
		"null":     answer(`{"success":true,"data":null}`),
	} {
		for _, r := range reads {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				absent, err := r.call(t.Context(), asUser(t), newVenue(t, everywhere(h)).client(t))
				if slices.Contains(lists, r.name) {
					if market.CodeOf(err) != market.CodeUpstreamBadResponse {
						t.Fatalf("got %v, want %s", err, market.CodeUpstreamBadResponse)
					}
				} else if !absent || err != nil {
					t.Fatalf("got absent %v, error %v; want absent", absent, err)
				}
			})
		}
	}
}

// hang sends no response. It returns when the request is cancelled.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drip sends the beginning of a response and then nothing.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"tokenId":`)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestDeadlineBeforeTheCall(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	v := newVenue(t, nil)
	if _, err := v.client(t).Book(ctx, upstream.Call{}, "101", 1); market.CodeOf(err) != market.CodeUpstreamTimeout || v.count() != 0 {
		t.Errorf("got %v after %d calls, want %s", err, v.count(), market.CodeUpstreamTimeout)
	}
}

func TestCancelledByCaller(t *testing.T) {
	cause := errors.New("nobody waits any more")
	for name, begin := range map[string]http.HandlerFunc{"before the header": hang, "in the body": drip} {
		for _, r := range reads {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				c := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
					cancel(cause)
					begin(w, r)
				})).client(t)
				_, err := r.call(ctx, asUser(t), c)
				var e *market.Error
				if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || errors.As(err, &e) {
					t.Errorf("got %v, want the cause of the cancellation and no market.Error", err)
				}
			})
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := newVenue(t, nil)
	if _, err := v.client(t).Book(ctx, upstream.Call{}, "101", 1); !errors.Is(err, context.Canceled) || v.count() != 0 {
		t.Errorf("with a cancelled context, Book returned %v after %d calls, want %v after none", err, v.count(), context.Canceled)
	}
}

// reset sends half a response and resets the connection.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"positions\":[")
	_ = buf.Flush()
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func TestConnectionFailures(t *testing.T) {
	for name, base := range map[string]string{
		"refused": "http://127.0.0.1:1", // nothing listens on this port
		"reset":   newVenue(t, everywhere(reset)).URL + prefix,
		"cut off": newVenue(t, everywhere(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"tokenId":"101",`)
		})).URL + prefix,
		"a header of 128 KiB": newVenue(t, everywhere(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 128<<10))
			_, _ = io.WriteString(w, `{}`)
		})).URL + prefix,
		"hung up": newVenue(t, everywhere(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })).URL + prefix,
	} {
		for _, r := range reads {
			if _, err := r.call(t.Context(), asUser(t), newClient(t, base)); market.CodeOf(err) != market.CodeUpstreamUnavailable {
				t.Errorf("after %q, the read of %s returned %v, want %s", name, r.name, err, market.CodeUpstreamUnavailable)
			}
		}
	}
}
