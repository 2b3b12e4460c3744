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

	"golang.org/x/net/http2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
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
				_, err := c.Book(t.Context(), upstream.Call{Permit: p}, "101", 20)
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
