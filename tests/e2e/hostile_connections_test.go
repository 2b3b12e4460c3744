//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

type wire struct {
	net.Conn
	r *bufio.Reader
}

func (p *target) connect(t testing.TB) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &wire{conn, bufio.NewReader(conn)}
}

// readResponse reads a response. Status 0 means that the service closed the connection without a valid response.
func (w *wire) readResponse(t testing.TB, p *target) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		w.wantClosed(t)
		return 0, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	p.wantNoInternals(t, string(b))
	return resp.StatusCode, string(b)
}

// wantClosed waits until the program closes the connection.
func (w *wire) wantClosed(t testing.TB) {
	t.Helper()
	_, err := io.Copy(io.Discard, w.r)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the connection stays open")
	}
}

// connectionAttacks returns attacks that violate HTTP or misuse connections.
func connectionAttacks() []attack {
	const typename = `{"query":"{ __typename }"}`
	post := func(headers, body string) string {
		return "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body
	}
	length := func(n any) string { return fmt.Sprintf("Content-Length: %v\r\n", n) }
	var out []attack
	// add adds an attack that sends a text over a new connection. The service must respond with the given status and close the
	// connection. If the status is 0, the service must close the connection without a response.
	add := func(name, text string, status int) {
		out = append(out, attack{name: "HTTP: " + name, run: func(t *testing.T, p *target) {
			w := p.connect(t)
			go func() { _, _ = io.WriteString(w, text) }()
			if got, body := w.readResponse(t, p); got != status {
				t.Errorf("got status %d, want %d: %.300s", got, status, body)
			}
			w.wantClosed(t)
		}})
	}
	add("noise", strings.Repeat("\x00\xff\x16\x03", 10_000)+"\r\n\r\n", 400)
	add("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("a", 500)+"\r\n\r\n", 400)
	add("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400)
	add("an invalid method", "GE T /graphql HTTP/1.1\r\nHost: localhost\r\n\r\n", 400)
	add("an unknown version of HTTP", "GET /graphql HTTP/9.9\r\nHost: localhost\r\n\r\n", 505)
	add("no host", "GET /healthz HTTP/1.1\r\n\r\n", 400)
	add("two hosts", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400)
	add("a header with a NUL byte", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: \x00\r\n\r\n", 400)
	add("a header without a name", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n: a\r\n\r\n", 400)
	add("a space before the colon", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\n", 400)
	add("30,000 headers", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+strings.Repeat("A:b\r\n", 30_000)+"\r\n", 431)
	add("a first line without an end", "GET /"+strings.Repeat("a", 1<<20), 431)
	add("two values of Content-Length", post(length(26)+length(27), typename), 400)
	add("a negative Content-Length", post(length(-1), typename), 400)
	add("a Content-Length that overflows", post(length("99999999999999999999"), typename), 400)
	add("a Content-Length of a terabyte", post(length(1<<40), typename), 413)
	add("a Content-Length and chunks", post(length(26)+"Transfer-Encoding: chunked\r\nConnection: close\r\n", "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"), 400)
	add("an unsupported transfer coding", post("Transfer-Encoding: gzip, chunked\r\n", typename), 501)
	add("chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 501)
	add("a chunk with an invalid length", post("Transfer-Encoding: chunked\r\n", "zz\r\n"), 400)
	add("a chunk with a length that overflows", post("Transfer-Encoding: chunked\r\n", strings.Repeat("f", 40)+"\r\n"), 400)
	add("chunks with long extensions", post("Transfer-Encoding: chunked\r\n", strings.Repeat("1;"+strings.Repeat("a", 4000)+"\r\n \r\n", 1000)), 400)
	add("chunks without an end", post("Transfer-Encoding: chunked\r\n", strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 100)), 413)
	add("an unknown expectation", post("Expect: the unexpected\r\n"+length(26), typename), 417)
	add("a body that is longer than its Content-Length", post(length(10), typename+"\r\n\r\n"), 400)
	add("HTTP/1.0", "POST /graphql HTTP/1.0\r\nContent-Type: application/json\r\n"+length(26)+"\r\n"+typename, 200)
	out = append(out,
		attack{name: "HTTP: a large body with Expect: 100-continue", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_, _ = io.WriteString(w, post("Expect: 100-continue\r\n"+length(10<<20), ""))
			if status, body := w.readResponse(t, p); status != http.StatusRequestEntityTooLarge {
				t.Errorf("got status %d, want 413: %s", status, body)
			}
			w.wantClosed(t)
		}},
		attack{name: "HTTP: a body that ends early", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_, _ = io.WriteString(w, post(length(1000), typename))
			_ = w.Conn.(*net.TCPConn).CloseWrite()
			if status, body := w.readResponse(t, p); status != http.StatusBadRequest && status != 0 {
				t.Errorf("got status %d, want 400 or a closed connection: %s", status, body)
			}
			w.wantClosed(t)
		}},
		attack{name: "HTTP: a client that closes its write side after the request", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_, _ = io.WriteString(w, post(length(26), typename))
			_ = w.Conn.(*net.TCPConn).CloseWrite()
			// To the service, this looks like a client that has disconnected, so the service may cancel the request.
			if resp, err := http.ReadResponse(w.r, nil); err == nil {
				_ = resp.Body.Close()
			}
			w.wantClosed(t)
		}},
		attack{name: "HTTP: 200 connections that are reset during a request", run: func(t *testing.T, p *target) {
			for i := range 200 {
				w := p.connect(t)
				text := post(length(1<<17), strings.Repeat(" ", 1000*(i%10)))
				_, _ = io.WriteString(w, text[:len(text)-i%len(typename)])
				_ = w.Conn.(*net.TCPConn).SetLinger(0)
				_ = w.Close()
			}
		}},
		attack{name: "HTTP: 500 connections without a request", run: func(t *testing.T, p *target) {
			for range 500 {
				w := p.connect(t)
				defer w.Close()
			}
		}},
		attack{name: "HTTP: 500 pipelined requests", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			go func() { _, _ = io.WriteString(w, strings.Repeat(post(length(26), typename), 500)) }()
			for i := range 500 {
				if status, body := w.readResponse(t, p); status != http.StatusOK || body != `{"data":{"__typename":"Query"}}` {
					t.Fatalf("response %d has status %d and the body %s", i, status, body)
				}
			}
		}},
		attack{name: "HTTP: a client that never reads", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_ = w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			_ = w.SetWriteDeadline(time.Now().Add(2 * time.Second))
			request := "GET /schema.graphql HTTP/1.1\r\nHost: localhost\r\n\r\n"
			_, _ = io.WriteString(w, strings.Repeat(request, 20_000)) // ends at the deadline, because the service stops reading
			_ = w.Close()
		}},
		attack{name: "HTTP: 50 event streams that nobody reads", run: func(t *testing.T, p *target) {
			const body = `{"query":"subscription{streamStatusChanged{state}}"}`
			for range 50 {
				w := p.connect(t)
				defer w.Close()
				_, _ = io.WriteString(w, post("Accept: text/event-stream\r\n"+length(len(body)), body))
			}
		}},
		attack{name: "HTTP: an event stream for an invalid document", run: func(t *testing.T, p *target) {
			got := p.post(t, `{"query":"subscription{`+wrapText(100, "a{", "a", "}")+`}"}`, "Accept", "text/event-stream")
			if got.status != http.StatusOK || !strings.Contains(got.body, badInputCode) || !strings.HasSuffix(got.body, "event: complete\ndata:\n\n") {
				t.Errorf("got %+v, want an error with the code %s", got, badInputCode)
			}
		}},
	)
	return out
}

