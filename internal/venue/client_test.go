package venue

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

// read is one of the client's methods; absent tells that it found nothing, without an error.
type read struct {
	name string
	user bool
	call func(ctx context.Context, c *Client) (absent bool, err error)
}

func absentResult[T any](results []market.Result[*T], err error) (bool, error) {
	if err != nil {
		return false, err
	}
	return results[0].Value == nil && results[0].Err == nil, results[0].Err
}

// reads are all methods, asked for one thing.
var reads = []read{
	{"prices", false, func(ctx context.Context, c *Client) (bool, error) {
		return absentResult(c.Prices(ctx, []string{"101"}))
	}},
	{"spreads", false, func(ctx context.Context, c *Client) (bool, error) {
		return absentResult(c.Spreads(ctx, []string{"101"}))
	}},
	{"orderbook", false, func(ctx context.Context, c *Client) (bool, error) {
		b, err := c.Book(ctx, "101", 20)
		return b == nil && err == nil, err
	}},
	{"price-history", false, func(ctx context.Context, c *Client) (bool, error) {
		h, err := c.PriceHistory(ctx, "101", 20000, 20001)
		return h == nil && err == nil, err
	}},
	{"market-search", false, func(ctx context.Context, c *Client) (bool, error) {
		p, err := c.Search(ctx, market.Search{})
		return p == nil && err == nil, err
	}},
	{"market-details", false, func(ctx context.Context, c *Client) (bool, error) {
		return absentResult(c.MarketsByID(ctx, []string{"M1"}))
	}},
	{"market-details", false, func(ctx context.Context, c *Client) (bool, error) {
		return absentResult(c.MarketsByToken(ctx, []string{"101"}))
	}},
	{"market-details", false, func(ctx context.Context, c *Client) (bool, error) {
		m, err := c.MarketBySlug(ctx, "will-it-rain")
		return m == nil && err == nil, err
	}},
	{"balance", true, func(ctx context.Context, c *Client) (bool, error) {
		b, err := c.Balance(ctx, wallet)
		return b == nil && err == nil, err
	}},
	{"positions", true, func(ctx context.Context, c *Client) (bool, error) {
		_, err := c.Positions(ctx, wallet)
		return false, err
	}},
	{"orders", true, func(ctx context.Context, c *Client) (bool, error) { _, err := c.Orders(ctx, wallet); return false, err }},
	{"trades", true, func(ctx context.Context, c *Client) (bool, error) {
		_, err := c.Trades(ctx, wallet, market.TradeQuery{})
		return false, err
	}},
	{"history", true, func(ctx context.Context, c *Client) (bool, error) {
		_, err := c.History(ctx, wallet, market.HistoryQuery{})
		return false, err
	}},
}

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []Config{
		{}, {BaseURL: "localhost:8080"}, {BaseURL: "ftp://host"}, {BaseURL: "http://"}, {BaseURL: "http://:80"}, {BaseURL: "http://a b/"},
		{BaseURL: "http://user:word@host"}, {BaseURL: "http://host/?x=1"}, {BaseURL: "http://host/#x"},
		{BaseURL: "http://host", CredentialsMode: "cookie"}, {BaseURL: "http://host", Timeout: -1},
		{BaseURL: "http://host", MaxBody: -1}, {BaseURL: "http://host", MaxIDs: -1},
	} {
		c, err := New(cfg)
		if err == nil || c != nil {
			t.Errorf("New(%+v) = %v, %v; want an error", cfg, c, err)
		} else if strings.Contains(err.Error(), "word") {
			t.Errorf("the error quotes the URL: %v", err)
		}
	}
}

