package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// speak sends text over a new connection and reads one response. The connection stays open until the test ends.
func (s *service) speak(t testing.TB, text string) (status int, header http.Header, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Close {
		resp.Header.Set("Connection", "close") // net/http removes this header
	}
	return resp.StatusCode, resp.Header, string(b)
}

const rawPost = "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"

// TestSlowBodies checks the response to a client that sends only a part of a body.
func TestSlowBodies(t *testing.T) {
	s := start(t, "--body-timeout=50ms")
	status, header, body := s.speak(t, fmt.Sprintf(rawPost, 1000, `{"query":"{ canary`))
	if status != http.StatusRequestTimeout || header.Get("Connection") != "close" || !strings.Contains(body, "the body took longer than 50ms") || strings.Contains(body, "canary") {
		t.Errorf("%d %v %s", status, header, body)
	}
	if s.HTTP.ReadHeaderTimeout == 0 || s.HTTP.ReadTimeout != 50*time.Millisecond || s.HTTP.IdleTimeout == 0 {
		t.Error("a client may take all the time in the world")
	}
}

func TestLargeHeaders(t *testing.T) {
	s := start(t, "--max-headers=8KiB")
	long := strings.Repeat("x", 16<<10)
	for name, request := range map[string]string{
		"a header": "GET /graphql HTTP/1.1\r\nHost: localhost\r\nX-Long: " + long + "\r\n\r\n",
		"a URL":    "GET /graphql?query=" + long + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		if status, _, body := s.speak(t, request); status != http.StatusRequestHeaderFieldsTooLarge || strings.Contains(body, "xx") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// TestLargeBodies checks that the service refuses bodies of 10 MiB, and releases their memory.
func TestLargeBodies(t *testing.T) {
	s := start(t)
	body := `{"query":"{ __typename }","x":"` + strings.Repeat("x", 10<<20) + `"}`
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // the second collection empties the sync.Pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := s.request(t, body, anonymous)
			if i%2 == 0 {
				r.ContentLength = -1
			}
			resp, err := s.client.Do(r)
			if err != nil {
				return // the service closed the connection during the upload, which is also correct
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%d", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	s.client.CloseIdleConnections()
	eventually(t, "the bodies are released", func() bool { return heap() <= before+8<<20 }) // waits, because the connections end in the background
	wantJSON(t, "afterwards", s.ask(t, `{ __typename }`, nil, anonymous), `{"__typename":"Query"}`)
}

func TestConfiguredLimits(t *testing.T) {
	s := start(t, "--limit-aliases=1", "--limit-cost=80")
	for query, says := range map[string]string{
		`{ a: __typename b: __typename }`:                                                 "aliases",
		`{ tokenPrices(tokenIds: ["1"]) { price } spreads(tokenIds: ["1"]) { bestBid } }`: "at most 80",
	} {
		_, errors := s.query(t, query, nil, anonymous)
		if wantErrors(t, errors, " BAD_USER_INPUT"); len(errors) == 1 && !strings.Contains(errors[0].Message, says) {
			t.Errorf("%s: %s", query, errors[0].Message)
		}
	}
}
