package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// shippedMemory is the GOMEMLIMIT in deploy/. shippedBytes is the same limit in bytes.
	shippedMemory = "768MiB"
	shippedBytes  = 768 << 20
	// mostResident is the limit for the resident memory of the program in bytes. If the processor is busy, the garbage grows up to
	// GOMEMLIMIT. Another 80 MiB are for the program file, which GOMEMLIMIT does not include.
	mostResident = shippedBytes + 80<<20
	// shippedOutput is the program's limit for the unread output of all clients in bytes. One client may use three quarters of the
	// limit.
	shippedOutput = shippedBytes / 6
)

// TestClientsThatDoNotRead checks that the shipped program withstands a client that sends as much as it can and reads little or
// nothing. The program must stay within its memory limit and respond to another client.
func TestClientsThatDoNotRead(t *testing.T) {
	t.Parallel() // the test mostly waits
	venue := newWitness(t)
	p := &target{program: runBinaryIn(t, []string{"GOMEMLIMIT=" + shippedMemory}, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
	p.begin(t)
	for _, a := range []unreadAttack{
		{"responses above the size limit over HTTP", unreadQueries(500)},
		{"the longest responses over HTTP", unreadQueries(100)},
		{"the longest responses over WebSockets", unreadOverSockets},
		{"the longest responses as event streams", unreadStreams},
		{"a long text under many aliases", unreadText},
		{"books under many aliases", unreadBooks},
		{"books under many aliases, read slowly", slowBooks},
		{"subscriptions with long documents", longSubscriptions},
	} {
		t.Run(a.name, func(t *testing.T) { p.withstand(t, a) })
	}
	if log := p.log.String(); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("the log has errors: %.2000s", log[strings.Index(log, `"level":"ERROR"`):])
	}
}

// unreadAttack is an attack by a client that reads little or nothing. run makes the attack and returns the open connections. If
// refused is not empty, it names the transport over which the program must have refused output.
type unreadAttack struct {
	name string
	run  func(t *testing.T, p *target) (open []io.Closer, refused string)
}

// withstand runs an attack. It checks the memory and the unread output of the program. It also checks that another client still
// gets cached values.
func (p *target) withstand(t *testing.T, a unreadAttack) {
	before := p.scrape(t)
	other := p.startBystander(t)
	open, refused := a.run(t, p)
	if series := fmt.Sprintf("oddsgraph_output_refusals_total{transport=%q}", refused); refused != "" { // on a busy machine, the last requests arrive late
		eventually(t, "the program refuses output over "+refused, func() bool { return p.scrape(t).samples[series] != before.samples[series] })
	}
	m := p.scrape(t)
	other.end(t)
	t.Logf("%.1f MiB were unread", m.sum("oddsgraph_output_unread_bytes")/(1<<20))
	if held := m.sum("oddsgraph_output_unread_bytes"); held > shippedOutput*3/4+1 {
		t.Errorf("one client has %.0f bytes of unread output, want at most three quarters of %d", held, shippedOutput)
	}
	for _, c := range open {
		_ = c.Close()
	}
	eventually(t, "no output is unread after the connections were closed", func() bool { return p.scrape(t).sum("oddsgraph_output_unread_bytes") == 0 })
}

// echoQuery returns a query with ids of 240 bytes. The response has about 71 KB for each id, because it repeats the id 198 times.
func echoQuery(ids int) string {
	list := make([]string, ids)
	for i := range list {
		list[i] = fmt.Sprintf("%0240d", i)
	}
	return asJSON(vars{"query": `query ($i: [String!]!) { tokens(tokenIds: $i) {` + repeatNumbered(198, "a#:id ") + `} }`, "variables": vars{"i": list}})
}

// connectUnread opens a connection with a small receive buffer.
func (p *target) connectUnread(t testing.TB) *wire {
	w := p.connect(t)
	_ = w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_ = w.SetDeadline(time.Now().Add(time.Minute))
	return w
}

const carelessClient = "10.20.0.1"

// ask sends a query over HTTP and does not read the response.
func (w *wire) ask(body, accept string) {
	_, _ = fmt.Fprintf(w, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nAccept: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		carelessClient, accept, len(body), body)
}

// onConnections opens n connections and calls ask for all of them at the same time.
func (p *target) onConnections(t *testing.T, n int, ask func(w *wire)) (open []io.Closer) {
	var asking sync.WaitGroup
	for range n {
		w := p.connectUnread(t)
		open = append(open, w)
		asking.Go(func() { ask(w) })
	}
	asking.Wait()
	return open
}

// settle waits until the program executes no operations.
func (p *target) settle(t *testing.T) {
	t.Helper()
	eventually(t, "the program executes no operations", func() bool { return p.scrape(t).sum("oddsgraph_operations_in_flight") == 0 })
}

func unreadQueries(ids int) func(t *testing.T, p *target) ([]io.Closer, string) {
	return func(t *testing.T, p *target) ([]io.Closer, string) {
		body := echoQuery(ids)
		open := p.onConnections(t, 16, func(w *wire) { w.ask(body, "application/graphql-response+json") })
		p.settle(t)
		if ids < 200 {
			return open, "http"
		}
		for _, c := range open {
			status, answer := c.(*wire).readResponse(t, p)
			var a struct{ Errors []graphError }
			if decode(t, answer, &a); status == http.StatusOK && (len(a.Errors) != 1 || a.Errors[0].Extensions.Code != "RESPONSE_TOO_LARGE") || len(answer) > 10<<10 {
				t.Errorf("got status %d and %.300s, want RESPONSE_TOO_LARGE or an error status", status, answer)
			}
		}
		return open, ""
	}
}

func unreadOverSockets(t *testing.T, p *target) ([]io.Closer, string) {
	message := json.RawMessage(echoQuery(100))
	open := p.onConnections(t, 4, func(w *wire) {
		if err := w.handshake(carelessClient); err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(w, textFrame(initMessage))
		for i := range 10 {
			_, _ = io.WriteString(w, textFrame(asJSON(vars{"id": fmt.Sprint(i), "type": "subscribe", "payload": message})))
		}
	})
	p.settle(t)
	return open, "websocket"
}

func unreadStreams(t *testing.T, p *target) ([]io.Closer, string) {
	body := echoQuery(100)
	open := p.onConnections(t, 16, func(w *wire) { w.ask(body, "text/event-stream") })
	p.settle(t)
	return open, "sse"
}

// unreadText queries a description of 512 KB under 480 aliases. The response would have about 250 MB.
func unreadText(t *testing.T, p *target) ([]io.Closer, string) {
	market := p.venue.venue.Tokens()[0].MarketID
	if err := p.venue.venue.Reword(market, strings.Repeat("long ", 100<<10)); err != nil {
		t.Fatal(err)
	}
	body := asJSON(vars{"query": `{ market(marketId: "` + market + `") {` + repeatNumbered(480, "a#:description ") + `} }`})
	open := p.onConnections(t, 16, func(w *wire) { w.ask(body, "application/graphql-response+json") })
	for _, c := range open {
		if status, answer := c.(*wire).readResponse(t, p); status == http.StatusOK && !strings.Contains(answer, "RESPONSE_TOO_LARGE") {
			t.Errorf("got status %d and %.300s, want RESPONSE_TOO_LARGE or an error status", status, answer)
		}
	}
	return open, ""
}

// openBookSockets opens several sockets, and subscribes to perSocket books on each socket. An event contains its book 78 times,
// under aliases.
func (p *target) openBookSockets(t *testing.T, sockets, perSocket int) (open []io.Closer) {
	query := `subscription ($id: String!) { orderbookChanged(tokenId: $id, depth: 200) {` + repeatNumbered(78, "a#:bids{price size} b#:asks{price size} ") + `} }`
	tokens := p.tokensWithBooks(200)
	var g sync.WaitGroup
	for i := range sockets {
		w := p.connectUnread(t)
		open = append(open, w)
		g.Go(func() {
			if err := w.handshake(carelessClient); err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(w, textFrame(initMessage))
			for j := range perSocket {
				token := tokens[(i*perSocket+j)%len(tokens)]
				_, _ = io.WriteString(w, textFrame(asJSON(vars{"id": token, "type": "subscribe", "payload": vars{"query": query, "variables": vars{"id": token}}})))
			}
		})
	}
	g.Wait()
	return open
}

// move changes the books of the tokens about ten times a second, for the duration d.
func (p *target) move(t *testing.T, tokens []string, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		p.moveBooks(t, tokens)
	}
}

