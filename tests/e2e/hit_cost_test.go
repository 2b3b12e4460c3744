//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"

	"oddsgraph/httpapi"
	"oddsgraph/tests/tool"
)

// dialogue sends one request repeatedly over its own connection. Sending and receiving allocate nothing.
type dialogue struct {
	net.Conn
	request, response []byte
	bytes             int // length of the body of the last response
}

// startDialogue connects to a server, sends the request and reads the response. The parameter header alternates between names and
// values.
func startDialogue(t testing.TB, addr, body string, header ...string) *dialogue {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", httpapi.PathGraphQL, len(body))
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", header[i], header[i+1])
	}
	fmt.Fprintf(&b, "\r\n%s", body)
	d := &dialogue{Conn: c, request: b.Bytes(), response: make([]byte, 64<<10)}
	d.exchange(t)
	return d
}

var (
	blankLine     = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// exchange sends the request and reads the response. The response must have status 200 and a Content-Length.
func (d *dialogue) exchange(t testing.TB) {
	if _, err := d.Write(d.request); err != nil {
		t.Fatal(err)
	}
	got, whole := 0, -1
	for got != whole {
		n, err := d.Read(d.response[got:])
		if err != nil {
			t.Fatal(err)
		}
		got += n
		head := bytes.Index(d.response[:got], blankLine)
		if whole >= 0 || head < 0 {
			continue
		}
		at := bytes.Index(d.response[:head], contentLength)
		if at < 0 || !bytes.HasPrefix(d.response, []byte("HTTP/1.1 200 ")) {
			t.Fatalf("got a response without status 200 or without a Content-Length: %s", d.response[:got])
		}
		whole = 0
		for _, c := range d.response[at+len(contentLength) : head] {
			if c < '0' || c > '9' {
				break
			}
			whole = 10*whole + int(c-'0')
		}
		d.bytes = whole
		whole += head + len(blankLine)
	}
}

// hits are two requests that the response cache answers: one without credentials and one with credentials.
var hits = []struct {
	name, body string
	header     []string
}{
	{"typename", `{"query":"{ __typename }"}`, nil},
	{"portfolio", portfolioBody, []string{httpapi.CredentialsHeader, keyOf50}},
}

// startBareServer starts a net/http server whose handler reads the request and writes size bytes. It returns the server's address.
func startBareServer(t testing.TB, size int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	body, length := bytes.Repeat([]byte("x"), size), []string{strconv.Itoa(size)}
	contentType, buf := []string{"application/json"}, make([]byte, 4<<10)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for err := error(nil); err == nil; {
			_, err = r.Body.Read(buf)
		}
		w.Header()["Content-Type"], w.Header()["Content-Length"] = contentType, length
		_, _ = w.Write(body)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().String()
}

// TestHitAllocations checks that a hit in the response cache takes at most 14 allocations more than a bare net/http handler.
func TestHitAllocations(t *testing.T) {
	if tool.Unraced(t) {
		return
	}
	s := start(t)
	for _, hit := range hits {
		ours := startDialogue(t, s.Addr().String(), hit.body, hit.header...)
		bare := startDialogue(t, startBareServer(t, ours.bytes), hit.body, hit.header...)
		got, bareAllocs := fewestAllocs(func() { ours.exchange(t) }), fewestAllocs(func() { bare.exchange(t) })
		t.Logf("%s: a hit takes %.0f allocations, and a bare handler takes %.0f", hit.name, got, bareAllocs)
		if got > bareAllocs+14 { // the difference is usually 13, but the count of net/http varies by one
			t.Errorf("%s: a hit takes %.0f allocations, want at most 14 more than the %.0f of a bare handler", hit.name, got, bareAllocs)
		}
	}
}

// fewestAllocs returns the number of allocations of a call. Other goroutines of the service allocate too, so fewestAllocs returns
// the smallest of several counts.
func fewestAllocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}

// BenchmarkHit compares hits in the response cache with a bare handler. cpu-ns/op is the CPU time of the whole process, including
// the client.
func BenchmarkHit(b *testing.B) {
	s := start(b, "--log-level=error")
	for _, hit := range hits {
		ours := startDialogue(b, s.Addr().String(), hit.body, hit.header...)
		for name, d := range map[string]*dialogue{"oddsgraph": ours, "bare": startDialogue(b, startBareServer(b, ours.bytes), hit.body, hit.header...)} {
			b.Run(hit.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					d.exchange(b)
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