// TestStatuses holds the code of every endpoint for every kind of answer that is none.
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
		{status: 200, body: `{"positions":null,"orders":null,"trades":null,"history":null,"markets":null,"prices":null,"spreads":null,"bids":null,"asks":null}`, public: bad, user: bad},
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
				c := v.client(t, func(cfg *Config) { cfg.Clock = &manualClock{t: now} })
				c.rand = func() float64 { return 0.5 }
				absent, err := r.call(asUser(t), c)
				want := tt.public
				if r.user {
					want = tt.user
				}
				wait := tt.wait
				if wait == 0 && (want == limited || want == unavailable || want == timeout) {
					wait = minBackoff / 2 // no word of the venue's: drawn
				}
				var e *market.Error
				if !errors.As(err, &e) || e.Code != want || absent {
					t.Fatalf("got absent %v, error %v; want %s", absent, err, want)
				}
				if e.RetryAfter != wait {
					t.Errorf("RetryAfter is %v, want %v", e.RetryAfter, wait)
				}
				if !strings.HasSuffix(e.Message, "("+r.name+")") || strings.Contains(e.Message, "reason") {
					t.Errorf("the message is %q: it must name the endpoint and nothing of the venue's", e.Message)
				}
				if n := v.count(); n > 3 {
					t.Errorf("%d calls for one key", n)
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
	} {
		for _, r := range reads {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				absent, err := r.call(asUser(t), newVenue(t, everywhere(h)).client(t))
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

// An enveloped null is a single thing that is not there; for a list it makes no sense.
func TestEnvelopedNull(t *testing.T) {
	c := newVenue(t, everywhere(answer(`{"success":true,"data":null}`))).client(t)
	for _, r := range reads {
		absent, err := r.call(asUser(t), c)
		if list := slices.Contains([]string{"market-search", "positions", "orders", "trades", "history"}, r.name); list == absent || list == (err == nil) {
			t.Errorf("%s: absent %v, error %v", r.name, absent, err)
		}
	}
}

func TestContentTypes(t *testing.T) {
	for contentType, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true, "text/json": true,
		"application/vnd.venue.v1+json": true, "text/plain; charset=utf-8": true, "": true,
		"text/html": false, "text/html; charset=utf-8": false, "application/xml": false, "application/octet-stream": false,
	} {
		c := newVenue(t, everywhere(answerWith(200, contentType, goldenFile(t, "prices/object")))).client(t)
		results, err := c.Prices(t.Context(), []string{"101"})
		if got := err == nil && results[0].Value != nil; got != ok {
			t.Errorf("%q: %v, %v; want it to be read: %v", contentType, results, err, ok)
		}
	}
	c := newVenue(t, everywhere(answerWith(200, "text/plain", "service is up"))).client(t)
	if _, err := c.Prices(t.Context(), []string{"101"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("a text that is not JSON: %v", err)
	}
}

func zipped(t testing.TB, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBodies(t *testing.T) {
	const limit = 4 << 20
	price := goldenFile(t, "prices/object")
	padded := func(n int) string { return price + strings.Repeat(" ", n-len(price)) }
	tooMany := "[" + strings.Repeat("0,", wire.MaxValues) + "0]"
	for _, tt := range []struct {
		name, encoding, body string
		ok                   bool
		cause                string
	}{
		{name: "at the limit", body: padded(limit), ok: true},
		{name: "over the limit", body: padded(limit + 1), cause: errTooLarge.Error()},
		{name: "gzip", encoding: "gzip", body: zipped(t, []byte(price)), ok: true},
		{name: "x-gzip", encoding: "X-GZIP", body: zipped(t, []byte(price)), ok: true},
		{name: "identity", encoding: "identity", body: price, ok: true},
		{name: "a bomb below the limit", encoding: "gzip", body: zipped(t, []byte(padded(limit))), cause: errBomb.Error()},
		{name: "well compressed below the bound", encoding: "gzip", body: zipped(t, []byte(padded(bombSize))), ok: true},
		{name: "gzip cut off", encoding: "gzip", body: zipped(t, []byte(price))[:20], cause: errEncoding.Error()},
		{name: "not gzip", encoding: "gzip", body: price, cause: errEncoding.Error()},
		{name: "unknown encoding", encoding: "br", body: price, cause: errEncoding.Error()},
		{name: "JSON cut off", body: price[:len(price)-5], cause: wire.ErrTruncated.Error()},
		{name: "two values", body: price + price, cause: "the body is more than one JSON value"},
		{name: "byte order mark", body: "\xef\xbb\xbf" + price, ok: true},
		{name: "too many values", body: tooMany, cause: "the body has too many values"},
		{name: "deeply nested", body: strings.Repeat("[", 200_000), cause: "the body is not JSON"},
		{name: "deep and closed", body: strings.Repeat("[", 9000) + strings.Repeat("]", 9000), cause: ""},
		{name: "invalid UTF-8", body: `{"tokenId":"101","price":0.5,"timestamp":"` + "\xff\xfe" + `"}`, ok: true},
		{name: "huge number", body: `{"tokenId":"101","price":0.` + strings.Repeat("5", 100_000) + `}`, cause: ""},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/chunked=%v", tt.name, chunked), func(t *testing.T) {
				v := newVenue(t, everywhere(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if tt.encoding != "" {
						w.Header().Set("Content-Encoding", tt.encoding)
					}
					if chunked {
						w.(http.Flusher).Flush()
					} else {
						w.Header().Set("Content-Length", strconv.Itoa(len(tt.body)))
					}
					_, _ = io.WriteString(w, tt.body)
				}))
				c := v.client(t, func(cfg *Config) { cfg.MaxBody = limit })
				results, err := c.Prices(t.Context(), []string{"101"})
				if err == nil {
					err = results[0].Err
				}
				if tt.ok {
					if err != nil || results[0].Value == nil {
						t.Fatalf("got %v, %v; want a price", results, err)
					}
					return
				}
				if market.CodeOf(err) != market.CodeUpstreamBadResponse || !strings.Contains(err.Error(), tt.cause) {
					t.Fatalf("got %v; want %s because %s", err, market.CodeUpstreamBadResponse, tt.cause)
				}
			})
		}
	}
}

