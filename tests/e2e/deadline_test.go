package e2e

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
)

// timedListener checks that each write on its connections has a write deadline.
type timedListener struct {
	net.Listener
	writes atomic.Int64
	// wrong is the last write that had no deadline, or a deadline more than app.WriteTimeout in the future.
	wrong atomic.Pointer[string]
}

// Accept implements net.Listener.
func (l *timedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &timedConn{Conn: c, l: l}, err
}

type timedConn struct {
	net.Conn
	l        *timedListener
	deadline atomic.Pointer[time.Time]
}

// SetWriteDeadline implements net.Conn.
func (c *timedConn) SetWriteDeadline(t time.Time) error {
	c.deadline.Store(&t)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *timedConn) SetDeadline(t time.Time) error {
	c.deadline.Store(&t)
	return c.Conn.SetDeadline(t)
}

// Write implements net.Conn.
func (c *timedConn) Write(b []byte) (int, error) {
	c.l.writes.Add(1)
	if deadline := c.deadline.Load(); deadline == nil || deadline.IsZero() || time.Until(*deadline) > app.WriteTimeout {
		text := fmt.Sprintf("%.60q", b)
		c.l.wrong.Store(&text)
	}
	return c.Conn.Write(b)
}

// TestEveryRouteHasAWriteDeadline checks that every response has a write deadline, even the responses of net/http itself. Without a
// deadline, a client that does not read would keep its connection forever.
func TestEveryRouteHasAWriteDeadline(t *testing.T) {
	s := openRigged(t, startTime, nil, "--demo-stream")
	front, admin, venue := &timedListener{Listener: s.Server.Listener}, &timedListener{Listener: s.Admin.Listener}, &timedListener{Listener: s.Demo.Listener}
	s.Server.Listener, s.Admin.Listener, s.Demo.Listener = front, admin, venue
	s.serveUntilEnd(t)
	const foreign = "Host: evil.example\r\n"
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	const typename = "/graphql?query=%7B__typename%7D"
	tag := s.get(t, typename).header.Get("ETag")
	for _, test := range []struct {
		listener     *timedListener
		method, path string
		header       string
		status       int
	}{
		{listener: front, method: "OPTIONS", path: "/graphql", status: 204},
		{listener: front, method: "OPTIONS", path: "/graphql", header: "Origin: http://localhost:1\r\nAccess-Control-Request-Method: POST\r\n", status: 204},
		{listener: front, method: "DELETE", path: "/graphql", status: 405},
		{listener: front, method: "GET", path: typename, status: 200},
		{listener: front, method: "GET", path: typename, header: "If-None-Match: " + tag + "\r\n", status: 304},
		{listener: front, method: "GET", path: "/graphql", header: foreign, status: 403},
		{listener: front, method: "GET", path: "/graphql", header: upgrade + "Origin: http://evil.example\r\n", status: 403},
		{listener: front, method: "GET", path: "/graphql/unknown", status: 200},
		{listener: front, method: "GET", path: "/", status: 200},
		{listener: front, method: "GET", path: "/assets/unknown", status: 404},
		{listener: front, method: "GET", path: "/schema.graphql", status: 200},
		{listener: front, method: "GET", path: "/healthz", status: 200},
		{listener: front, method: "GET", path: "/readyz", status: 200},
		{listener: front, method: "POST", path: "/healthz", status: 405},
		{listener: front, method: "OPTIONS", path: "*", status: 200},
		{listener: front, method: "GET", path: "/", header: "Host: two\r\n", status: 400},
		{listener: admin, method: "GET", path: "/metrics", status: 200},
		{listener: admin, method: "GET", path: "/healthz", status: 200},
		{listener: admin, method: "GET", path: "/missing", status: 404},
		{listener: admin, method: "GET", path: "/metrics", header: foreign, status: 403},
		{listener: venue, method: "GET", path: "/missing", status: 404},
		{listener: venue, method: "GET", path: "/__control/stats", header: foreign, status: 403},
		{listener: venue, method: "GET", path: "/__control", status: 404},
	} {
		header := test.header
		if !strings.Contains(header, foreign) {
			header += "Host: localhost\r\n"
		}
		test.listener.wrong.Store(nil)
		before := test.listener.writes.Load()
		status := rawStatus(t, test.listener.Addr().String(), test.method+" "+test.path+" HTTP/1.1\r\n"+header+"Connection: close\r\n\r\n")
		if status != test.status {
			t.Errorf("%s %s is answered with %d, want %d", test.method, test.path, status, test.status)
		}
		if wrong := test.listener.wrong.Load(); wrong != nil {
			t.Errorf("%s %s %q: the write of %s has no deadline, or the deadline is too far in the future", test.method, test.path, test.header, *wrong)
		}
		if test.listener.writes.Load() == before {
			t.Errorf("%s %s: the listener saw no write", test.method, test.path)
		}
	}
}

// rawStatus sends a raw request, reads until the connection closes, and returns the status code.
func rawStatus(t *testing.T, addr, request string) (status int) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(answer), "HTTP/1.1 %d ", &status); err != nil {
		t.Fatalf("the response %.200q has no status: %v", answer, err)
	}
	return status
}