// slowConnections maps a description to a slow connection.
type slowConnections map[string]*slowConnection

type slowConnection struct {
	*wire
	p *target
	// status is the expected status of the response. If status is 0, the response may be missing or have any 4xx status.
	status  int
	stop    chan struct{}
	dripped sync.WaitGroup
}

// openSlowConnections opens connections that send very slowly. The test runs other attacks until these connections time out.
func openSlowConnections(t *testing.T, p *target) slowConnections {
	out := slowConnections{}
	add := func(name, first, drip string, status int) {
		c := &slowConnection{wire: p.connect(t), p: p, status: status, stop: make(chan struct{})}
		_ = c.SetDeadline(time.Time{})
		_, _ = io.WriteString(c, first)
		out[name] = c
		c.dripped.Go(func() {
			for drip != "" {
				select {
				case <-c.stop:
					return
				case <-time.After(300 * time.Millisecond):
				}
				if _, err := io.WriteString(c, drip); err != nil {
					return
				}
			}
		})
		t.Cleanup(func() {
			close(c.stop)
			c.dripped.Wait()
		})
	}
	const begin = "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	const upgrade = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n"
	add("nothing", "", "", 0)
	add("headers without an end", begin, "X-A: a\r\n", 0)
	add("a header byte by byte", begin+"X-A: ", "a", 0)
	add("a first line byte by byte", "POST /", "a", 0)
	add("a body byte by byte", begin+"Content-Length: 1000\r\n\r\n", " ", http.StatusRequestTimeout)
	add("chunks byte by byte", begin+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", http.StatusRequestTimeout)
	add("a body that never comes", begin+"Content-Length: 1000\r\n\r\n{", "", http.StatusRequestTimeout)
	add("the body of a request for an event stream byte by byte", begin+"Accept: text/event-stream\r\nContent-Length: 1000\r\n\r\n", " ", http.StatusRequestTimeout)
	add("an upgrade byte by byte", upgrade, "X-A: a\r\n", 0)
	add("a WebSocket without messages", upgrade+"\r\n", "", http.StatusSwitchingProtocols)
	add("a WebSocket that sends its first message byte by byte", upgrade+"\r\n"+string(frameHead(true, 0, 1, true, 1000)), " ", http.StatusSwitchingProtocols)
	return out
}

// wait waits until the service has closed all connections, and checks the responses.
func (s slowConnections) wait(t *testing.T) {
	deadline := time.Now().Add(patience)
	for name, c := range s {
		t.Run("slow connection: "+name, func(t *testing.T) {
			_ = c.SetReadDeadline(deadline)
			resp, err := http.ReadResponse(c.r, nil)
			switch {
			case err != nil && c.status != 0:
				t.Errorf("got no response but the error %v, want status %d", err, c.status)
			case err != nil:
			case resp.StatusCode == http.StatusSwitchingProtocols && c.status == resp.StatusCode:
				if code := c.closeCode(t); code != 4408 {
					t.Errorf("close code %d, want 4408", code)
				}
			case resp.StatusCode != c.status && (c.status != 0 || resp.StatusCode/100 != 4):
				t.Errorf("got status %d, want %d (0 stands for any 4xx)", resp.StatusCode, c.status)
			}
			c.wantClosed(t)
		})
	}
}
