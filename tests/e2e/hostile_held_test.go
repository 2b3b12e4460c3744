//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// heldAttacks returns attacks that make the program buffer as many unfinished requests as possible.
func heldAttacks() []attack {
	const size, clients, perClient = 250 << 10, 20, 12
	long := strings.Repeat(" ", size-1)
	client := func(i int) string { return fmt.Sprintf("10.10.0.%d", i%clients) }
	// hold calls send for many clients. The function send starts a request that stops one byte before its end. The bodies of all
	// requests together exceed the program's limit. Of the requests that do not fit into the limit, the program must refuse at
	// least half. The function refused waits until the program ends a request, and reports whether the program refused the request.
	// The program's memory may grow by the limit, and by 48 KiB for each connection.
	hold := func(t *testing.T, p *target, send func(client string) *wire, refused func(w *wire) bool) {
		before := p.figures(t, true).Heap
		refusals := make(chan struct{}, clients*perClient)
		var all []*wire
		var g sync.WaitGroup
		for i := range clients * perClient {
			w := send(client(i))
			all = append(all, w)
			g.Go(func() {
				if refused(w) {
					refusals <- struct{}{}
				}
			})
		}
		const room, taken = 32 << 20, 240 << 10 // in bytes: room is the limit for all request bodies together, and taken is what the program reserves for each body
		timeout := time.After(patience)
		for range (clients*perClient - room/taken) / 2 {
			select {
			case <-refusals:
			case <-timeout:
				t.Fatalf("the program refused too few requests within %v", patience)
			}
		}
		held, most := p.figures(t, true).Heap-before, uint64(room+clients*perClient*(48<<10))
		if held > most && held < 1<<62 { // held is huge if the heap has shrunk, because the subtraction overflows
			t.Errorf("the program holds %d MiB, want at most %d MiB", held>>20, most>>20)
		}
		if testing.Verbose() {
			t.Logf("the program holds %d MiB of the %d MiB in all requests", int64(held)>>20, clients*perClient*size>>20)
		}
		p.post(t, p.normal, "X-Forwarded-For", client(0)).want(t, http.StatusOK, "", "") // a complete request still works
		for _, w := range all {
			_ = w.Close()
		}
		g.Wait()
	}
	return []attack{
		{name: "held: bodies that stop before their end", run: func(t *testing.T, p *target) {
			hold(t, p, func(client string) *wire {
				w := p.connect(t)
				_, _ = fmt.Fprintf(w, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", client, size)
				go func() { _, _ = io.WriteString(w, long) }() // ends when the connection is closed
				return w
			}, func(w *wire) bool {
				resp, err := http.ReadResponse(w.r, nil)
				if err != nil {
					return false
				}
				if resp.StatusCode == http.StatusRequestTimeout { // on a slow machine
					return false
				}
				if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !resp.Close {
					t.Errorf("a refused request got status %d and the header %v, want 503, Retry-After: 1 and a closed connection", resp.StatusCode, resp.Header)
				}
				return true
			})
		}},
		{name: "held: messages that stop before their end", run: func(t *testing.T, p *target) {
			hold(t, p, func(client string) *wire {
				w := p.upgrade(t, client, initMessage)
				go func() { _, _ = io.WriteString(w, string(frameHead(true, 0, opText, true, size))+long) }()
				return w
			}, func(w *wire) bool {
				for {
					op, payload, err := w.frame()
					if err != nil {
						return false
					}
					if op == opClose {
						switch string(payload) {
						case "\x03\xf5Too much is being sent": // 1013
							return true
						case "\x03\xf0A message took too long": // 1008, on a slow machine
						default:
							t.Errorf("the WebSocket was closed with %q", payload)
						}
						return false
					}
				}
			})
		}},
	}
}
