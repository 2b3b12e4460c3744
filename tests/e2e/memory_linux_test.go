package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oddsgraph/internal/demo"
)

// memory returns a value from /proc/PID/status in bytes. The name is VmRSS for the resident memory, or VmHWM for its peak.
func memory(t testing.TB, process *os.Process, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), name+":")
	kb, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// liveBytes collects the program's garbage and returns the bytes of its heap objects and stacks.
func liveBytes(t testing.TB, p *program) int {
	t.Helper()
	if got := p.askAdmin(t, http.MethodGet, "/debug/pprof/heap?gc=1"); got.status != http.StatusOK {
		t.Fatalf("the request to collect garbage got status %d, want 200: %.300s", got.status, got.body)
	}
	m := p.scrape(t)
	return int(m.sum("go_memstats_heap_alloc_bytes") + m.sum("go_memstats_stack_inuse_bytes"))
}

// TestMemoryOfSubscriptions limits the memory of a subscription, after a burst of events and when the subscription is idle. The
// program is built without the race detector, which would take several times as much memory.
func TestMemoryOfSubscriptions(t *testing.T) {
	t.Parallel() // the test mostly waits for pings
	exe := buildProgram(t)
	for _, test := range []struct {
		sockets, each int
		// These are limits in KiB for each subscription. live is for heap objects and stacks. resident is for the resident memory,
		// which also includes garbage and fragmentation.
		live, resident float64
	}{
		{1000, 1, 26, 40},
		{500, 10, 4, 10},
	} {
		t.Run(fmt.Sprintf("%d subscriptions on each socket", test.each), func(t *testing.T) {
			t.Parallel()
			venue := newWitness(t)
			p := runBinary(t, exe, append(venue.args(), "--client-connections=20000")...)
			p.venue = venue.venue
			l := &listeners{t: t, p: p, tokens: p.openTokens(test.each)}
			l.join(1)
			l.warm()
			each := func(bytes int) float64 { return float64(bytes) / float64(test.sockets*test.each) / 1024 }
			before, liveBefore := memory(t, p.process, "VmRSS"), liveBytes(t, p)
			l.join(test.sockets)
			l.burst(10)
			l.warm()
			burst := each(memory(t, p.process, "VmRSS") - before)
			l.await("pings", &l.pings, int64(l.clients*9/10)) // 9 pings for every 10 clients
			idle, live := each(memory(t, p.process, "VmRSS")-before), each(liveBytes(t, p)-liveBefore)
			t.Logf("each of %d subscriptions has %.1f KiB of heap and stacks; its resident memory is %.1f KiB after a burst and %.1f KiB when idle",
				test.sockets*test.each, live, burst, idle)
			if live > test.live {
				t.Errorf("a subscription has %.1f KiB of heap and stacks, want at most %.0f", live, test.live)
			}
			if max(burst, idle) > test.resident {
				t.Errorf("the resident memory of a subscription is %.1f KiB after a burst and %.1f KiB when idle, want at most %.0f", burst, idle, test.resident)
			}
		})
	}
}

// listeners are clients that all subscribe to the prices of the same tokens.
type listeners struct {
	t      *testing.T
	p      *program
	tokens []string

	clients, moves              int
	firstEvents, changes, pings atomic.Int64
}

// join connects n more clients. Each client subscribes to every token.
func (l *listeners) join(n int) {
	free := make(chan struct{}, 16)
	var connecting sync.WaitGroup
	for range n {
		free <- struct{}{}
		connecting.Go(func() {
			defer func() { <-free }()
			conn, err := net.Dial("tcp", l.p.Addr().String())
			if err != nil {
				l.t.Error(err)
				return
			}
			l.t.Cleanup(func() { _ = conn.Close() })
			l.listen(conn)
		})
	}
	connecting.Wait()
	l.clients += n
	l.await("first events", &l.firstEvents, int64(l.clients*len(l.tokens)))
}

// listen opens a WebSocket, subscribes, and counts the messages.
func (l *listeners) listen(conn net.Conn) {
	w := &wire{conn, bufio.NewReaderSize(conn, 1<<10)}
	if err := w.handshake("10.8.0.1"); err != nil {
		l.t.Error(err)
		return
	}
	_, _ = io.WriteString(w, textFrame(initMessage))
	for i, token := range l.tokens {
		_, _ = io.WriteString(w, textFrame(asJSON(vars{"id": fmt.Sprint(i), "type": "subscribe", "payload": vars{"query": subPrices, "variables": vars{"ids": []string{token}}}})))
	}
	go func() { // ends when the test closes the connection
		for {
			_, payload, err := w.frame()
			switch text := string(payload); {
			case err != nil:
				return
			case text == `{"type":"ping"}`:
				l.pings.Add(1)
				_, _ = io.WriteString(w, textFrame(`{"type":"pong"}`))
			case strings.Contains(text, `"INITIAL"`):
				l.firstEvents.Add(1)
			case strings.Contains(text, `"CHANGE"`):
				l.changes.Add(1)
			}
		}
	}()
}

// warm sends queries until the resident memory stops growing. After that, further growth is due to the clients that connect.
func (l *listeners) warm() {
	query := asJSON(vars{"query": `query ($ids: [String!]!) { tokens(tokenIds: $ids) { id price { price } orderbook(depth: 50) { bids { price size } asks { price size } } } }`, "variables": vars{"ids": l.p.openTokens(20)}})
	for i, least := 0, 0; i < 5; i++ {
		for range 50 {
			r := l.p.request(l.t, query, anonymous)
			r.Header.Set("X-Oddsgraph-Cost", "1") // bypasses the response cache
			if got := l.p.do(l.t, r); got.status != http.StatusOK || strings.Contains(got.body, `"errors"`) {
				l.t.Fatal(got)
			}
		}
		if now := memory(l.t, l.p.process, "VmRSS"); now > least+1<<20 {
			least, i = now, 0
		}
	}
}

// burst changes the price of every token n times. After each change, burst waits until all clients have received the events.
func (l *listeners) burst(n int) {
	for range n {
		l.moves++
		want := l.changes.Load() + int64(l.clients*len(l.tokens))
		for _, token := range l.tokens {
			if err := l.p.venue.SetPrice(token, demo.Price(3000+500*(l.moves%2))); err != nil {
				l.t.Fatal(err)
			}
		}
		l.await("events", &l.changes, want)
	}
}

func (l *listeners) await(what string, count *atomic.Int64, want int64) {
	l.t.Helper()
	if !until(3*patience, func() bool { return count.Load() >= want }) {
		l.t.Fatalf("got %d %s, want %d", count.Load(), what, want)
	}
}
