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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/httpapi"
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

// TestBoardsOfOneAddress opens the pages of different markets on sockets of one client address, with the subscriptions of the board.
// With the shipped memory, the program must refuse none of them, and each must get its first event.
func TestBoardsOfOneAddress(t *testing.T) {
	const people = 150
	venue := newWitness(t)
	p := &target{program: runBinaryIn(t, []string{"GOMEMLIMIT=" + shippedMemory}, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
	p.program.venue = venue.venue
	documents := map[string]string{}
	for _, name := range []string{"Prices", "Market", "Book", "Trades"} {
		documents[name] = boardSubscription(t, name)
	}
	var subscriptions []string
	for _, m := range venue.venue.Markets() {
		if m.Status != "OPEN" || !m.Binary || len(subscriptions) == people {
			continue
		}
		text := ""
		for name, variables := range map[string]vars{
			"Prices": {"tokenIds": m.TokenIDs}, "Market": {"marketId": m.MarketID}, "Book": {"tokenId": m.TokenIDs[0], "depth": 10}, "Trades": {"tokenId": m.TokenIDs[0]},
		} {
			text += textFrame(asJSON(vars{"id": name, "type": "subscribe", "payload": vars{"query": documents[name], "variables": variables}}))
		}
		subscriptions = append(subscriptions, text)
	}
	if len(subscriptions) != people {
		t.Fatalf("the venue has %d open binary markets, want %d", len(subscriptions), people)
	}
	var first atomic.Int64
	var reading sync.WaitGroup
	defer reading.Wait()
	for _, text := range subscriptions {
		conn, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		w := &wire{conn, bufio.NewReaderSize(conn, 1<<10)}
		if err := w.handshake("10.30.0.1"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, textFrame(initMessage)+text)
		reading.Go(func() { // ends when the test closes the connection
			seen := map[string]bool{}
			for _, payload, err := w.frame(); err == nil; _, payload, err = w.frame() {
				var f frame
				decode(t, string(payload), &f)
				switch {
				case f.Type == "error" || f.Type == "complete":
					t.Errorf("a subscription has ended: %.300s", payload)
				case f.Type == "next" && !seen[f.ID]:
					seen[f.ID] = true
					first.Add(1)
				}
			}
		})
	}
	eventually(t, "a first event of each subscription", func() bool { return first.Load() == 4*people })
	resident := memory(t, p.process, "VmHWM")
	t.Logf("the program used at most %d MiB", resident>>20)
	if resident > mostResident {
		t.Errorf("the program used %d MiB, want at most %d MiB", resident>>20, uint64(mostResident)>>20)
	}
}

// TestAccountsBehindOneAddress checks that accounts behind one address do not share a limit, and that invented credentials give no
// limit of their own.
func TestAccountsBehindOneAddress(t *testing.T) {
	s, _ := startLiveRigged(t, func(w *app.Wiring) {
		w.Front = func(front *httpapi.Config) { front.Clients.Executions = 6 } // all clients together may have 8
	})
	s.waitForStream(t)
	ids := s.openTokens(10)
	next := 0
	// watch subscribes to n more tokens. It expects that the last subscription is refused if refused is true.
	watch := func(k *socket, n int, refused bool) {
		t.Helper()
		for i := range n {
			e := k.subscribe(t, subBook, vars{"id": ids[next]})
			next++
			if refused && i == n-1 {
				if ev := e.next(t); !ev.refused || !strings.Contains(ev.errors[0].Message, "6 different subscriptions at once of one client address; the operator can raise --client-operations") {
					t.Errorf("got %+v, want RATE_LIMITED with the name of the flag", ev)
				}
				continue
			}
			e.value(t)
		}
	}
	watch(s.dial(t, anonymous), 6, false)
	watch(s.dial(t, credentials("invented")), 1, true)
	watch(s.dial(t, anonymous), 1, true)
	for key, address := range map[string]string{keyOf3: addressOf3, keyOf50: addressOf50} {
		s.ask(t, `query ($a: Address!) { user(address: $a) { balance { cashBalance } } }`, vars{"a": address}, key)
		watch(s.dial(t, key), 1, false)
	}
}

// fewestAnswers is how many answers a bystander must get during an attack.
const fewestAnswers = 50

// bystander is a client that has nothing to do with the attack. It repeats a cached query, and each query must succeed.
type bystander struct {
	p       *target
	answers atomic.Int64
	// stop ends the queries. It may be called more than once.
	stop func()
	done sync.WaitGroup
}

// startBystander repeats the query in the background until end is called.
func (p *target) startBystander(t *testing.T) *bystander {
	b := &bystander{p: p}
	over := make(chan struct{})
	b.stop = sync.OnceFunc(func() { close(over) })
	t.Cleanup(func() { // in case the test fails before it calls end
		b.stop()
		b.done.Wait()
	})
	b.done.Go(func() {
		for {
			b.ask(t)
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return b
}

func (b *bystander) ask(t *testing.T) {
	r := b.p.request(t, b.p.normal, anonymous)
	r.Header.Set("X-Forwarded-For", "10.20.0.9")
	r.Header.Set("Accept", "application/graphql-response+json")
	if got := b.p.do(t, r); got.status != http.StatusOK || got.body != b.p.answer {
		t.Errorf("the bystander is answered with status %d and the body %.300s", got.status, got.body)
	}
	b.answers.Add(1)
}

// end waits until the bystander has got fewestAnswers answers and stops it. It also checks that the program used at most
// mostResident bytes.
func (b *bystander) end(t *testing.T) {
	eventually(t, "the bystander is answered", func() bool { return b.answers.Load() >= fewestAnswers })
	b.stop()
	b.done.Wait()
	most := memory(t, b.p.process, "VmHWM")
	t.Logf("the bystander got %d answers; the program used at most %d MiB", b.answers.Load(), most>>20)
	if most > mostResident {
		t.Errorf("the program used %d MiB, want at most %d MiB", most>>20, uint64(mostResident)>>20)
	}
}