func TestBombIsRefusedEarly(t *testing.T) {
	bomb := zipped(t, make([]byte, 16<<20))
	resp := &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(bomb))}
	read := &receivedReader{r: resp.Body}
	resp.Body = io.NopCloser(read)
	if _, err := readBody(resp, 1<<30); !errors.Is(err, errBomb) {
		t.Fatalf("got %v, want %v", err, errBomb)
	}
	if read.n > int64(len(bomb))/2 {
		t.Errorf("%d of %d bytes were read before the bomb was refused", read.n, len(bomb))
	}
}

func TestLargeHeaderIsRefused(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 2*maxResponseHeader))
		_, _ = io.WriteString(w, goldenFile(t, "prices/object"))
	}))
	if results, err := v.client(t).Prices(t.Context(), []string{"101"}); err == nil {
		t.Errorf("got %v, want an error", results)
	}
}

// hang waits for the end of the request.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drip sends the beginning of an answer and then nothing.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"tokenId":`)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestTimeouts(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{"hang": hang, "drip": drip} {
		for _, r := range reads {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				c := newVenue(t, everywhere(h)).client(t, func(cfg *Config) { cfg.Timeout = 50 * time.Millisecond })
				started := time.Now()
				_, err := r.call(asUser(t), c)
				if market.CodeOf(err) != market.CodeUpstreamTimeout {
					t.Errorf("got %v, want %s", err, market.CodeUpstreamTimeout)
				}
				if d := time.Since(started); d > 5*time.Second {
					t.Errorf("it took %v", d)
				}
			})
		}
	}
}

func TestCallersDeadline(t *testing.T) {
	c := newVenue(t, everywhere(hang)).client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Book(ctx, "101", 1); market.CodeOf(err) != market.CodeUpstreamTimeout {
		t.Errorf("got %v, want %s", err, market.CodeUpstreamTimeout)
	}
	var e *market.Error
	if _, err := c.Book(ctx, "101", 1); !errors.As(err, &e) || e.Code != market.CodeUpstreamTimeout {
		t.Errorf("after the deadline: got %v, want %s", err, market.CodeUpstreamTimeout)
	}
}

