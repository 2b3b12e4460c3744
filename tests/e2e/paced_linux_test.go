package e2e

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

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
