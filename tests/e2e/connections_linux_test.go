package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/web"
)

// TestIdleConnectionsOfOneAddress checks that one address can have at most 2,000 idle connections. Another client must still be
// able to connect.
func TestIdleConnectionsOfOneAddress(t *testing.T) {
	t.Setenv("GOMEMLIMIT", shippedMemory)
	venue := newWitness(t)
	p := &target{program: runBinary(t, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
	p.begin(t)
	other := p.startBystander(t)
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}} // 127.0.0.1 would count as a trusted proxy
	const attempts, most = 10_000, 2000
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	accepted := 0
	for range attempts {
		c, err := from.DialContext(t.Context(), "tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if len(open) == most {
			if !staysOpen(c, 5*time.Second) {
				_ = c.Close()
				continue
			}
			// The program closes a connection without a request after 10 s. On a busy machine, this makes room for new connections
			// during the test.
			open = slices.DeleteFunc(open, func(c net.Conn) bool { return !staysOpen(c, time.Millisecond) })
		}
		if open = append(open, c); len(open) > most {
			t.Fatalf("%d connections are open, want at most %d", len(open), most)
		}
		accepted++
	}
	m := p.scrape(t)
	// refused may exceed attempts-accepted, because the program may refuse a connection before it has counted the end of an earlier
	// connection.
	kept, refused := m.sum("oddsgraph_connections"), int(m.sum("oddsgraph_connections_refused_total"))
	if kept > most+10 || refused < attempts-accepted || refused > attempts-most {
		t.Errorf("%.0f connections are open, %d were refused, %d of %d were accepted", kept, refused, accepted, attempts)
	}
	from.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}
	for range 10 { // new connections of a probe and of another address
		if got := p.askAdmin(t, http.MethodGet, "/readyz"); got.status != http.StatusOK {
			t.Errorf("GET /readyz at the private address got %+v, want status 200", got)
		}
		c, err := from.DialContext(t.Context(), "tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		w := &wire{c, bufio.NewReader(c)}
		_, _ = io.WriteString(w, "GET /graphql?query={__typename} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if status, body := w.readResponse(t, p); status != http.StatusOK {
			t.Errorf("another address got status %d and the body %s, want 200", status, body)
		}
		_ = c.Close()
	}
	other.end(t)
}

// staysOpen reports whether a connection stays open for the given time. Nothing may arrive on the connection.
func staysOpen(c net.Conn, within time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(within))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// TestClientsThatDoNotReadPages checks that 600 connections whose clients read no responses do not block another client. On
// SIGTERM, the program must stop within its shutdown timeout.
func TestClientsThatDoNotReadPages(t *testing.T) {
	t.Setenv("GOMEMLIMIT", shippedMemory)
	venue := newWitness(t)
	p := &target{program: runBinary(t, buildProgram(t), append(venue.args(), "--hosts=a", "--shutdown-timeout=2s")...), venue: venue}
	p.begin(t)
	page := p.largestAsset(t)
	other := p.startBystander(t)
	asks := strings.Repeat(fmt.Sprintf("GET %s HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\n\r\n", page, carelessClient), 100)
	p.onConnections(t, 600, func(w *wire) { _, _ = io.WriteString(w, asks) })
	logged := p.requestCount()
	for quietTicks := 0; quietTicks < 20; quietTicks++ { // if no request is logged for a second, all connections are blocked by unread responses
		time.Sleep(50 * time.Millisecond)
		if count := p.requestCount(); count != logged {
			logged, quietTicks = count, 0
		}
	}
	other.end(t)
	p.terminate(t)
	p.wantExit(t, 0) // an error during the shutdown, such as a timeout, has another exit code
}

// requestCount returns how many requests the program has logged.
func (p *target) requestCount() int { return strings.Count(p.log.String(), `"msg":"request"`) }

// largestAsset returns the path of the largest uncompressed asset of the pages.
func (p *target) largestAsset(t *testing.T) (path string) {
	t.Helper()
	files, err := fs.ReadDir(web.Built(), "assets")
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for _, f := range files {
		if info, err := f.Info(); err == nil && !strings.HasSuffix(f.Name(), ".br") && !strings.HasSuffix(f.Name(), ".gz") && info.Size() > most {
			path, most = "/assets/"+f.Name(), info.Size()
		}
	}
	if most < 200<<10 {
		t.Fatalf("the largest asset is %q with %d bytes, want at least 200 KiB", path, most)
	}
	return path
}