func TestCancelledByCaller(t *testing.T) {
	cause := errors.New("nobody waits any more")
	for name, begin := range map[string]http.HandlerFunc{"before the header": hang, "in the body": drip} {
		for _, r := range reads {
			t.Run(name+"/"+r.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(asUser(t))
				c := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
					cancel(cause)
					begin(w, r)
				})).client(t)
				_, err := r.call(ctx, c)
				var e *market.Error
				if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || errors.As(err, &e) {
					t.Errorf("got %v, want the cause and no failure of the venue's", err)
				}
			})
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := newVenue(t, nil)
	if _, err := v.client(t).Book(ctx, "101", 1); !errors.Is(err, context.Canceled) || v.count() != 0 {
		t.Errorf("cancelled before: got %v after %d calls", err, v.count())
	}
}

func TestCredentialModes(t *testing.T) {
	for _, mode := range []string{"", CredentialsQuery, CredentialsHeader, CredentialsNone} {
		for _, r := range reads {
			t.Run(mode+"/"+r.name, func(t *testing.T) {
				v := newVenue(t, everywhere(answer(`{}`)))
				c := v.client(t, func(cfg *Config) { cfg.CredentialsMode = mode })
				_, _ = r.call(asUser(t), c)
				got := v.last()
				query := got.URL.Query().Get("credentials")
				header, _ := base64.StdEncoding.DecodeString(got.Header.Get("X-Api-Credentials"))
				wantQuery, wantHeader := "", ""
				switch {
				case !r.user:
				case mode == CredentialsHeader:
					wantHeader = canary
				case mode != CredentialsNone:
					wantQuery = canary
				}
				assertEqual(t, query, wantQuery)
				assertEqual(t, string(header), wantHeader)
				if r.user && got.URL.Query().Get("address") != string(wallet) {
					t.Errorf("the address is %q", got.URL.Query().Get("address"))
				}
				if !r.user && strings.Contains(fmt.Sprint(got.URL, got.Header), "canary") {
					t.Errorf("a public call carries credentials: %v", got.URL)
				}
			})
		}
	}
}

func TestUserReadsNeedCredentials(t *testing.T) {
	for _, r := range reads {
		if !r.user {
			continue
		}
		seen := &recordingObserver{}
		v := newVenue(t, everywhere(answer(`{}`)))
		_, err := r.call(t.Context(), v.client(t, func(cfg *Config) { cfg.Observer = seen }))
		if market.CodeOf(err) != market.CodeUnauthenticated || v.count() != 0 || len(seen.calls) != 0 {
			t.Errorf("%s: got %v after %d calls", r.name, err, v.count())
		}
		none := v.client(t, func(cfg *Config) { cfg.CredentialsMode = CredentialsNone })
		if _, err := r.call(t.Context(), none); market.CodeOf(err) == market.CodeUnauthenticated || v.count() == 0 {
			t.Errorf("%s in mode none: got %v after %d calls", r.name, err, v.count())
		}
	}
}

// everyText returns all that could be printed of an error.
func printErrorChain(err error) string {
	var b strings.Builder
	var walk func(err error)
	walk = func(err error) {
		if err == nil {
			return
		}
		fmt.Fprintf(&b, "%v\n%+v\n%#v\n%q\n", err, err, err, err)
		switch x := err.(type) {
		case interface{ Unwrap() error }:
			walk(x.Unwrap())
		case interface{ Unwrap() []error }:
			for _, e := range x.Unwrap() {
				walk(e)
			}
		}
	}
	walk(err)
	return b.String()
}

