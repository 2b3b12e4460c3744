package demo

import (
	"maps"
	"testing"
	"time"
)

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
