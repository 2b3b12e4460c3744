package generic

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

func TestContentTypes(t *testing.T) {
	for contentType, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true, "text/json": true,
		"application/vnd.venue.v1+json": true, "text/plain; charset=utf-8": true, "": true,
		"text/html": false, "text/html; charset=utf-8": false, "application/xml": false, "application/octet-stream": false,
	} {
		c := newVenue(t, everywhere(answerWith(200, contentType, goldenFile(t, "prices/object")))).client(t)
		results, err := c.Prices(t.Context(), upstream.Call{}, []string{"101"})
		if got := err == nil && results[0].Value != nil; got != ok {
			t.Errorf("for the content type %q, got %v and the error %v, want a price: %v", contentType, results, err, ok)
		}
	}
}

func compress(t testing.TB, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	must(t, z.Close())
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
		{name: "over the limit", body: padded(limit + 1), cause: "the body is larger than the limit"},
		{name: "gzip", encoding: "gzip", body: compress(t, []byte(price)), ok: true},
		{name: "x-gzip", encoding: "X-GZIP", body: compress(t, []byte(price)), ok: true},
		{name: "identity", encoding: "identity", body: price, ok: true},
		{name: "a bomb", encoding: "gzip", body: compress(t, []byte(padded(limit+1))), cause: "the body is larger than the limit"},
		{name: "well compressed up to the limit", encoding: "gzip", body: compress(t, []byte(padded(limit))), ok: true},
		{name: "gzip cut off", encoding: "gzip", body: compress(t, []byte(price))[:20], cause: "the body has an unknown or broken content encoding"},
		{name: "not gzip", encoding: "gzip", body: price, cause: "the body has an unknown or broken content encoding"},
		{name: "unknown encoding", encoding: "br", body: price, cause: "the body has an unknown or broken content encoding"},
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
				results, err := c.Prices(t.Context(), upstream.Call{}, []string{"101"})
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
					t.Fatalf("got the error %v, want %s with the cause %q", err, market.CodeUpstreamBadResponse, tt.cause)
				}
			})
		}
	}
}

// TestAnnouncedSizeIsRefused checks a response whose Content-Length exceeds the limit. The client must refuse the response before
// it reads the body.
func TestAnnouncedSizeIsRefused(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(1<<40))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	if _, err := v.client(t).Prices(t.Context(), upstream.Call{}, []string{"101"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("got %v, want %s", err, market.CodeUpstreamBadResponse)
	}
}

// TestSlowCallsOnlyWait checks that many slow calls at once affect neither the circuit breaker nor the backoff.
func TestSlowCallsOnlyWait(t *testing.T) {
	const latency, timeout = 6 * time.Second, 10 * time.Second
	// readBalances reads n balances with the client c, all at the same time. It returns the number of reads by error code, and the
	// duration of the longest read.
	readBalances := func(ctx context.Context, call upstream.Call, c *Client, n int) (codes map[market.Code]int, longest time.Duration) {
		codes = make(map[market.Code]int)
		var mu sync.Mutex
		var wg sync.WaitGroup
		started := time.Now()
		for i := range n {
			wg.Go(func() {
				_, err := c.Balance(ctx, call, market.Address(fmt.Sprintf("0x%040x", i)))
				mu.Lock()
				defer mu.Unlock()
				codes[market.CodeOf(err)]++
				longest = max(longest, time.Since(started))
			})
		}
		wg.Wait()
		return codes, longest
	}
	for _, accounts := range []int{45, 192} {
		synctest.Test(t, func(t *testing.T) {
			v, p := &scripted{answer: func(r *http.Request) (*http.Response, error) {
				select {
				case <-time.After(latency):
					return validResponse(r)
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}}, &permit{}
			c := v.client(t, 1, func(cfg *Config) { cfg.Timeout = timeout })
			codes, longest := readBalances(t.Context(), withPermit(asUser(t), p), c, accounts)
			if codes[""] != accounts || longest != latency {
				t.Errorf("the numbers of reads by error code are %v after %v, want %d successes after %v", codes, longest, accounts, latency)
			}
			assertEqual(t, circuitText(c, "balance"), "closed")
			if p.admitted != v.calls() {
				t.Errorf("the permit admitted %d calls, but the client sent %d", p.admitted, v.calls())
			}
			time.Sleep(time.Minute)
			if codes, _ := readBalances(t.Context(), asUser(t), c, accounts); codes[""] != accounts {
				t.Errorf("a minute later, the numbers of reads by error code are %v, want %d successes", codes, accounts)
			}
		})
	}
}

// blankBody is a body of 64 MiB of white space. n is the number of bytes that have been read.
type blankBody struct{ n int }

func (b *blankBody) Read(p []byte) (int, error) {
	if b.n >= 64<<20 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = ' '
	}
	b.n += len(p)
	return len(p), nil
}

func (b *blankBody) Close() error { return nil }

// TestLargeBodyUsesLittleMemory checks how the client reads a body of 64 MiB. It must read at most 2 × Config.MaxBody bytes and
// allocate at most 12 × Config.MaxBody bytes.
func TestLargeBodyUsesLittleMemory(t *testing.T) {
	const limit = 1 << 20
	for _, status := range []int{200, 400, 500} {
		body := &blankBody{}
		v := &scripted{answer: func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, ContentLength: -1, Body: body}, nil
		}}
		c := v.client(t, 1, func(cfg *Config) { cfg.MaxBody = limit })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.Book(t.Context(), upstream.Call{}, "101", 20)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Fatal("no error")
		}
		if read := body.n; read > 2*limit {
			t.Errorf("with the status %d and the limit %d, the client read %d bytes", status, limit, read)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 12*limit {
			t.Errorf("with the status %d and the limit %d, the client allocated %d bytes", status, limit, grown)
		}
	}
}