// TestErrorsHaveNoCredentials lets calls fail in every way that could bring the URL or the venue's echo of it into an
// error.
func TestErrorsHaveNoCredentials(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)
	untrusted := httptest.NewUnstartedServer(answer(`{}`))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	echo := func(status int, contentType, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			wire := r.URL.Query().Get("credentials") + r.Header.Get("X-Api-Credentials")
			fields, _ := market.ParseCredentials([]byte(canary))
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, format, url.QueryEscape(wire), "canary-key-7f3a canary/secret+9c= canary-extra canary-deep 7300419265", strconv.Quote(fields.Wire()), strconv.Quote(r.URL.String()))
		}
	}
	served := func(h http.HandlerFunc) string { return newVenue(t, everywhere(h)).URL + prefix }
	for name, base := range map[string]string{
		"refused":     closed.URL,
		"unknown":     "http://venue.invalid",
		"certificate": untrusted.URL,
		"not TLS":     strings.Replace(elsewhere.URL, "http:", "https:", 1),
		"redirect": served(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		}),
		"timeout":    served(hang),
		"drip":       served(drip),
		"reset":      served(reset),
		"not JSON":   served(answer(`{"positions":[`)),
		"echo 400":   served(echo(400, "application/json", `{"success":false,"error":"bad %s and %s","code":"BAD","message":%s,"url":%s}`)),
		"echo 401":   served(echo(401, "application/json", `{"success":false,"message":"no %s","error":{"message":"%s"},"msg":%s,"url":%s}`)),
		"echo 200":   served(echo(200, "application/json", `{"success":false,"error":"no %s, %s","code":%s,"x":%s}`)),
		"echo wire":  served(echo(200, "application/json", `{"success":false,"x":"%s%s","error":%s,"y":%s}`)),
		"echo url":   served(echo(500, "application/json", `{"success":false,"x":"%s%s","y":%s,"error":%s}`)),
		"echo rows":  served(echo(200, "application/json", `{"positions":[{"marketId":"%s %s","outcome":%s,"size":%s}]}`)),
		"echo as id": served(echo(200, "application/json", `[{"marketId":"M","orderId":"%s,","tradeId":"%s,","size":%s,"price":%s,"timestamp":"canary-key-7f3a"}]`)),
		"echo HTML":  served(echo(403, "text/html", `<p>%s %s %s %s`)),
	} {
		for _, mode := range []string{CredentialsQuery, CredentialsHeader} {
			for _, r := range reads {
				if !r.user {
					continue
				}
				t.Run(name+"/"+mode+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					c := newClient(t, base, func(cfg *Config) {
						cfg.CredentialsMode, cfg.Timeout = mode, 2*time.Second
						if name == "timeout" || name == "drip" {
							cfg.Timeout = 50 * time.Millisecond
						}
					})
					_, err := r.call(asUser(t), c)
					if err == nil {
						t.Fatal("no error")
					}
					text := printErrorChain(err)
					for _, secret := range append(secretSpellings(t), base) {
						if strings.Contains(text, secret) {
							t.Fatalf("%q is in the error:\n%s", secret, text)
						}
					}
				})
			}
		}
	}
}

// secretsFor are pieces of the canary in the spellings in which they travel.
func secretSpellings(t *testing.T) []string {
	c, err := market.ParseCredentials([]byte(canary))
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"canary", "7f3a", "9c=", "secret+9c", "7300419265", "eep", url.QueryEscape("canary/secret+9c="), `\"phrase`,
		base64.StdEncoding.EncodeToString([]byte(c.Wire()))[:24],
	}
}

