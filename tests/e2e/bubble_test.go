package e2e

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/stream"
)

// startInBubble is startAt in a bubble of synctest. Client, service and venue call each other directly, so time passes only when
// none of them can go on: answers that do not wait for anything arrive together, however busy the machine is.
func startInBubble(t *testing.T, now time.Time, args ...string) *service {
	t.Helper()
	var venue direct
	s := openRigged(t, now, func(w *app.Wiring) { afterNobody(w); w.Client.Transport = &venue }, args...)
	venue.Handler = s.Demo.HTTP.Handler
	s.mute()
	s.serveUntilEnd(t)
	return s
}

// startPiped is startInBubble with other wiring, where the service reaches the venue over connections, so that answers can break
// off and hang.
func startPiped(t testing.TB, now time.Time, rig func(*app.Wiring), args ...string) *service {
	t.Helper()
	var venue *pipes
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return venue.dial(ctx, network, address)
	}}
	s := openRigged(t, now, func(w *app.Wiring) { rig(w); w.Client.Transport = transport }, args...)
	s.mute()
	venue = s.Demo.Server.Listener.(*pipes)
	t.Cleanup(transport.CloseIdleConnections)
	s.serveUntilEnd(t)
	return s
}

// startOver is startInBubble over a venue of the test's own, by the clock of the bubble. Every stream is refused.
func startOver(t *testing.T, w *annals, args ...string) *service {
	t.Helper()
	args = append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"}, w.args(args...)...)
	s := openAt(t, market.SystemClock{}, func(rig *app.Wiring) {
		afterNobody(rig)
		rig.Client.Transport, rig.Stream.Dial = &direct{w.venue}, noStream{}
	}, args...)
	s.mute()
	s.serveUntilEnd(t)
	return s
}

// mute has a service called directly by its client.
func (s *service) mute() {
	s.client.Transport = &direct{s.HTTP.Handler}
	listeners := []*app.Server{s.Server, s.Admin}
	if s.Demo != nil {
		listeners = append(listeners, s.Demo.Server)
	}
	for _, l := range listeners {
		l.Listener = newPipes(l.Listener)
	}
}

// noStream is a dialer that opens no connection.
type noStream struct{}

// Dial implements stream.Dialer.
func (noStream) Dial(context.Context, string) (stream.Conn, error) {
	return nil, errors.New("the stream is refused")
}

// direct is a transport that calls a handler.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:1", r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, in)
	if err := r.Context().Err(); err != nil { // a client that is gone reads no response
		return nil, err
	}
	return w.Result(), nil
}

// pipes is a listener whose connections are pipes in this process. It waits for nothing outside of a bubble.
type pipes struct {
	net.Listener
	dialed chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes(l net.Listener) *pipes {
	return &pipes{Listener: l, dialed: make(chan net.Conn), closed: make(chan struct{})}
}

// dial connects to the listener.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.dialed <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}
