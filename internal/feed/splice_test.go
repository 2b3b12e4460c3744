package feed

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// join offers the topic a book that was read over REST.
func (p *player) join(number, value string) bool {
	b := parseBook("T", value)
	b.Epoch, b.Seq, _, b.Timestamp = numbers(number)
	return p.w.Join(b, reads.Meta{ReceivedAt: time.Now()})
}

func TestSplice(t *testing.T) {
	for _, s := range append(spliceScripts, eventScripts...) {
		t.Run(s.channel+"/"+s.name, func(t *testing.T) { s.run(t) })
	}
}

// TestSpliceOfABufferThatOverflowed checks that the feed uses only a REST book that contains the dropped changes after the buffer
// of changes has overflowed.
func TestSpliceOfABufferThatOverflowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayer(t, bookOf("T"))
		p.upNow(bookOf("T"))
		const n = 2*maxBuffered + 7
		for i := range n {
			p.Message(deltaMessage("T", "A", uint64(i+1), fmt.Sprintf("b.50x%d", i+1)))
		}
		kept := n - len(p.w.topic.buffered) // the number of the last dropped change
		if p.join(fmt.Sprintf("A%d", kept-1), ".50x900 | .60x1") {
			t.Fatalf("a book that lacks a dropped change was joined")
		}
		if !p.join(fmt.Sprintf("A%d", kept), ".50x1 | .60x1") {
			t.Fatalf("a book with all dropped changes was not joined")
		}
		if s, _ := p.w.State(); !s.Live || showBook(s.Book) != fmt.Sprintf(".50x%d | .60x1", n) || p.Stats().Spliced != 1 {
			t.Errorf("the book is %s (live: %t), want a live book with the last change", showBook(s.Book), s.Live)
		}
	})
}

func TestSplicedBookIsCutToTheDepthOfItsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayer(t, bookOf("T"))
		p.upNow(bookOf("T"))
		m := deltaMessage("T", "A", 42, "b.50x2")
		m.Depth = 2
		p.Message(m)
		p.join("A41", ".50x1 .49x1 .48x1 | .60x1")
		s, _ := p.w.State()
		if showBook(s.Book) != ".50x2 .49x1 | .60x1" || s.Book.Depth != 2 || s.Book.Covers(3) {
			t.Errorf("the book is %s with the depth %d, want .50x2 .49x1 | .60x1 with the depth 2", showBook(s.Book), s.Book.Depth)
		}
	})
}

// TestASilentTopicDisturbsNoOther checks that topics without any message never touch the connection, and that a topic with messages
// stays live beside them.
func TestASilentTopicDisturbsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Snapshots = nil })
		reader, _ := r.watch(t, priceOf("live"))
		defer reader.Close()
		topics := []messages.Topic{priceOf("live"), priceOf("T"), bookOf("T"), tradesOf("T"), {Channel: messages.ChannelMarket, ID: "M"}, userOf("0xa")}
		for _, key := range topics[1:] {
			watchTopic(t, reader, key, "")
		}
		r.up.take()
		r.Up(topics)
		r.Acknowledged(topics)
		r.Message(priceMessage("live", "A", 1, ".50"))
		time.Sleep(2*time.Second + time.Millisecond)
		r.wantCalls(t, "watch orderbook T") // only the book needs a snapshot
		time.Sleep(time.Hour)
		watches := r.up.take()
		for _, call := range watches {
			if call != "watch orderbook T" {
				t.Errorf("the feed made the call %q for a silent topic, want new subscriptions of the book alone", call)
			}
		}
		if n := len(watches); n < 25 || n > 40 {
			t.Errorf("the book was subscribed %d times in an hour, want at growing intervals of at most two minutes", n)
		}
		if k := r.sink.entry(priceOf("live")); !k.fresh() {
			t.Error("the price that has a message is not live any more")
		}
	})
}
