package demo

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestHeartbeat checks that consecutive heartbeats together have the sequence numbers of all topics. One heartbeat must have at
// most 100 numbers for a channel.
func TestHeartbeat(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 300, Clock: c, Heartbeat: 2 * time.Millisecond})
	l := s.dial(t)
	if n := number(t, l.hello, "heartbeatMs"); n != 2 {
		t.Errorf("got heartbeatMs %d, want 2", n)
	}
	if f := l.until("heartbeat"); number(t, f, "ts") != uint64(c.Now().UnixMilli()) || fmt.Sprint(f["seqs"]) != "map[]" {
		t.Errorf("without subscriptions: got heartbeat %v, want no sequence numbers", f)
	}
	for range 40 {
		s.Step()
	}
	tokens := s.listing.tokens[:230]
	l.send("subscribe", `"channel":"orderbook","tokenIds":["`+strings.Join(idsOf(tokens), `","`)+`"]`)
	l.send("subscribe", `"channel":"trades","tokenIds":["`+tokens[4].id+`"]`)
	l.send("subscribe", `"channel":"market","marketIds":["`+tokens[4].market.id+`"]`)
	l.subscribeWithoutReading(t)
	user := number(t, l.until("user_snapshot"), "seq")
	found := map[string]json.Number{}
	for beats := 0; len(found) < len(tokens); beats++ {
		if beats == 4 {
			t.Fatalf("%d heartbeats have the sequence numbers of %d of %d tokens", beats, len(found), len(tokens))
		}
		seqs := l.until("heartbeat")["seqs"].(object)
		books := seqs["orderbook"].(object)
		if len(books) > 100 || fmt.Sprint(seqs["trades"]) != fmt.Sprintf("map[%s:%d]", tokens[4].id, tokens[4].tape.seq) ||
			fmt.Sprint(seqs["market"]) != "map["+tokens[4].market.id+":1]" || fmt.Sprint(seqs["user"]) != fmt.Sprintf("map[%s:%d]", small, user) {
			t.Fatalf("got a heartbeat with the sequence numbers %v", seqs)
		}
		for id, n := range books {
			found[id] = n.(json.Number)
		}
	}
	for _, tok := range tokens {
		if b, _ := s.Book(tok.id); found[tok.id].String() != strconv.FormatUint(b.Seq, 10) {
			t.Errorf("token %s: got seq %s in the heartbeats, want %d", tok.id, found[tok.id], b.Seq)
		}
	}
}
