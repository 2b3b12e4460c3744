package generic

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

// newTLSTransport returns the client's default transport, which also trusts the certificate of the test server s.
func newTLSTransport(t *testing.T, s *httptest.Server) *http.Transport {
	t.Helper()
	transport := rest.NewTransport()
	transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	transport.TLSClientConfig.NextProtos = nil
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

const aBook = `{"bids":[{"price":"0.4","size":"1"}],"asks":[]}`

// TestFaultsOverHTTP2 reads a book over HTTP/2 during each fault and after the fault. No fault closes the connection, so all calls
// must use one connection.
func TestFaultsOverHTTP2(t *testing.T) {
	html := answerWith(429, "text/html", "<html>slow down</html>")
	for _, tt := range []struct {
		name  string
		fault http.HandlerFunc
		want  string // the text that retryAfterOf returns for the error
		calls int64
		// timeout is the client's timeout. It leaves time for a TLS handshake on a slow machine.
		timeout time.Duration
	}{
		{name: "429 as HTML", fault: html, want: "RATE_LIMITED 125ms", calls: 1},
		{name: "429 as HTML with seconds", fault: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			html(w, r)
		}, want: "RATE_LIMITED 7s", calls: 1},
		{name: "503", fault: answerWith(503, "text/html", "<html>"), want: "UPSTREAM_UNAVAILABLE 125ms", calls: 3},
		{name: "a stream that is reset before its answer", fault: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: "UPSTREAM_UNAVAILABLE 125ms", calls: 3},
		{name: "a stream that is reset in its body", fault: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, aBook[:20])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, want: "UPSTREAM_UNAVAILABLE 125ms", calls: 3},
		{name: "a body that is cut off", fault: answer(aBook[:20]), want: "UPSTREAM_BAD_RESPONSE 0s", calls: 3},
		{name: "hang", fault: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, want: "UPSTREAM_TIMEOUT 125ms", calls: 1, timeout: 2 * time.Second},
		{name: "hang in the body", fault: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, aBook[:20])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, want: "UPSTREAM_TIMEOUT 125ms", calls: 1, timeout: 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var received, connections atomic.Int64
			var healthy atomic.Bool
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				received.Add(1)
				if r.ProtoMajor != 2 {
					t.Errorf("the venue got a request over %s", r.Proto)
				}
				if healthy.Load() {
					answer(aBook)(w, r)
					return
				}
				tt.fault(w, r)
			}))
			s.EnableHTTP2 = true
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			s.StartTLS()
			t.Cleanup(s.Close)
			clock := tool.NewClock(time.Now())
			c := newClient(t, s.URL, func(cfg *Config) {
				cfg.Transport, cfg.Retries, cfg.Clock, cfg.Rand = newTLSTransport(t, s), 2, clock, func() float64 { return 0 }
				if tt.timeout > 0 {
					cfg.Timeout = tt.timeout
				}
			})
			p := &permit{}
			ctx := reqctx.WithPermit(t.Context(), p)
			if _, err := c.Book(ctx, "101", 20); retryAfterOf(err) != tt.want {
				t.Errorf("during the fault, Book returned the error %v (%s), want %s", err, retryAfterOf(err), tt.want)
			}
			if received.Load() != tt.calls || int64(p.admitted) != tt.calls {
				t.Errorf("the permit admitted %d calls and the venue received %d, want %d", p.admitted, received.Load(), tt.calls)
			}
			healthy.Store(true)
			clock.Advance(time.Minute)
			if b, err := c.Book(ctx, "101", 20); err != nil || b.Bids.Len() != 1 {
				t.Errorf("after the fault, Book returned %v and the error %v", b, err)
			}
			if n := connections.Load(); n != 1 {
				t.Errorf("the client opened %d connections, want 1", n)
			}
		})
	}
}

// interruptingServer is an HTTP/2 server. It interrupts the first connections during a call and serves all later connections. The
// field left is the number of connections that it still has to interrupt, and received is the number of calls.
type interruptingServer struct {
	net.Listener
	tls            func() *tls.Config
	end            func(f *http2.Framer, id uint32)
	left, received atomic.Int64
	ended          sync.WaitGroup
}

// Accept interrupts the first connections. It returns the later connections to the HTTP server.
func (v *interruptingServer) Accept() (net.Conn, error) {
	for {
		conn, err := v.Listener.Accept()
		if err != nil || v.left.Add(-1) < 0 {
			return conn, err
		}
		v.ended.Go(func() { v.interrupt(tls.Server(conn, v.tls())) })
	}
}

// ServeHTTP responds to the calls on connections that Accept has returned.
func (v *interruptingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.received.Add(1)
	answer(aBook)(w, r)
}

// interrupt reads the first call on a connection and then calls end, which ends the call or the connection.
func (v *interruptingServer) interrupt(conn *tls.Conn) {
	defer conn.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		if h, ok := frame.(*http2.HeadersFrame); ok {
			v.received.Add(1)
			v.end(f, h.StreamID)
			return
		}
	}
}

// TestHTTP2ConnectionsThatEnd checks how often the client sends a call if the venue ends the stream or the connection. The client
// must ask the rate limit before every attempt.
func TestHTTP2ConnectionsThatEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(f *http2.Framer, id uint32)
		// retried is true if the client must retry the call.
		retried bool
	}{
		{"the stream is refused", func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, true},
		{"the stream is cancelled", func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeCancel) }, true},
		{"the stream is reset with ENHANCE_YOUR_CALM", func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeEnhanceYourCalm) }, false},
		{"GOAWAY that excludes the call", func(f *http2.Framer, _ uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) }, true},
		{"GOAWAY that includes the call", func(f *http2.Framer, id uint32) { _ = f.WriteGoAway(id, http2.ErrCodeNo, []byte("maintenance")) }, true},
		{"GOAWAY with ENHANCE_YOUR_CALM", func(f *http2.Framer, id uint32) { _ = f.WriteGoAway(id, http2.ErrCodeEnhanceYourCalm, []byte("calm")) }, false},
		{"closed without a frame", func(*http2.Framer, uint32) {}, true},
	} {
		// ends is the number of connections that the venue interrupts. calls is the expected number of calls if the client must retry.
		for ends, calls := range map[int64]int64{1: 2, 3: 3} {
			t.Run(fmt.Sprintf("%s, %d times", tt.name, ends), func(t *testing.T) {
				v := &interruptingServer{end: tt.end}
				v.left.Store(ends)
				s := httptest.NewUnstartedServer(v)
				v.Listener, v.tls = s.Listener, func() *tls.Config { return s.TLS }
				s.Listener, s.EnableHTTP2 = v, true
				s.StartTLS()
				t.Cleanup(func() {
					s.Close()
					v.ended.Wait()
				})
				c := newClient(t, s.URL, func(cfg *Config) {
					cfg.Transport, cfg.Retries, cfg.Rand = newTLSTransport(t, s), 2, func() float64 { return 0 }
				})
				p := &permit{}
				_, err := c.Book(reqctx.WithPermit(t.Context(), p), "101", 20)
				want := market.CodeUpstreamUnavailable
				if !tt.retried {
					calls = 1
				} else if ends == 1 {
					want = ""
				}
				if err != nil && market.CodeOf(err) != want || err == nil && want != "" {
					t.Errorf("Book returned the error %v, want the code %q", err, want)
				}
				if v.received.Load() != calls || int64(p.admitted) != calls {
					t.Errorf("the permit admitted %d calls and the venue received %d, want %d: %v", p.admitted, v.received.Load(), calls, err)
				}
			})
		}
	}
}