func unreadBooks(t *testing.T, p *target) ([]io.Closer, string) {
	before := p.scrape(t).sum("oddsgraph_subscription_events_total")
	open := p.openBookSockets(t, 2, 100)
	executed := func() float64 { return p.scrape(t).sum("oddsgraph_subscription_events_total") - before }
	p.move(t, p.tokensWithBooks(200), 2*time.Second)
	for deadline := time.Now().Add(patience); executed() < 20 && time.Now().Before(deadline); { // a busy machine needs longer
		p.move(t, p.tokensWithBooks(200), time.Second)
	}
	// The service executes each subscription for its first event. It must not execute the subscription again while this event is
	// unread.
	n := executed()
	t.Logf("the service executed %.0f events", n)
	if n < 20 || n > 600 {
		t.Errorf("the service executed %.0f events of 200 unread subscriptions, want 20 to 600", n)
	}
	return open, ""
}

// longSubscriptions opens a thousand subscriptions on ten sockets, and reads all messages. The documents of the subscriptions
// differ, and each document has 180 aliases.
func longSubscriptions(t *testing.T, p *target) ([]io.Closer, string) {
	tokens := p.venue.venue.Tokens()
	fields := repeatNumbered(180, "a#:bids{price size} ")
	before := p.scrape(t).sum("oddsgraph_client_refusals_total")
	open := p.onConnections(t, 10, func(w *wire) {
		if err := w.handshake(carelessClient); err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(io.Discard, w.r) }() // ends when the connection is closed
		_, _ = io.WriteString(w, textFrame(initMessage))
		for i := range 100 {
			query := fmt.Sprintf("# %p %d\nsubscription ($id: String!) { orderbookChanged(tokenId: $id, depth: 1) {%s} }", w, i, fields)
			_, _ = io.WriteString(w, textFrame(asJSON(vars{"id": fmt.Sprint(i), "type": "subscribe", "payload": vars{"query": query, "variables": vars{"id": tokens[i%len(tokens)].TokenID}}})))
		}
	})
	p.settle(t)
	var m *scraped
	until(patience, func() bool {
		m = p.scrape(t)
		return m.sum("oddsgraph_subscription_groups")+m.sum("oddsgraph_client_refusals_total")-before >= 1000
	})
	// One client may use three quarters of httpapi.MaxSubscribedBytes, which is enough for about 40 of these documents.
	if n := m.sum("oddsgraph_subscription_groups"); n < 20 || n > 80 {
		t.Errorf("the service accepted %.0f of 1,000 subscriptions, want 20 to 80", n)
	}
	return open, ""
}

