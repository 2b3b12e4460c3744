package rest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

func TestConnectionsAreBounded(t *testing.T) {
	var open, most atomic.Int32
	release := make(chan struct{})
	const calls = 2 * maxConns
	opened, closed := make(chan struct{}, 2*calls), make(chan struct{}, 2*calls)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-release }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if n := open.Add(1); n > most.Load() {
				most.Store(n)
			}
			opened <- struct{}{}
		case http.StateClosed:
			open.Add(-1)
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	for range maxConns { // the other calls wait for a connection
		<-opened
	}
	close(release)
	wg.Wait()
	if int(most.Load()) > maxConns {
		t.Errorf("%d connections were open, want at most %d", most.Load(), maxConns)
	}
	for range maxConns - maxIdleConns { // the transport closes all but maxIdleConns connections
		select {
		case <-closed:
		case <-time.After(30 * time.Second):
			t.Fatalf("%d connections stay open, want %d", open.Load(), maxIdleConns)
		}
	}
}

// TestEmptyBodyIsNotProbed checks a request without a body. net/http must neither probe whether the body is empty nor copy the
// body.
func TestEmptyBodyIsNotProbed(t *testing.T) {
	c, err := New(Config{BaseURL: "http://venue.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	build := func() *http.Request { return c.newRequest(t.Context(), &Request{}, nil, upstream.TraceContext{}) }
	var sent recordingConn
	w := bufio.NewWriter(&sent)
	if err := errors.Join(build().Write(w), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if sent.copied {
		t.Error("net/http called ReadFrom, for which it allocates a buffer")
	}
	if _, body, _ := strings.Cut(sent.String(), "\r\n\r\n"); body != "" || strings.Contains(sent.String(), "Transfer-Encoding") || strings.Contains(sent.String(), "Content-Length") {
		t.Errorf("the sent request is %q, want no body, Transfer-Encoding or Content-Length", sent.String())
	}
	allocations := func(encoding []string) float64 {
		return testing.AllocsPerRun(20, func() {
			r := build()
			r.TransferEncoding = encoding
			_ = r.Write(io.Discard)
		})
	}
	if unprobed, probed := allocations(build().TransferEncoding), allocations(nil); unprobed >= probed {
		t.Errorf("a request takes %v allocations, want fewer than the %v of a request whose body net/http probes", unprobed, probed)
	}
}

// recordingConn records a request. It has the method ReadFrom, because a TCP connection has this method too.
type recordingConn struct {
	strings.Builder
	copied bool
}

// ReadFrom implements io.ReaderFrom.
func (c *recordingConn) ReadFrom(r io.Reader) (int64, error) {
	c.copied = true
	return io.Copy(&c.Builder, r)
}

func TestBackoffsAreBounded(t *testing.T) {
	b := newBackoffs(market.SystemClock{}, func() float64 { return 1 })
	failure := newError(upstream.EndpointPrices, market.CodeUpstreamUnavailable, &CallFailure{})
	for i := range maxBackoffs + 10 {
		_ = b.Record(upstream.EndpointPrices, failure, strconv.Itoa(i))
	}
	if n := b.keys.Len(); n != maxBackoffs {
		t.Errorf("%d keys are remembered, want %d", n, maxBackoffs)
	}
}
