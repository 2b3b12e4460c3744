package generic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

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