// slowBooks reads 20 KB a second from each of ten sockets. It reads for at least two seconds, and then until the service has
// dropped events.
func slowBooks(t *testing.T, p *target) ([]io.Closer, string) {
	crowded := func() float64 { return p.scrape(t).sum("oddsgraph_subscription_crowded_total") }
	before := crowded()
	open := p.openBookSockets(t, 10, 50)
	var reading sync.WaitGroup
	stop := make(chan struct{})
	for _, c := range open {
		_ = c.(*wire).SetReadDeadline(time.Now().Add(3 * patience))
		reading.Go(func() {
			part := make([]byte, 2<<10)
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
				if _, err := c.(*wire).r.Read(part); err != nil {
					return
				}
			}
		})
	}
	p.move(t, p.tokensWithBooks(200), 2*time.Second)
	for deadline := time.Now().Add(2 * patience); crowded() == before && time.Now().Before(deadline); { // a busy machine needs longer
		p.move(t, p.tokensWithBooks(200), time.Second)
	}
	if crowded() == before {
		t.Error("the service dropped no events of the slow client")
	}
	close(stop)
	for _, c := range open {
		_ = c.(*wire).SetReadDeadline(time.Now())
	}
	reading.Wait()
	return open, ""
}

// wrongQuery returns a query with 50 errors. The message of each error quotes a text of 1 KB. In JSON, escapes make this text 6 KB.
func wrongQuery() string {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, `a%d:searchMarkets(first:"%d%s"){nodes{id}} `, i, i, strings.Repeat("<", 1000))
	}
	// asJSON would also escape each <, so the request would be six times as long.
	return `{"query":"{` + strings.ReplaceAll(b.String(), `"`, `\"`) + `}"}`
}

