package kalshi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	simulator "oddsgraph/internal/demo/kalshi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// link connects a codec to the simulator. books contains the books that the codec has published, except for lost books.
type link struct {
	*rig
	ws    *websocket.Conn
	books map[messages.Topic]*market.Book
	drops int
	bad   []messages.Topic
}

func (l *link) send(verb stream.Verb, topics ...messages.Topic) {
	l.t.Helper()
	for _, command := range l.request(verb, topics...) {
		if err := l.ws.Write(context.Background(), websocket.MessageText, []byte(command)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// drain reads all frames that the simulator has sent, and applies the messages that the codec decodes.
func (l *link) drain() {
	l.t.Helper()
	// This command changes the subscription, so its response has a sequence number. With this number, the codec can detect the loss
	// of the last book change.
	if len(l.sids) > 0 {
		numbered := `{"id":0,"cmd":"update_subscription","params":{"sid":1,"market_tickers":["NONE"],"action":"delete_markets"}}`
		if err := l.ws.Write(context.Background(), websocket.MessageText, []byte(numbered)); err != nil {
			l.t.Fatal(err)
		}
	}
	l.commands++
	end := fmt.Sprintf(`{"id":%d,"cmd":"nothing","params":{}}`, l.commands)
	if err := l.ws.Write(context.Background(), websocket.MessageText, []byte(end)); err != nil {
		l.t.Fatal(err)
	}
	for {
		_, frame, err := l.ws.Read(context.Background())
		if err != nil {
			l.t.Fatal(err)
		}
		if strings.Contains(string(frame), `"msg":"Unknown command"`) {
			return
		}
		for _, e := range l.frame(string(frame)) {
			switch e.Kind {
			case stream.EventBad:
				l.bad = append(l.bad, e.Topic)
				delete(l.books, e.Topic)
				l.drops++
			case stream.EventMessage:
				l.apply(e.Message)
			}
		}
	}
}

// apply applies a message to the book of its topic. The sequence number of a change must be one higher than the sequence number of
// the book.
func (l *link) apply(m *messages.Message) {
	l.t.Helper()
	b := l.books[m.Topic]
	switch m.Kind {
	case messages.KindBookSnapshot:
		c := *m.Book
		l.books[m.Topic] = &c
	case messages.KindBookDelta:
		if b == nil || m.Seq != b.Seq+1 {
			l.t.Fatalf("the change %d of %s does not follow on the book %+v", m.Seq, m.Topic.ID, b)
		}
		b.Seq = m.Seq
		for _, c := range m.Changes {
			list := &b.Bids
			if c.Side == market.SideSell {
				list = &b.Asks
			}
			*list = list.Set(c.Side, c.Level)
		}
	}
}

// levelsOf returns both sides of a book as text.
func levelsOf(b *market.Book) string {
	var out strings.Builder
	for _, side := range [][]market.Level{b.Bids.Levels(), b.Asks.Levels()} {
		for _, l := range side {
			fmt.Fprintf(&out, "%s×%s ", l.Price.Reduce(), l.Size.Reduce())
		}
		out.WriteString("| ")
	}
	return out.String()
}

// TestChaos loses 5 % of the simulator's frames. Every book that the codec has not marked as lost must equal the simulator's book.
// A resync must repair every lost book.
func TestChaos(t *testing.T) {
	clock := tool.NewClock(start)
	sim := simulator.New(simulator.Config{
		Demo: demo.Config{Markets: 120, Seed: 3, Clock: clock}, Keys: testKeys(), TokensPerSecond: 1 << 20,
	})
	proxy := faults.New(sim)
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		sim.Close()
		server.Close()
	})
	key := testKey()
	h, err := key.Headers(http.MethodGet, simulator.StreamPath, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	ws, _, err := websocket.Dial(context.Background(), "ws"+strings.TrimPrefix(server.URL, "http")+simulator.StreamPath, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(-1)

	l := &link{rig: newRig(t), ws: ws, books: make(map[messages.Topic]*market.Book)}
	var topics []messages.Topic
	tickers := sim.Tickers()[:30]
	for _, ticker := range tickers {
		topics = append(topics, book(yes.token(ticker)), book(no.token(ticker)))
	}
	l.send(stream.VerbSubscribe, topics...)
	l.drain()
	lost := faults.Fault{On: faults.OnFrames, Kind: faults.Drop, Contains: []string{`"type":"orderbook_delta"`}, Probability: 0.05, Seed: 3}
	if err := proxy.Set([]faults.Fault{lost}); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for range 80 {
		clock.Advance(150 * time.Millisecond)
		sim.Engine().Step()
		l.drain()
		compared += l.compare(server.URL, clock.Now(), tickers)
		l.now = clock.Now()
		lost := l.bad
		l.bad = nil
		for _, topic := range lost {
			l.send(stream.VerbResync, topic)
		}
	}
	if err := proxy.Set(nil); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * snapshotWithin)
	l.now = clock.Now()
	for _, topic := range topics {
		if l.books[topic] == nil {
			l.send(stream.VerbResync, topic)
		}
	}
	l.drain()
	if n := l.compare(server.URL, clock.Now(), tickers); n != len(topics) || l.drops == 0 || compared < 1000 {
		t.Errorf("at the end, %d of %d books are not lost, want all; before, %d books were lost, want some, and %d were compared, want 1000", n, len(topics), l.drops, compared)
	}
	t.Logf("%d books compared, %d marked as lost", compared, l.drops)
}

// compare checks that all books that are not lost equal the simulator's books from REST. It returns the number of compared books.
func (l *link) compare(url string, now time.Time, tickers []string) (n int) {
	l.t.Helper()
	const path = simulator.Path + "/markets/orderbooks"
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, url+path+"?tickers="+strings.Join(tickers, "&tickers="), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	if request.Header, err = testKey().Headers(http.MethodGet, path, now); err != nil {
		l.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Orderbooks []struct {
			Ticker string
			Book   json.RawMessage `json:"orderbook_fp"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		l.t.Fatal(err)
	}
	for _, row := range answer.Orderbooks {
		v, err := wire.Parse(row.Book)
		if err != nil {
			l.t.Fatal(err)
		}
		b := readBids(wire.NewRow(v, func(string) {}), false)
		for _, s := range sides {
			got := l.books[book(s.token(row.Ticker))]
			if got == nil {
				continue
			}
			n++
			if want := b.book(row.Ticker, s, maxDepth); levelsOf(got) != levelsOf(want) {
				l.t.Errorf("the book of %s is %s; want %s", got.TokenID, levelsOf(got), levelsOf(want))
			}
		}
	}
	return n
}
