package e2e

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/web"
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

// TestForeignHostNamesAreRefused checks that the service refuses foreign host names on loopback and with --hosts. With --hosts=*,
// the service must accept these names. A web page could send requests with a foreign host name by DNS rebinding.
func TestForeignHostNamesAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want map[string]int // expected status by host name
	}{
		{"on loopback", nil, map[string]int{"": 200, "localhost": 200, "evil.example": 403, "odds.example": 403}},
		{"on loopback with a name", []string{"--hosts=odds.example"}, map[string]int{"": 200, "localhost": 200, "evil.example": 403, "odds.example": 200}},
		{"on loopback with any name", []string{"--hosts=*"}, map[string]int{"": 200, "evil.example": 200}},
		{"on every interface", []string{"--listen=:0"}, map[string]int{"": 200, "evil.example": 200}},
		{"on every interface with a name", []string{"--listen=:0", "--hosts=odds.example"}, map[string]int{"": 200, "evil.example": 403, "odds.example": 200}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, test.args...)
			_, port, _ := net.SplitHostPort(s.Addr().String())
			for host, want := range test.want {
				for _, path := range []string{"/graphql", "/healthz"} {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+port+path, strings.NewReader(`{"query":"{ __typename }"}`))
					if err != nil {
						t.Fatal(err)
					}
					if path == "/healthz" {
						r.Method = http.MethodGet
					}
					r.Header.Set("Content-Type", "application/json")
					if host != "" {
						r.Host = host + ":" + port
					}
					if resp := s.do(t, r); resp.status != want {
						t.Errorf("%s with the host %q: got status %d, want %d: %s", path, host, resp.status, want, resp.body)
					}
				}
			}
		})
	}
}

// TestPathPrefix checks that the pages work behind a proxy that removes a prefix of the path: all addresses in the pages and in
// redirects are relative, and so are the addresses in the scripts of the built pages.
func TestPathPrefix(t *testing.T) {
	s := start(t)
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.StripPrefix("/odds", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}))
	defer proxy.Close()
	get := func(at string) (body string, final *url.URL) {
		resp, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got the status %s and the error %v, want 200", at, resp.Status, err)
		}
		return string(text), resp.Request.URL
	}
	for _, page := range []string{"/odds/", "/odds/live", "/odds/plain", "/odds/live/", "/odds/live/market/a%20b/1"} {
		html, final := get(proxy.URL + page)
		links := regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(html, -1)
		if len(links) < 3 || strings.HasPrefix(page, "/odds/live") && final.Path != "/odds/live" {
			t.Errorf("%s: got the page of %s with the links %v", page, final, links)
		}
		for _, link := range links {
			to, err := final.Parse(link[1])
			if err != nil {
				t.Fatal(err)
			}
			get(to.String())
		}
	}
	resp, err := http.Post(proxy.URL+"/odds/graphql", "application/json", strings.NewReader(`{"query":"{ __typename }"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("a query through the proxy: %v %v", resp, err)
	}
	_ = resp.Body.Close()

	absolute := regexp.MustCompile("[\"'`](?:/graphql|/live|/assets/|/demo/control|/schema\\.graphql)\\b")
	for _, pages := range []fs.FS{web.Built(), web.Plain()} {
		err := fs.WalkDir(pages, ".", func(name string, _ fs.DirEntry, err error) error {
			if ext := path.Ext(name); err != nil || ext != ".js" && ext != ".html" && ext != ".css" {
				return err
			}
			text, err := fs.ReadFile(pages, name)
			if found := absolute.FindAllString(string(text), -1); found != nil {
				t.Errorf("%s has the absolute addresses %v", name, found)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestSlowBodies checks the response to a client that sends only a part of a body.
func TestSlowBodies(t *testing.T) {
	s := openRigged(t, startTime, nil)
	if s.HTTP.ReadHeaderTimeout == 0 || s.HTTP.ReadTimeout != 10*time.Second || s.HTTP.IdleTimeout == 0 {
		t.Errorf("the timeouts are %v for headers, %v for requests and %v for idle connections, want 10s for requests and none of them 0",
			s.HTTP.ReadHeaderTimeout, s.HTTP.ReadTimeout, s.HTTP.IdleTimeout)
	}
	s.HTTP.ReadTimeout = 50 * time.Millisecond
	s.serveUntilEnd(t)
	reader, writer := io.Pipe()
	defer writer.Close()
	r := s.request(t, "", anonymous)
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"query":"{ canary`), reader)), -1
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if body := string(b); err != nil || resp.StatusCode != http.StatusRequestTimeout || !resp.Close || !strings.Contains(body, "the body took longer than 10s") || strings.Contains(body, "canary") {
		t.Errorf("got status %s, close %v, body %s and error %v; want status 408, close true and the reason", resp.Status, resp.Close, body, err)
	}
}
