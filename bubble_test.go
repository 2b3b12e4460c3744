package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// startInBubble is startAt in a bubble of synctest. Client, service and venue call each other directly, so time passes only when
// none of them can go on: answers that do not wait for anything arrive together, however busy the machine is.
func startInBubble(t *testing.T, now time.Time, args ...string) *service {
	t.Helper()
	var venue direct
	s := openRigged(t, now, func(w *wiring) { afterNobody(w); w.client.Transport = &venue }, args...)
	venue.Handler = s.demo.http.Handler
	s.client.Transport = &direct{s.http.Handler}
	for _, l := range []*listener{s.listener, s.admin, s.demo.listener} {
		l.Listener = &mute{Listener: l.Listener, closed: make(chan struct{})}
	}
	s.serveUntilEnd(t)
	return s
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
	return w.Result(), nil
}

// mute is a listener that nobody connects to. Its Accept waits for nothing outside of a bubble.
type mute struct {
	net.Listener
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (m *mute) Accept() (net.Conn, error) {
	<-m.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (m *mute) Close() error {
	m.once.Do(func() { close(m.closed) })
	return m.Listener.Close()
}
