package demo

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// openTokens returns n tradable tokens of different markets.
func openTokens(t testing.TB, v *Venue, n int) (tokens []*token) {
	t.Helper()
	for _, m := range v.listing.markets {
		if m.status == statusOpen && len(tokens) < n {
			tokens = append(tokens, m.tokens[0])
		}
	}
	if len(tokens) < n {
		t.Fatalf("only %d markets are open, want %d", len(tokens), n)
	}
	return tokens
}

func idsOf(tokens []*token) (ids []string) {
	for _, t := range tokens {
		ids = append(ids, t.id)
	}
	return ids
}

// nudge changes the price of a token by five ticks. Such a change always changes the order book of the token too.
func (s *testVenue) nudge(t testing.TB, tok *token) {
	t.Helper()
	price := tok.lastPrice() + 5*tok.tick
	if tok.lastPrice() > payout/2 {
		price = tok.lastPrice() - 5*tok.tick
	}
	if err := s.SetPrice(tok.id, price); err != nil {
		t.Fatal(err)
	}
}

// TestSubscribe checks that the venue acknowledges a subscribe request, then sends a snapshot of each topic, and then the changes.
// After a repeated subscribe, the venue must send only the acknowledgement. Each unknown identifier must cause one error and not
// affect the other identifiers.
func TestSubscribe(t *testing.T) {
	s := open(t, Config{})
	tokens := openTokens(t, s.Venue, 3)
	a, b := tokens[0], tokens[1]
	l := s.dial(t)

	for channel, snapshot := range map[string]string{"prices": "price_update", "orderbook": "orderbook_snapshot", "trades": "trades_snapshot"} {
		rid := l.send("subscribe", `"channel":"`+channel+`","tokenIds":["`+a.id+`","nobody","`+b.id+`","`+a.id+`","odd"]`)
		if f := l.take("subscribed"); f["rid"] != rid || fmt.Sprint(f["tokenIds"]) != fmt.Sprint([]string{a.id, b.id}) || f["channel"] != channel {
			t.Fatalf("got acknowledgement %v, want tokens %s and %s of %s", f, a.id, b.id, channel)
		}
		for _, id := range []string{"nobody", "odd"} {
			if f := l.take("error"); f["rid"] != rid || f["code"] != "UNKNOWN_TOKEN" || f["tokenId"] != id {
				t.Fatalf("got error %v, want UNKNOWN_TOKEN for %s", f, id)
			}
		}
		for _, tok := range []*token{a, b} {
			if f := l.take(snapshot); f["tokenId"] != tok.id || f["marketId"] != tok.market.id {
				t.Fatalf("got %v, want a snapshot of token %s", f, tok.id)
			}
		}
		l.subscribe(channel, b.id, a.id)
		if frames := l.settle(); len(frames) > 0 {
			t.Fatalf("after a repeated subscribe: got %v, want nothing", frames)
		}
	}
	if n := s.Stats().Stream; n.Topics["orderbook"] != 2 || n.Subscriptions["trades"] != 2 || n.Subscribes["prices"] != 4 || n.Connections != 1 || n.Opened != 1 {
		t.Errorf("after the subscribes: got stats %+v", n)
	}
	s.nudge(t, a)
	frames := l.settle()
	if len(frames) != 2 || frames[0]["type"] != "orderbook_update" || frames[1]["type"] != "price_update" {
		t.Fatalf("after a change of the price: got %v, want an orderbook_update and a price_update", frames)
	}

	// After a resync, the venue sends a new snapshot.
	for channel, snapshot := range map[string]string{"prices": "price_update", "orderbook": "orderbook_snapshot", "trades": "trades_snapshot"} {
		l.send("resync", `"channel":"`+channel+`","tokenId":"`+a.id+`"`)
		if f := l.take(snapshot); f["tokenId"] != a.id {
			t.Fatalf("after a resync: got %v, want token %s", f, a.id)
		}
	}
	if s.Stats().Stream.Resyncs["trades"] != 1 {
		t.Errorf("after the resyncs: got stats %+v, want 1 resync of trades", s.Stats().Stream)
	}
	rid := l.send("resync", `"channel":"orderbook","tokenId":"`+tokens[2].id+`"`)
	if f := l.take("error"); f["rid"] != rid || f["code"] != "NOT_SUBSCRIBED" || f["tokenId"] != tokens[2].id {
		t.Fatalf("got error %v, want NOT_SUBSCRIBED for %s", f, tokens[2].id)
	}

	// After an unsubscribe, the venue sends only frames of the other topics.
	rid = l.send("unsubscribe", `"channel":"orderbook","tokenIds":["`+a.id+`","`+tokens[2].id+`"]`)
	if f := l.take("unsubscribed"); f["rid"] != rid || f["channel"] != "orderbook" || fmt.Sprint(f["tokenIds"]) != fmt.Sprint([]string{a.id, tokens[2].id}) {
		t.Fatalf("got acknowledgement %v, want tokens %s and %s", f, a.id, tokens[2].id)
	}
	s.nudge(t, a)
	s.nudge(t, b)
	frames = l.settle()
	if len(frames) != 3 || frames[0]["type"] != "price_update" || frames[1]["tokenId"] != b.id {
		t.Fatalf("after the unsubscribe: got %v, want the price of one token, and the book and price of the other", frames)
	}

	// A market id subscribes to all tokens of the market.
	m := a.market
	rid = l.send("subscribe", `"channel":"orderbook","marketIds":["`+m.id+`","none"]`)
	if f := l.take("subscribed"); f["rid"] != rid || len(f["tokenIds"].([]any)) != len(m.tokens) {
		t.Fatalf("got acknowledgement %v, want %d tokens", f, len(m.tokens))
	}
	if f := l.take("error"); f["code"] != "UNKNOWN_MARKET" || f["marketId"] != "none" {
		t.Fatalf("got error %v, want UNKNOWN_MARKET for none", f)
	}
	for range m.tokens {
		l.take("orderbook_snapshot")
	}
	_ = l.ws.Close(websocket.StatusNormalClosure, "")
	s.eventually(t, "the topics are closed", func() bool {
		n := s.Stats().Stream
		return n.Connections == 0 && len(n.Topics)+len(n.Subscriptions) == 0
	})
}