// reset sends half an answer and resets the connection.
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
		"refused": "http://127.0.0.1:1", // nothing listens there
		"reset":   newVenue(t, everywhere(reset)).URL + prefix,
		"cut off": newVenue(t, everywhere(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"tokenId":"101",`)
		})).URL + prefix,
		"hung up": newVenue(t, everywhere(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })).URL + prefix,
	} {
		for _, r := range reads {
			if _, err := r.call(asUser(t), newClient(t, base)); market.CodeOf(err) != market.CodeUpstreamUnavailable {
				t.Errorf("%s of %s: got %v, want %s", name, r.name, err, market.CodeUpstreamUnavailable)
			}
		}
	}
}

func TestRedactedMessageIsBounded(t *testing.T) {
	c := newVenue(t, everywhere(answerWith(500, "application/json", `{"error":"`+strings.Repeat("é", 20_000)+`\u0000\n"}`))).client(t)
	_, err := c.Balance(asUser(t), wallet)
	if text := err.Error(); len(text) > 400 || strings.ContainsAny(text, "\x00\n") || !strings.Contains(text, "éé…") {
		t.Errorf("the error is %d bytes long: %.500q", len(text), text)
	}
}

func TestObserverSeesEveryCall(t *testing.T) {
	seen := &recordingObserver{}
	status := 200
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		answerWith(status, "application/json", goldenFile(t, "prices/list"))(w, r)
	}))
	c := v.client(t, func(cfg *Config) { cfg.Observer = seen })
	_, _ = c.Prices(t.Context(), []string{"101", "103"})
	status = 429
	_, _ = c.Prices(t.Context(), []string{"101"})
	v.Close()
	_, _ = c.Prices(t.Context(), []string{"102"})
	assertEqual(t, strings.Join(seen.calls, "; "), "prices 2 200 ok; prices 1 429 RATE_LIMITED; prices 1 0 UPSTREAM_UNAVAILABLE")
}

func TestRequestURLs(t *testing.T) {
	v := newVenue(t, everywhere(answer(`{}`)))
	c := v.client(t)
	_, _ = c.Prices(t.Context(), []string{"a&b=c d", "é%", "x?#"})
	got := v.last()
	assertEqual(t, got.URL.RawQuery, "tokenIds=a%26b%3Dc+d,%C3%A9%25,x%3F%23")
	assertEqual(t, got.URL.Path, prefix+"/api/exchange/prices")
	assertEqual(t, got.Header.Get("Accept"), "application/json")
	assertEqual(t, got.Header.Get("Accept-Encoding"), "gzip")
	assertEqual(t, got.Header.Get("User-Agent"), DefaultUserAgent)

	_, _ = c.PriceHistory(t.Context(), "101", date(t, "2026-02-27"), date(t, "2026-03-01"))
	assertEqual(t, v.last().URL.RawQuery, "tokenId=101&startDate=2026-02-27&endDate=2026-03-01")
	_, _ = c.Book(t.Context(), "101", 50)
	assertEqual(t, v.last().URL.RawQuery, "tokenId=101&depth=50")
	_, _ = c.MarketBySlug(t.Context(), "a-slug")
	assertEqual(t, v.last().URL.RawQuery, "slug=a-slug")

	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("", 7200))
	_, _ = c.Search(t.Context(), market.Search{
		Text: "who, wins/", Status: []market.Status{market.StatusOpen, market.StatusClosed}, Category: "A&B", Tag: "t", EndsAfter: at, EndsBefore: at,
		EventID: "E", EventSlug: "e", Sort: market.SortVolume24h, Direction: market.Descending, Limit: 7, Page: "c:abc",
	})
	assertEqual(t, v.last().URL.RawQuery, "q=who%2C+wins%2F&status=OPEN,CLOSED&category=A%26B&tag=t&endsAfter=2026-11-20T10%3A00%3A00Z"+
		"&endsBefore=2026-11-20T10%3A00%3A00Z&eventId=E&eventSlug=e&sort=volume24h&order=desc&limit=7&cursor=abc")

	none := v.client(t, func(cfg *Config) { cfg.CredentialsMode = CredentialsNone })
	_, _ = none.Trades(t.Context(), wallet, market.TradeQuery{MarketID: "M", From: at, To: at, Limit: 5, Page: "o:40"})
	assertEqual(t, v.last().URL.RawQuery, "address="+string(wallet)+"&marketId=M&from=2026-11-20T10%3A00%3A00Z&to=2026-11-20T10%3A00%3A00Z&offset=40")
	_, _ = none.History(t.Context(), wallet, market.HistoryQuery{Kinds: []market.HistoryKind{market.HistoryTrade, market.HistoryFee}})
	assertEqual(t, v.last().URL.RawQuery, "address="+string(wallet)+"&type=TRADE,FEE")
}

var badIDs = []string{"", "a,b", "a/b", "a\nb", "a\x00", "\x7f", "\u0085", "\xff", strings.Repeat("x", market.MaxIDLength+1)}

func TestBadInputIsNotSent(t *testing.T) {
	v := newVenue(t, nil) // asked for anything it fails the test
	c := v.client(t)
	refused := func(what string, err error) {
		t.Helper()
		if market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("%s: got %v, want %s", what, err, market.CodeBadUserInput)
		}
	}
	ctx := asUser(t)
	for _, id := range badIDs {
		_, err := c.Book(ctx, id, 1)
		refused("book", err)
		_, err = c.PriceHistory(ctx, id, 1, 2)
		refused("history", err)
		_, err = c.MarketBySlug(ctx, id)
		refused("slug", err)
		if id != "" {
			_, err = c.Search(ctx, market.Search{EventID: id})
			refused("event", err)
			_, err = c.Search(ctx, market.Search{EventSlug: id})
			refused("event slug", err)
			_, err = c.Trades(ctx, wallet, market.TradeQuery{MarketID: id})
			refused("market of trades", err)
			_, err = c.Trades(ctx, wallet, market.TradeQuery{Page: "c:" + id})
			refused("page of trades", err)
		}
		for name, list := range map[string]func() error{
			"prices":  func() error { r, err := c.Prices(ctx, []string{id}); return elementError(r[0].Err, err) },
			"spreads": func() error { r, err := c.Spreads(ctx, []string{id}); return elementError(r[0].Err, err) },
			"markets": func() error { r, err := c.MarketsByID(ctx, []string{id}); return elementError(r[0].Err, err) },
			"tokens":  func() error { r, err := c.MarketsByToken(ctx, []string{id}); return elementError(r[0].Err, err) },
		} {
			refused(name, list())
		}
	}
	for _, page := range []string{"x", "c", "c:", "o:", "o:0", "o:-1", "o:x", "o:1000001", "o:5:" + strings.Repeat("a", 17), "b:", "b:!", "d:1"} {
		_, err := c.Search(ctx, market.Search{Page: page})
		refused("page "+page, err)
		_, err = c.History(ctx, wallet, market.HistoryQuery{Page: page})
		refused("page "+page, err)
	}
	_, err := c.Book(ctx, "101", 0)
	refused("depth", err)
	_, err = c.PriceHistory(ctx, "101", 3, 2)
	refused("days", err)
	for _, q := range []market.Search{{Limit: 101}, {Limit: -1}, {Sort: "NAME"}, {Text: strings.Repeat("x", maxText+1)}, {Tag: strings.Repeat("x", market.MaxIDLength+1)}} {
		_, err = c.Search(ctx, q)
		refused("search", err)
	}
	_, err = c.Trades(ctx, wallet, market.TradeQuery{Limit: 101})
	refused("limit", err)
	if v.count() != 0 {
		t.Errorf("%d calls", v.count())
	}
}

// cmpErr returns the element's error when the read as a whole had none.
func elementError(element, whole error) error {
	if whole != nil {
		return fmt.Errorf("the read failed as a whole: %s", whole)
	}
	return element
}

func TestBadIDFailsOnlyItself(t *testing.T) {
	v := newVenue(t, everywhere(answer(goldenFile(t, "prices/list"))))
	results, err := v.client(t).Prices(t.Context(), []string{"103", "a,b", "101", "103", "", "102"})
	if err != nil {
		t.Fatal(err)
	}
	assertEqual(t, showResults(results, func(p *market.Price) string { return p.TokenID + " " + p.Price.String() }),
		"103 0.02\nBAD_USER_INPUT\n101 0.65\n103 0.02\nBAD_USER_INPUT\nabsent")
	assertEqual(t, strings.Join(v.queries(), "; "), "tokenIds=103,101,102")
}

// A size that is announced is refused before it is received, or memory set aside for it.
func TestAnnouncedSizeIsRefused(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(1<<40))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	if _, err := v.client(t).Prices(t.Context(), []string{"101"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("got %v, want %s", err, market.CodeUpstreamBadResponse)
	}
}

// talkative is a transport whose errors tell everything, as those of http.Client and of tracing transports do.
type leakyTransport struct{}

func (leakyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: fmt.Errorf("failed with %v", r.Header)}
}

func TestTransportErrorsAreNotExposed(t *testing.T) {
	for _, mode := range []string{CredentialsQuery, CredentialsHeader} {
		c := newClient(t, "http://venue.invalid", func(cfg *Config) { cfg.Transport, cfg.CredentialsMode = leakyTransport{}, mode })
		_, err := c.Balance(asUser(t), wallet)
		if market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Fatalf("got %v", err)
		}
		for _, secret := range append(secretSpellings(t), "venue.invalid") {
			if strings.Contains(printErrorChain(err), secret) {
				t.Errorf("%q is in the error: %s", secret, printErrorChain(err))
			}
		}
	}
}
