package stream

import (
	"slices"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
)

// TestRejectedResync checks that the client subscribes again if the venue rejects a resync.
func TestRejectedResync(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = respondTo("resync", func(c *fakeConn, f sentFrame) { c.send(`{"type":"error","rid":%q,"code":"UNSUPPORTED"}`, f.Rid) })
	}, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.Resync(book("T1"))
		b.advance(time.Second)
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 e1/1")
		b.equal("unsubscribed", len(b.venue.sent("unsubscribe")), 1)
	})
}

// TestLossBeforeResubscription checks that the client calls Handler.Down if the connection is lost after a second Watch, but before
// the new subscription.
func TestLossBeforeResubscription(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.hello = `{"type":"hello","epoch":"e1","limits":{"framesPerSecond":1}}`
	}, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.watch(book("T1"))
		b.settle() // the unsubscribe frame waits for the next second, because of framesPerSecond
		b.conn(0).drop(1006)
		b.settle()
		b.calls.expect(t, "down orderbook:T1")
	})
}

// TestResync checks that repeated calls of Resync send at most one resync per second.
func TestResync(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.Resync(book("T1")) // no effect: the topic is not watched
		b.watch(book("T1"))
		b.Resync(book("T1")) // no effect: the topic is not subscribed yet
		b.settle()
		mute := true
		b.venue.set(func() {
			b.venue.respond = func(c *fakeConn, f sentFrame) bool { return mute && f.Type == "resync" }
		})
		b.calls.take()
		resyncs := func() (at []time.Duration) {
			for _, f := range b.venue.sent("resync") {
				at = append(at, f.at)
			}
			return at
		}
		ms := time.Millisecond
		for range 10 {
			b.Resync(book("T1"))
		}
		b.advance(resyncJitter/2 - ms)
		b.Resync(book("T1"))
		b.settle()
		b.equal("times of resyncs before the jitter has ended", resyncs(), []time.Duration(nil))
		b.advance(ms)
		first := 125 * ms
		b.equal("times of resyncs after the jitter", resyncs(), []time.Duration{first})
		b.equal("frame", b.venue.sent("resync")[0].raw, `{"type":"resync","rid":"2","channel":"orderbook","tokenId":"T1"}`)
		// If the venue does not respond to a resync, the client may send the resync again after resyncWithin.
		b.advance(resyncWithin - ms)
		b.Resync(book("T1"))
		b.advance(ms)
		b.Resync(book("T1"))
		b.advance(time.Second)
		second := first + resyncWithin + 125*ms
		b.equal("times of resyncs after resyncWithin", resyncs(), []time.Duration{first, second})
		// If the venue responds to a resync, the client may send another resync one second later.
		mute = false
		b.conn(0).snapshot("orderbook", "T1", 5)
		b.settle()
		b.Resync(book("T1"))
		b.advance(time.Second)
		third := second + time.Second + 125*ms
		b.equal("times of resyncs after a response", resyncs(), []time.Duration{first, second, third})
		b.Resync(book("T1"))
		b.advance(5 * time.Second)
		b.equal("time between the last two resyncs", resyncs()[3]-third, time.Second+125*ms)
		b.calls.expect(t, "message orderbook:T1 e1/5", "message orderbook:T1 e1/9", "message orderbook:T1 e1/9")
		b.equal("resyncs", b.Stats().Resyncs, 4)
		// If a snapshot arrives before the client sends a requested resync, the client does not send the resync.
		b.advance(5 * time.Second)
		b.Resync(book("T1"))
		b.settle()
		b.conn(0).snapshot("orderbook", "T1", 10)
		b.advance(5 * time.Second)
		b.equal("resyncs after an unrequested snapshot", len(resyncs()), 4)
	})
}