// eventually waits until f returns true, because of a change in another goroutine. It fails the test after the time in patience.
// what describes the state that f waits for.
func (s *testVenue) eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true after %v: %s; the stats are %+v", patience, what, s.Stats().Stream)
		}
	}
}

// TestCloseWithoutAnswer checks that Close disconnects a client that does not answer the close frame.
func TestCloseWithoutAnswer(t *testing.T) {
	s := open(t, Config{}, func(s *streams) { s.sockets.Limits.Goodbye = 10 * time.Millisecond })
	s.dial(t) // this client never reads
	s.Close()
}

// TestRestart checks that a restart begins a new epoch, in which all sequence numbers start at 1 again. With code 0, the connections
// stay open, and the venue sends a hello and all snapshots again.
func TestRestart(t *testing.T) {
	s := open(t, Config{})
	tok := openTokens(t, s.Venue, 1)[0]
	for range 5 {
		s.nudge(t, tok)
	}
	l := s.dial(t)
	l.subscribe("orderbook", tok.id)
	b := &bookCopy{}
	if b.take(t, l.take("orderbook_snapshot")); b.seq != 6 {
		t.Fatalf("before the restart: got seq %d, want 6", b.seq)
	}
	s.Restart(CloseShed)
	if code := l.closed(); code != CloseShed {
		t.Errorf("got close code %d, want %d", code, CloseShed)
	}
	again := s.dial(t)
	if again.epoch == l.epoch || again.epoch != s.Epoch() {
		t.Errorf("got epoch %s after %s, want the new epoch %s", again.epoch, l.epoch, s.Epoch())
	}
	again.subscribe("orderbook", tok.id)
	if b.take(t, again.take("orderbook_snapshot")); b.seq != 1 {
		t.Errorf("got seq %d, want 1", b.seq)
	}
	again.subscribe("prices", tok.id)
	again.take("price_update")
	again.subscribeUser(small, "demo")

	s.nudge(t, tok)
	again.settle()
	s.Restart(0)
	again.greeted(again.take("hello"))
	seqs := map[any]uint64{}
	for _, f := range again.settle() {
		if seqs[f["type"]] = number(t, f, "seq"); f["type"] == "orderbook_snapshot" {
			b.take(t, f)
		}
	}
	want := map[any]uint64{"orderbook_snapshot": 1, "price_update": 1, "user_snapshot": 1}
	if !maps.Equal(seqs, want) || again.epoch != s.Epoch() {
		t.Errorf("after the restart: got epoch %s and sequence numbers %v, want %s and %v", again.epoch, seqs, s.Epoch(), want)
	}
	b.check(t, s, tok.id, again.epoch)
}
