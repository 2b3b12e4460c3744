package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
)

// TestOpen checks the first frames that the client sends, and the first calls of the Handler.
func TestOpen(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"), price("T1"), book("T2"), trades("T1"), messages.Topic{Channel: messages.ChannelMarket, ID: "M1"})
		b.settle()
		var got []string
		for _, f := range b.venue.sent("") {
			got = append(got, f.raw)
		}
		want := []string{
			`{"type":"subscribe","rid":"1","channel":"orderbook","tokenIds":["T1","T2"],"depth":200}`,
			`{"type":"subscribe","rid":"2","channel":"prices","tokenIds":["T1"]}`,
			`{"type":"subscribe","rid":"3","channel":"trades","tokenIds":["T1"]}`,
			`{"type":"subscribe","rid":"4","channel":"market","marketIds":["M1"]}`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("the client sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		calls := b.calls.take()
		slices.Sort(calls) // the snapshots of a channel may arrive before the next channel is up
		wantCalls := []string{
			"message orderbook:T1 e1/1", "message orderbook:T2 e1/1", "message prices:T1 e1/1", "message trades:T1 e1/1",
			"up market:M1", "up orderbook:T1 orderbook:T2", "up prices:T1", "up trades:T1",
		}
		if !slices.Equal(calls, wantCalls) {
			t.Errorf("the handler was called with %q, want %q", calls, wantCalls)
		}
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"changes":[]}`)
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T9","seq":2,"prevSeq":1,"changes":[]}`)
		b.conn(0).send(`{"type":"heartbeat","seqs":{"orderbook":{"T1":2,"T9":3},"trades":{"T1":1}}}`)
		b.conn(0).send(`{"type":"heartbeat","seqs":{"orderbook":{"T9":3}}}`)
		b.settle()
		b.calls.expect(t, "message orderbook:T1 e1/2", "heartbeat e1 orderbook:T1=2 trades:T1=1")
		s := b.Stats()
		b.equal("stats", []any{s.State, s.Topics, s.Connections, s.Reconnects, s.LastMessageAt.Equal(time.Now())}, "[LIVE 5 1 0 true]")
		b.stop()
		b.calls.expect(t, "down market:M1 orderbook:T1 orderbook:T2 prices:T1 trades:T1")
		b.equal("close code", b.conn(0).code, closeNormal)
	})
}

// TestAcknowledged checks that Handler.Acknowledged gets a topic only if the acknowledgement belongs to the last subscription of
// the topic. The acknowledgement contains the rid of the request or the ids of the topics.
func TestAcknowledged(t *testing.T) {
	marketTopic := func(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelMarket, ID: id} }
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = func(_ *fakeConn, f sentFrame) bool { return f.Type == "subscribe" } // the test sends the acknowledgements
	}, func(b *bench) {
		acks := func(want ...string) {
			t.Helper()
			b.settle()
			b.calls.mu.Lock()
			defer b.calls.mu.Unlock()
			if !slices.Equal(b.calls.acks, want) {
				t.Errorf("Acknowledged was called with %q, want %q", b.calls.acks, want)
			}
			b.calls.acks = nil
		}
		b.watch(marketTopic("M1"), marketTopic("M2"))
		b.settle()
		acks() // no call before the venue sends an acknowledgement
		b.conn(0).send(`{"type":"subscribed","rid":"1","channel":"market","marketIds":["M1","M2"]}`)
		acks("market:M1 market:M2")
		b.watch(marketTopic("M1")) // a second subscription to M1, with rid 3
		b.settle()
		b.conn(0).send(`{"type":"subscribed","rid":"1","channel":"market","marketIds":["M1","M2"]}`)
		acks("market:M2")
		b.conn(0).send(`{"type":"subscribed","channel":"market","marketIds":["M1","M9"]}`)
		acks("market:M1")
		b.conn(0).send(`{"type":"subscribed","rid":"3"}`)
		acks("market:M1")
		b.conn(0).send(`{"type":"unsubscribed","channel":"market","marketIds":["M1"]}`)
		b.conn(0).send(`{"type":"subscribed","rid":"77"}`)
		acks()
	})
}

func (b *bench) conn(n int) *fakeConn { return b.venue.conn(n) }

// TestDepth checks that subscriptions have the depth in the venue's hello. If the depth in the hello is 0, they must have the depth
// AssumedDepth.
func TestDepth(t *testing.T) {
	for _, test := range []struct{ venue, want int }{{150, 150}, {300, 300}, {0, AssumedDepth}} {
		inBubble(t, func(_ *Config, v *venue) { v.hello = fmt.Sprintf(`{"type":"hello","limits":{"depth":%d}}`, test.venue) }, func(b *bench) {
			b.watch(book("T1"))
			b.settle()
			b.equal(fmt.Sprint("depth of the subscription in ", test), b.venue.sent("subscribe")[0].Depth, test.want)
		})
	}
}