// TestResyncLimit checks that resyncs stay within the frames per second that the venue accepts. The subscription to a new topic is
// the next frame.
func TestResyncLimit(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(books(200)...)
		b.advance(time.Minute)
		for _, topic := range books(200) {
			b.Resync(topic)
		}
		b.advance(2 * time.Second)
		b.watch(price("new"))
		b.advance(frameSpan)
		if n := len(b.venue.sent("subscribe")); b.venue.sent("subscribe")[n-1].Channel != "prices" {
			t.Error("the new topic waits behind the resyncs")
		}
		b.advance(time.Minute)
		frames := b.venue.sent("resync")
		b.equal("resyncs", len(frames), 200)
		for i := assumedFrames; i < len(frames); i++ {
			if frames[i].at-frames[i-assumedFrames].at < time.Second {
				t.Fatalf("%d resyncs within %s", assumedFrames+1, frames[i].at-frames[i-assumedFrames].at)
			}
		}
	})
}

// TestBadFrame checks that a bad frame causes a resync instead of a message. If all frames are bad, the time between two resyncs
// must grow.
func TestBadFrame(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"changes":[{"side":"BUY","price":0.4,"size":1},{"side":"BUY"}]}`)
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T9","seq":2,"prevSeq":1,"changes":[{}]}`)
		b.advance(time.Second)
		b.calls.expect(t, "message orderbook:T1 e1/9")
		b.equal("resyncs", len(b.venue.sent("resync")), 1)

		b.venue.set(func() {
			b.venue.respond = respondTo("resync", func(c *fakeConn, _ sentFrame) {
				c.send(`{"type":"orderbook_snapshot","tokenId":"T1","seq":3,"bids":[7],"asks":[]}`)
			})
		})
		b.conn(0).send(`{"type":"orderbook_snapshot","tokenId":"T1","seq":3,"bids":[7],"asks":[]}`)
		b.advance(10 * time.Minute)
		b.calls.expect(t)
		frames := b.venue.sent("resync")[1:]
		if n := len(frames); n < 15 || n > 26 {
			t.Fatalf("the client sent %d resyncs in ten minutes, want 15 to 26", n)
		}
		last := frames[len(frames)-1].at - frames[len(frames)-2].at
		if last < resyncBackoff.Max || last > resyncBackoff.Max+time.Second {
			t.Errorf("the last two resyncs are %s apart, want about %s", last, resyncBackoff.Max)
		}
	})
}

// numberRecord is a Handler that records the field Internal of each message.
type numberRecord struct {
	record
	mu      sync.Mutex
	numbers []messages.Internal
}

func (r *numberRecord) Message(m *messages.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers = append(r.numbers, m.Internal)
}

func (r *numberRecord) take() []messages.Internal {
	r.mu.Lock()
	defer r.mu.Unlock()
	numbers := r.numbers
	r.numbers = nil
	return numbers
}

// TestInternalNumbers checks the internal numbers of messages. The client must number the messages of a topic, including unusable
// messages. Each socket must have another epoch.
func TestInternalNumbers(t *testing.T) {
	handler := &numberRecord{}
	inBubble(t, func(_ *Config, v *venue) {
		v.handler = handler
		v.respond = respondTo("subscribe", func(c *fakeConn, _ sentFrame) {
			c.send(`{"type":"orderbook_snapshot","tokenId":"T1","bids":[],"asks":[]}`)
		})
	}, func(b *bench) {
		update := `{"type":"orderbook_update","tokenId":"T1","changes":[{"side":"BUY","price":"0.5","size":"1"}]}`
		b.watch(book("T1"))
		b.settle()
		b.conn(0).send("%s", update)
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T2","changes":[]}`) // T2 is not watched
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T1","changes":"unusable"}`)
		b.conn(0).send("%s", update)
		b.settle()
		first := handler.take()
		if len(first) == 0 {
			b.Fatal("no message arrived")
		}
		epoch := first[0].Epoch
		want := []messages.Internal{{Epoch: epoch, Seq: 1}, {Epoch: epoch, Seq: 2}, {Epoch: epoch, Seq: 4}}
		if !slices.Equal(first, want) {
			b.Errorf("the internal numbers are %v; want %v", first, want)
		}
		b.conn(0).drop(1006)
		b.advance(time.Minute)
		if second := handler.take(); len(second) == 0 || second[0].Epoch == epoch || second[0].Seq == 0 {
			b.Errorf("the internal numbers on another socket are %v; want another epoch than %d", second, epoch)
		}
	})
}
