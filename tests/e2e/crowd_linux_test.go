package e2e

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// expensiveDocument returns a document, escaped for JSON, that is as expensive to validate as the limits allow.
func expensiveDocument() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "query Q%d{...F}", i)
	}
	b.WriteString(`fragment F on Query{market(marketId:\"1\"){`)
	for i := range 97 {
		fmt.Fprintf(&b, "volume%0122d ", i)
	}
	return b.String() + "}}"
}

// TestExpensiveDocumentsOfOneClient checks that the program compiles the documents of one client on at most three quarters of the
// processors, and answers the cached queries of another client meanwhile.
func TestExpensiveDocumentsOfOneClient(t *testing.T) {
	t.Setenv("GOMEMLIMIT", shippedMemory)
	venue := newWitness(t)
	p := &target{program: runBinary(t, buildProgram(t), append(venue.args(), "--hosts=a")...), venue: venue}
	p.begin(t)
	other := p.startBystander(t)
	document := expensiveDocument()
	var stop atomic.Bool
	var serial, refused, unavailable atomic.Int64
	var g sync.WaitGroup
	for range 400 {
		g.Go(func() {
			for !stop.Load() {
				r := p.request(t, fmt.Sprintf(`{"query":"%s#%d"}`, document, serial.Add(1)), anonymous)
				r.Header.Set("Accept", "application/graphql-response+json")
				r.Header.Set("X-Forwarded-For", carelessClient)
				switch got := p.do(t, r); got.status {
				case http.StatusBadRequest:
					refused.Add(1)
				case http.StatusServiceUnavailable:
					unavailable.Add(1)
					time.Sleep(100 * time.Millisecond) // the refusal asks clients to wait a second, but this client retries sooner
				default:
					t.Errorf("a document is answered with status %d and the body %.300s", got.status, got.body)
				}
			}
		})
	}
	defer g.Wait()
	defer stop.Store(true)
	for deadline := time.Now().Add(patience); p.scrape(t).samples["oddsgraph_documents_waiting"] == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no document waits for its turn")
		}
	}
	compiling, waiting := 0.0, 0.0
	for range 20 {
		s := p.scrape(t)
		compiling, waiting = max(compiling, s.samples["oddsgraph_documents_compiling"]), max(waiting, s.samples["oddsgraph_documents_waiting"])
		if inFlight := s.samples["oddsgraph_operations_in_flight"]; inFlight > 16 {
			t.Errorf("%v operations are in flight while documents wait, want at most 16", inFlight)
		}
	}
	for deadline := time.Now().Add(patience); refused.Load() < 100 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	other.end(t)
	stop.Store(true)
	g.Wait()
	if refused.Load() == 0 {
		t.Fatal("no document of the attack was validated")
	}
	t.Logf("at most %v documents were compiled at once and %v waited; %d were refused as invalid; %d got status 503", compiling, waiting, refused.Load(), unavailable.Load())
	if allowed := float64(max(1, runtime.GOMAXPROCS(0)*3/4)); compiling > allowed || waiting < 10 {
		t.Errorf("%v documents of one client are compiled at once and %v wait, want at most %v and at least 10", compiling, waiting, allowed)
	}
}

// subscribeBooks subscribes to the books of tokens over the connection w. The query selects the levels of the book once for each
// alias, so more aliases make larger events.
func (p *target) subscribeBooks(t *testing.T, w *wire, client string, tokens []string, aliases int) {
	t.Helper()
	if err := w.handshake(client); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, textFrame(initMessage))
	query := `subscription ($id: String!) { orderbookChanged(tokenId: $id, depth: 50) {` + repeatNumbered(aliases, "a#:bids{price size} b#:asks{price size} ") + `} }`
	for _, id := range tokens {
		_, _ = io.WriteString(w, textFrame(asJSON(vars{"id": id, "type": "subscribe", "payload": vars{"query": query, "variables": vars{"id": id}}})))
	}
}

// tokensWithBooks returns at most n tokens of open markets. The book of each token has at least 30 levels.
func (p *target) tokensWithBooks(n int) (ids []string) {
	for _, tk := range p.venue.venue.Tokens() {
		if book, ok := p.venue.venue.Book(tk.TokenID); ok && tk.Status == "OPEN" && len(book.Bids)+len(book.Asks) >= 30 && len(ids) < n {
			ids = append(ids, tk.TokenID)
		}
	}
	return ids
}

// executedEvents returns the number of subscription events that the program has executed.
func (p *target) executedEvents(t *testing.T) float64 {
	return p.scrape(t).sum("oddsgraph_subscription_events_total")
}

// TestNoEventsForClientsThatDoNotRead checks that the service stops executing events for a client that reads nothing. Meanwhile, a
// client that reads must still get events.
func TestNoEventsForClientsThatDoNotRead(t *testing.T) {
	tool.CheckTier(t)
	venue := newWitness(t)
	p := &target{program: runBinary(t, buildProgram(t), venue.args()...), venue: venue}
	tokens := p.tokensWithBooks(20)
	reader := p.connect(t)
	p.subscribeBooks(t, reader, "10.20.0.9", tokens[:1], 1)
	var got atomic.Int64
	go func() { // ends when the connection is closed
		for {
			_, payload, err := reader.frame()
			if err != nil {
				return
			}
			if strings.Contains(string(payload), `"next"`) {
				got.Add(1)
			}
		}
	}()
	// move changes all books until the reader has got n more events. It returns how many events the service meanwhile executed
	// for the client that reads nothing.
	move := func(n int64) int {
		executedBefore, gotBefore := p.executedEvents(t), got.Load()
		for deadline := time.Now().Add(patience); got.Load() < gotBefore+n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the reader got %d more events, want %d", got.Load()-gotBefore, n)
			}
			p.moveBooks(t, tokens)
		}
		return int(p.executedEvents(t)-executedBefore) - int(got.Load()-gotBefore)
	}
	for range 5 {
		before := p.scrape(t)
		silent := p.connectUnread(t)
		p.subscribeBooks(t, silent, carelessClient, tokens, 200/2)
		eventually(t, "the subscriptions have begun", func() bool { return p.scrape(t).sum("oddsgraph_subscription_groups") >= 21 })
		// At first, the operating system buffers the events of the client that reads nothing, so the service executes them. When
		// the buffers are full, move returns 0.
		filling, more := 0, 0
		for range 15 {
			if more = move(10); more == 0 {
				break
			}
			filling += more
		}
		if more == 0 {
			more = move(30)
		}
		closedSockets := p.scrape(t).sum("oddsgraph_websockets_given_up_total") - before.sum("oddsgraph_websockets_given_up_total")
		t.Logf("for the client that reads nothing, the service executed %d events, and %d more in the last check; it closed %.0f sockets", filling, more, closedSockets)
		_ = silent.Close()
		if closedSockets > 0 { // the service closed the slow client's socket, so this round proves nothing
			continue
		}
		if more > 20 {
			t.Errorf("in the last check, the service executed %d more events for a client that reads nothing, want at most 20", more)
		}
		return
	}
	t.Skip("the machine is too slow: in all five rounds, the service closed the socket of the client that reads nothing before the check ended")
}

// moveBooks changes the price, and thereby the book, of each token.
func (p *target) moveBooks(t *testing.T, tokens []string) {
	p.moves++
	for _, id := range tokens {
		if err := p.venue.venue.SetPrice(id, demo.Price(3000+100*(p.moves%10))); err != nil {
			t.Fatal(err)
		}
	}
}