// TestBatches checks the maximum numbers of ids per frame, bytes per frame, and frames per second.
func TestBatches(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(books(200)...)
		b.settle()
		var sizes []int
		for _, f := range b.venue.sent("subscribe") {
			sizes = append(sizes, len(f.TokenIDs))
		}
		// The client may send the first frames before the test watches the last topics, so the number of ids in each frame can
		// vary.
		total := 0
		for _, n := range sizes {
			total += n
			if n > batchIDs {
				t.Errorf("a frame has %d ids, want at most %d", n, batchIDs)
			}
		}
		b.equal("subscribed", total, 200)

		b.conn(0).drop(1006)
		b.advance(time.Second)
		sizes = nil
		for _, f := range b.venue.sent("subscribe") {
			if f.conn == 1 {
				sizes = append(sizes, len(f.TokenIDs))
			}
		}
		b.equal("ids of each frame after the reconnect", sizes, []int{100, 100})
	})
	inBubble(t, func(_ *Config, v *venue) {
		v.hello = `{"type":"hello","limits":{"frameBytes":1000,"framesPerSecond":3}}`
		v.refuse = errors.New("later")
	}, func(b *bench) {
		for _, topic := range books(200) {
			topic.ID = strings.Repeat("é\"", 8) + topic.ID
			b.watch(topic)
		}
		b.venue.set(func() { b.venue.refuse = nil })
		b.advance(time.Minute)
		frames := b.venue.sent("subscribe")
		total := 0
		for i, f := range frames {
			total += len(f.TokenIDs)
			if len(f.raw) > 1000 {
				t.Errorf("a frame has %d bytes, want at most 1000", len(f.raw))
			}
			if i >= 3 && f.at-frames[i-3].at < time.Second {
				t.Errorf("the client sent four frames within %s, want at most three in a second", f.at-frames[i-3].at)
			}
		}
		b.equal("subscribed", total, 200)
	})
}

// TestNoHello checks that the client subscribes with the assumed limits if the venue sends no hello.
func TestNoHello(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.hello = "" }, func(b *bench) {
		b.watch(book("T1"))
		b.advance(helloWithin - time.Millisecond)
		b.calls.expect(t)
		b.equal("state", b.Stats().State, StateConnecting)
		b.advance(time.Millisecond)
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 /1")
		b.equal("depth", b.venue.sent("subscribe")[0].Depth, AssumedDepth)
		// The client still applies a late hello.
		b.conn(0).send(helloFrame)
		b.conn(0).snapshot("orderbook", "T1", 7)
		b.settle()
		b.calls.expect(t, "message orderbook:T1 e1/7")
		b.watch(book("T2"))
		b.settle()
		b.calls.expect(t, "up orderbook:T2", "message orderbook:T2 e1/1")
		// The pongs keep the connection open.
		b.advance(time.Hour)
		b.equal("dials", len(b.venue.dialled()), 1)
	})
}

// TestFrameBeforeHello checks that the client waits for the hello if another frame arrives first.
func TestFrameBeforeHello(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.hello = "" }, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.conn(0).send(`{"type":"welcome"}`)
		b.advance(time.Second)
		b.calls.expect(t)
		b.conn(0).send(helloFrame)
		b.settle()
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 e1/1")
	})
}

// TestPing checks that the client sends a ping every 20 s. If no frame arrives within 10 s after a ping, the connection must end.
func TestPing(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.advance(time.Minute + time.Second)
		var at []time.Duration
		for _, f := range b.venue.sent("ping") {
			at = append(at, f.at)
		}
		b.equal("times of the pings", at, []time.Duration{20 * time.Second, 40 * time.Second, 60 * time.Second})

		b.calls.take()
		mute := func(c *fakeConn, f sentFrame) bool { return f.Type == "ping" }
		b.venue.set(func() { b.venue.respond = mute })
		b.advance(20 * time.Second)              // until 81 s: the ping sent at 80 s is unanswered
		b.conn(0).snapshot("orderbook", "T1", 2) // any frame counts as a response
		b.settle()
		b.calls.expect(t, "message orderbook:T1 e1/2")
		b.advance(28*time.Second + 999*time.Millisecond) // until 1 ms before 110 s, which is 10 s after the ping sent at 100 s
		b.calls.expect(t)
		b.advance(time.Millisecond)
		b.calls.expect(t, "down orderbook:T1")
		b.equal("reasons", b.reasons(), []string{"pong"})
		b.equal("close code", b.conn(0).code, 0)
		b.advance(750 * time.Millisecond)
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 e1/1")
	})
}