// TestUnreadOutputBesidesResponses checks that the program withstands a client that tries to fill the program's memory with
// refusals, with variables of waiting operations, or with compressed responses.
func TestUnreadOutputBesidesResponses(t *testing.T) {
	for _, a := range []unreadAttack{
		{"refusals over WebSockets", unreadRefusals},
		{"variables of queries that wait", waitingVariables},
		{"compressed responses", unreadCompressed},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", shippedMemory)
			venue := newWitness(t)
			p := &target{program: runBinary(t, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
			p.begin(t)
			p.withstand(t, a)
		})
	}
}

// queryOverSockets opens several WebSockets. On each WebSocket, it sends ten queries with large responses, and then ninety queries
// with the given body.
func (p *target) queryOverSockets(t *testing.T, sockets int, body string) (open []io.Closer) {
	first := echoQuery(3)
	return p.onConnections(t, sockets, func(w *wire) {
		if err := w.handshake(carelessClient); err != nil {
			t.Error(err)
			return
		}
		_ = w.SetWriteDeadline(time.Now().Add(8 * time.Second)) // the service stops reading from a socket whose client does not read
		_, _ = io.WriteString(w, textFrame(initMessage))
		for i := range 100 {
			payload := body
			if i < 10 {
				payload = first
			}
			if _, err := io.WriteString(w, textFrame(fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":%s}`, i, payload))); err != nil {
				return // the service no longer reads from the socket
			}
		}
	})
}

func unreadRefusals(t *testing.T, p *target) ([]io.Closer, string) {
	open := p.queryOverSockets(t, 80, wrongQuery())
	p.settle(t)
	return open, ""
}

func waitingVariables(t *testing.T, p *target) ([]io.Closer, string) {
	before := p.scrape(t).sum("oddsgraph_client_refusals_total")
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0240d", i)
	}
	open := p.queryOverSockets(t, 80, asJSON(vars{"query": `query ($i: [String!]!) { tokens(tokenIds: $i) { id } }`, "variables": vars{"i": ids}}))
	p.settle(t)
	if p.scrape(t).sum("oddsgraph_client_refusals_total") == before {
		t.Error("the program refused no operation; want refusals, because waiting operations hold their variables")
	}
	return open, ""
}

func unreadCompressed(t *testing.T, p *target) ([]io.Closer, string) {
	ids := make([]string, 440)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0120d%0120d", 7919*i, 104729*i)
	}
	body := asJSON(vars{"query": `query ($i: [String!]!) { tokens(tokenIds: $i) {` + repeatNumbered(50, "a#:id ") + `} }`, "variables": vars{"i": ids}})
	open := p.onConnections(t, 160, func(w *wire) {
		for range 30 {
			if _, err := fmt.Fprintf(w, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nAccept-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				carelessClient, len(body), body); err != nil {
				return
			}
		}
	})
	p.settle(t)
	return open, ""
}