// TestSilence checks that a connection ends if no frame arrives for 2.5 heartbeat intervals.
func TestSilence(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.hello = `{"type":"hello","epoch":"e1","heartbeatMs":2000}`
	}, func(b *bench) {
		b.watch(book("T1"))
		for range 3 {
			b.advance(4 * time.Second)
			b.conn(0).send(`{"type":"whatever"}`)
		}
		b.settle()
		b.calls.take()
		b.advance(5*time.Second - time.Millisecond)
		b.calls.expect(t)
		b.advance(time.Millisecond)
		b.calls.expect(t, "down orderbook:T1")
		b.equal("reasons", b.reasons(), []string{"silence"})
		b.equal("frames of unknown types", b.frameCount("unknown"), 3)
	})
}

// TestGarbage checks that a connection ends after ten consecutive frames that are not JSON, but not after nine.
func TestGarbage(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		for range 5 {
			for range 9 {
				b.conn(0).send("<html>")
			}
			b.conn(0).send(`{"type":"unknown"}`)
		}
		b.settle()
		b.calls.expect(t)
		for range 10 {
			b.conn(0).send("{")
		}
		b.settle()
		b.calls.expect(t, "down orderbook:T1")
		b.equal("reasons", b.reasons(), []string{"garbage"})
		b.equal("garbage frames", b.frameCount("garbage"), 55)
	})
}

// TestArray checks that the client handles the elements of a JSON list as frames, in order.
func TestArray(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"), price("T1"))
		b.settle()
		b.calls.take()
		b.conn(0).send(`[{"type":"price_update","tokenId":"T1","seq":2,"price":0.4},7,{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"changes":[]},{"type":"price_update","tokenId":"T1","seq":3,"price":0.4}]`)
		b.settle()
		b.calls.expect(t, "message prices:T1 e1/2", "message orderbook:T1 e1/2", "message prices:T1 e1/3")
	})
}

// TestWriteBlocked checks that a connection ends if a write takes longer than writeWithin.
func TestWriteBlocked(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.venue.set(func() { b.venue.stalled = true })
		b.watch(book("T2"))
		b.advance(writeWithin - time.Millisecond)
		b.equal("reasons", b.reasons(), []string(nil))
		b.advance(time.Millisecond)
		b.equal("reasons", b.reasons(), []string{"write"})
		b.venue.set(func() { b.venue.stalled = false })
		b.calls.take()
		b.advance(time.Second)
		b.calls.expect(t, "up orderbook:T1 orderbook:T2", "message orderbook:T1 e1/1", "message orderbook:T2 e1/1")
	})
}

// slowHandler is a slow Handler.
type slowHandler struct {
	record
	rest time.Duration
}

func (h *slowHandler) Message(m *messages.Message) {
	time.Sleep(h.rest)
	h.record.Message(m)
}

// TestSlowHandler checks that frames keep the connection open if they arrive before a deadline, even if a slow Handler gets them
// after the deadline.
func TestSlowHandler(t *testing.T) {
	h := &slowHandler{rest: 12 * time.Second}
	inBubble(t, func(_ *Config, v *venue) {
		h.start = time.Now()
		v.handler = h
		v.hello = `{"type":"hello","epoch":"e1","heartbeatMs":6000}`
	}, func(b *bench) {
		b.watch(book("T1"))
		b.advance(5 * time.Second)
		for range 4 {
			b.conn(0).snapshot("orderbook", "T1", 2)
			b.advance(12 * time.Second)
		}
		b.equal("reasons", b.reasons(), []string(nil))
		b.equal("the client has sent pings", len(b.venue.sent("ping")) > 0, true)
	})
}

// TestWriteFails checks that a failed write ends a connection. If the venue also sends a close code, the reported reason must be
// the reason of this code.
func TestWriteFails(t *testing.T) {
	for code, want := range map[int]string{0: "write", closeRestart: "restart"} {
		inBubble(t, nil, func(b *bench) {
			b.settle()
			b.venue.set(func() { b.venue.broken = true })
			b.watch(book("T1"))
			b.advance(closeCodeWithin / 2)
			if code != 0 {
				b.conn(0).drop(code)
			}
			b.settle()
			b.venue.set(func() { b.venue.broken = false })
			b.advance(closeCodeWithin / 2)
			b.equal("reasons", b.reasons(), []string{want})
		})
	}
}

func TestDialTimeout(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.slow = true }, func(b *bench) {
		b.advance(defaultDialWithin - 1)
		b.equal("reasons", b.reasons(), []string(nil))
		b.advance(1)
		b.equal("reasons", b.reasons(), []string{"dial"})
	})
}

// TestFrameLimitDelaysPing checks that a ping counts towards the limit of frames per second.
func TestFrameLimitDelaysPing(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.hello = `{"type":"hello","limits":{"framesPerSecond":1}}`
	}, func(b *bench) {
		b.advance(pingEvery - time.Second/2)
		b.watch(book("T1"))
		b.advance(time.Minute)
		b.equal("time of the ping", b.venue.sent("ping")[0].at, pingEvery-time.Second/2+frameSpan)
	})
}
