package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// TestOpen follows a connection from the hello to the first messages.
func TestOpen(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"), price("T1"), book("T2"), trades("T1"), market.Topic{Channel: market.ChannelMarket, ID: "M1"})
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
			t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		calls := b.calls.take()
		slices.Sort(calls) // snapshots of one channel may come before the next one is up
		wantCalls := []string{
			"message orderbook:T1 e1/1", "message orderbook:T2 e1/1", "message prices:T1 e1/1", "message trades:T1 e1/1",
			"up e1 market:M1", "up e1 orderbook:T1 orderbook:T2", "up e1 prices:T1", "up e1 trades:T1",
		}
		if !slices.Equal(calls, wantCalls) {
			t.Errorf("calls %q", calls)
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

// TestAcknowledged: a confirmation counts for the topics of the latest subscription only, whether it names the request or the ids.
func TestAcknowledged(t *testing.T) {
	marketTopic := func(id string) market.Topic { return market.Topic{Channel: market.ChannelMarket, ID: id} }
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = func(_ *fakeConn, f sentFrame) bool { return f.Type == "subscribe" } // the test answers
	}, func(b *bench) {
		acks := func(want ...string) {
			t.Helper()
			b.settle()
			b.calls.mu.Lock()
			defer b.calls.mu.Unlock()
			if !slices.Equal(b.calls.acks, want) {
				t.Errorf("confirmed %q, want %q", b.calls.acks, want)
			}
			b.calls.acks = nil
		}
		b.watch(marketTopic("M1"), marketTopic("M2"))
		b.settle()
		acks() // nothing before the venue has answered
		b.conn(0).send(`{"type":"subscribed","rid":"1","channel":"market","marketIds":["M1","M2"]}`)
		acks("market:M1 market:M2")
		b.watch(marketTopic("M1")) // again
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

// depths is a Handler that remembers how deep the books and their changes are.
type depths struct {
	*record
	book, changes int
}

func (d *depths) Message(m *market.Message) {
	if d.changes = m.Depth; m.Book != nil {
		d.book = m.Book.Depth
	}
}

// TestDepth expects subscriptions with the depth of the venue's hello, and books and changes with the same depth.
func TestDepth(t *testing.T) {
	for _, test := range []struct{ venue, want int }{{150, 150}, {300, 300}, {0, assumedDepth}} {
		heard := &depths{record: &record{}}
		inBubble(t, func(_ *Config, v *venue) {
			v.handler = heard
			v.hello = fmt.Sprintf(`{"type":"hello","limits":{"depth":%d}}`, test.venue)
		}, func(b *bench) {
			b.watch(book("T1"))
			b.settle()
			b.equal(fmt.Sprint(test), b.venue.sent("subscribe")[0].Depth, test.want)
			b.conn(0).send(`{"type":"orderbook_update","tokenId":"T1","seq":2,"changes":[]}`)
			b.settle()
			b.equal(fmt.Sprint(test, " as heard"), []int{heard.book, heard.changes}, []int{test.want, test.want})
		})
	}
}

// TestBatches: at most 100 ids and frameBytes in a frame, at most framesPerSecond frames in any second.
func TestBatches(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(books(200)...)
		b.settle()
		var sizes []int
		for _, f := range b.venue.sent("subscribe") {
			sizes = append(sizes, len(f.TokenIDs))
		}
		// The topics were watched one after the other while the first frames left, or before.
		total := 0
		for _, n := range sizes {
			total += n
			if n > batchIDs {
				t.Errorf("%d ids in a frame", n)
			}
		}
		b.equal("subscribed", total, 200)

		b.conn(0).drop(1006)
		b.pass(time.Second)
		sizes = nil
		for _, f := range b.venue.sent("subscribe") {
			if f.conn == 1 {
				sizes = append(sizes, len(f.TokenIDs))
			}
		}
		b.equal("after reconnecting", sizes, []int{100, 100})
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
		b.pass(time.Minute)
		frames := b.venue.sent("subscribe")
		total := 0
		for i, f := range frames {
			total += len(f.TokenIDs)
			if len(f.raw) > 1000 {
				t.Errorf("a frame of %d bytes", len(f.raw))
			}
			if i >= 3 && f.at-frames[i-3].at < time.Second {
				t.Errorf("four frames within %s", f.at-frames[i-3].at)
			}
		}
		b.equal("subscribed", total, 200)
	})
}

// TestNoHello: a venue without hello is subscribed with assumed limits after a while.
func TestNoHello(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.hello = "" }, func(b *bench) {
		b.watch(book("T1"))
		b.pass(helloWithin - time.Millisecond)
		b.calls.expect(t)
		b.equal("state", b.Stats().State, StateConnecting)
		b.pass(time.Millisecond)
		b.calls.expect(t, "up  orderbook:T1", "message orderbook:T1 /1")
		b.equal("depth", b.venue.sent("subscribe")[0].Depth, assumedDepth)
		// A hello that comes late is believed all the same.
		b.conn(0).send(helloFrame)
		b.conn(0).snapshot("orderbook", "T1", 7)
		b.settle()
		b.calls.expect(t, "message orderbook:T1 e1/7")
		b.watch(book("T2"))
		b.settle()
		b.calls.expect(t, "up e1 orderbook:T2", "message orderbook:T2 e1/1")
		// Silence is judged by the assumed heartbeat until then, and pongs are no silence.
		b.pass(time.Hour)
		b.equal("dials", len(b.venue.dialled()), 1)
	})
}

// TestHelloLater: what comes before the hello is no hello.
func TestHelloLater(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.hello = "" }, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.conn(0).send(`{"type":"welcome"}`)
		b.pass(time.Second)
		b.calls.expect(t)
		b.conn(0).send(helloFrame)
		b.settle()
		b.calls.expect(t, "up e1 orderbook:T1", "message orderbook:T1 e1/1")
	})
}

// TestPing: every 20 s, and an answer or any other frame within 10 s.
func TestPing(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.pass(time.Minute + time.Second)
		var at []time.Duration
		for _, f := range b.venue.sent("ping") {
			at = append(at, f.at)
		}
		b.equal("pings", at, []time.Duration{20 * time.Second, 40 * time.Second, 60 * time.Second})

		b.calls.take()
		mute := func(c *fakeConn, f sentFrame) bool { return f.Type == "ping" }
		b.venue.set(func() { b.venue.respond = mute })
		b.pass(20 * time.Second)                 // 81 s: one ping is unanswered
		b.conn(0).snapshot("orderbook", "T1", 2) // any frame is a sign of life
		b.settle()
		b.calls.expect(t, "message orderbook:T1 e1/2")
		b.pass(28*time.Second + 999*time.Millisecond) // 10 s after the ping at 100 s
		b.calls.expect(t)
		b.pass(time.Millisecond)
		b.calls.expect(t, "down orderbook:T1")
		b.equal("reasons", b.reasons(), []string{"pong"})
		b.equal("farewell", b.conn(0).code, 0)
		b.pass(500 * time.Millisecond)
		b.calls.expect(t, "up e1 orderbook:T1", "message orderbook:T1 e1/1")
	})
}

// TestPingAnswers: an error that names the ping is an answer, too, and so is a pong that names nothing.
func TestPingAnswers(t *testing.T) {
	for _, answer := range []string{`{"type":"error","rid":%q,"code":"UNKNOWN_TYPE"}`, `{"type":"what","rid":%q}`, `{"type":"pong","was":%q}`} {
		inBubble(t, func(_ *Config, v *venue) {
			v.respond = func(c *fakeConn, f sentFrame) bool {
				if f.Type == "ping" {
					c.send(answer, f.Rid)
				}
				return f.Type == "ping"
			}
		}, func(b *bench) {
			b.pass(time.Hour)
			b.equal(answer, len(b.venue.dialled()), 1)
		})
	}
}

// TestSilence: 2.5 heartbeats without any frame end a connection; any frame is a sign of life.
func TestSilence(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.hello = `{"type":"hello","epoch":"e1","heartbeatMs":2000}`
	}, func(b *bench) {
		b.watch(book("T1"))
		for range 3 {
			b.pass(4 * time.Second)
			b.conn(0).send(`{"type":"whatever"}`)
		}
		b.settle()
		b.calls.take()
		b.pass(5*time.Second - time.Millisecond)
		b.calls.expect(t)
		b.pass(time.Millisecond)
		b.calls.expect(t, "down orderbook:T1")
		b.equal("reasons", b.reasons(), []string{"silence"})
		b.equal("unknown", b.kind("unknown"), 3)
	})
}

// TestGarbage: ten frames in a row that are not JSON end a connection, nine do not.
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
		b.equal("kinds", b.kind("garbage"), 55)
	})
}

// TestArray: the elements of a list are frames of their own, in their order.
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

// TestWriteBlocked: a frame that cannot be written in time ends a connection.
func TestWriteBlocked(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.venue.set(func() { b.venue.stalled = true })
		b.watch(book("T2"))
		b.pass(writeWithin - time.Millisecond)
		b.equal("reasons", b.reasons(), []string(nil))
		b.pass(time.Millisecond)
		b.equal("reasons", b.reasons(), []string{"write"})
		b.venue.set(func() { b.venue.stalled = false })
		b.calls.take()
		b.pass(time.Second)
		b.calls.expect(t, "up e1 orderbook:T1 orderbook:T2", "message orderbook:T1 e1/1", "message orderbook:T2 e1/1")
	})
}

// tired is a Handler that takes its time.
type tired struct {
	record
	rest time.Duration
}

func (h *tired) Message(m *market.Message) {
	time.Sleep(h.rest)
	h.record.Message(m)
}

// TestSlowHandler: what the venue has said in time counts, even if it is looked at late.
func TestSlowHandler(t *testing.T) {
	h := &tired{rest: 12 * time.Second}
	inBubble(t, func(_ *Config, v *venue) {
		h.start = time.Now()
		v.handler = h
		v.hello = `{"type":"hello","epoch":"e1","heartbeatMs":6000}`
	}, func(b *bench) {
		b.watch(book("T1"))
		b.pass(5 * time.Second)
		for range 4 {
			b.conn(0).snapshot("orderbook", "T1", 2)
			b.pass(12 * time.Second)
		}
		b.equal("reasons", b.reasons(), []string(nil))
		b.equal("pings", len(b.venue.sent("ping")) > 0, true)
	})
}

// TestWriteFails: a frame that cannot be written ends a connection, with the code that the venue has closed with if there
// is one.
func TestWriteFails(t *testing.T) {
	for code, want := range map[int]string{0: "write", closeRestart: "restart"} {
		inBubble(t, nil, func(b *bench) {
			b.settle()
			b.venue.set(func() { b.venue.broken = true })
			b.watch(book("T1"))
			b.pass(closeCodeWithin / 2)
			if code != 0 {
				b.conn(0).drop(code)
			}
			b.settle()
			b.venue.set(func() { b.venue.broken = false })
			b.pass(closeCodeWithin / 2)
			b.equal("reasons", b.reasons(), []string{want})
		})
	}
}

// TestDialTimeout: a connection that does not open is given up.
func TestDialTimeout(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.slow = true }, func(b *bench) {
		b.pass(defaultDialWithin - 1)
		b.equal("reasons", b.reasons(), []string(nil))
		b.pass(1)
		b.equal("reasons", b.reasons(), []string{"dial"})
	})
}

// TestPingWaits: a ping is a frame like others, and waits where the venue takes one a second.
func TestPingWaits(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.hello = `{"type":"hello","limits":{"framesPerSecond":1}}`
	}, func(b *bench) {
		b.pass(pingEvery - time.Second/2)
		b.watch(book("T1"))
		b.pass(time.Minute)
		b.equal("ping", b.venue.sent("ping")[0].at, pingEvery-time.Second/2+frameSpan)
	})
}

// TestNoResync: a venue that knows no resync sends a snapshot with another subscription.
func TestNoResync(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = func(c *fakeConn, f sentFrame) bool {
			if f.Type == "resync" {
				c.send(`{"type":"error","rid":%q,"code":"UNSUPPORTED"}`, f.Rid)
			}
			return f.Type == "resync"
		}
	}, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.Resync(book("T1"))
		b.pass(time.Second)
		b.calls.expect(t, "up e1 orderbook:T1", "message orderbook:T1 e1/1")
		b.equal("unsubscribed", len(b.venue.sent("unsubscribe")), 1)
	})
}

// TestLostBetween: a topic that is up, and watched anew when the connection is lost, goes down.
func TestLostBetween(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.hello = `{"type":"hello","epoch":"e1","limits":{"framesPerSecond":1}}`
	}, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.watch(book("T1"))
		b.settle() // to be unsubscribed when the second is over
		b.conn(0).drop(1006)
		b.settle()
		b.calls.expect(t, "down orderbook:T1")
	})
}

// TestResync: a snapshot is asked for once while one is due, after a jitter, and at most once a second.
func TestResync(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.Resync(book("T1")) // not watched
		b.watch(book("T1"))
		b.Resync(book("T1")) // not up: a snapshot follows anyway
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
		b.pass(resyncJitter/2 - ms)
		b.Resync(book("T1"))
		b.settle()
		b.equal("before the jitter", resyncs(), []time.Duration(nil))
		b.pass(ms)
		first := 125 * ms
		b.equal("once", resyncs(), []time.Duration{first})
		b.equal("frame", b.venue.sent("resync")[0].raw, `{"type":"resync","rid":"2","channel":"orderbook","tokenId":"T1"}`)
		// Unanswered, it can be repeated after a second and a half.
		b.pass(resyncWithin - ms)
		b.Resync(book("T1"))
		b.pass(ms)
		b.Resync(book("T1"))
		b.pass(time.Second)
		second := first + resyncWithin + 125*ms
		b.equal("repeated", resyncs(), []time.Duration{first, second})
		// Answered, it can be repeated a second after the last one.
		mute = false
		b.conn(0).snapshot("orderbook", "T1", 5)
		b.settle()
		b.Resync(book("T1"))
		b.pass(time.Second)
		third := second + time.Second + 125*ms
		b.equal("answered", resyncs(), []time.Duration{first, second, third})
		b.Resync(book("T1"))
		b.pass(5 * time.Second)
		b.equal("not sooner than a second", resyncs()[3]-third, time.Second+125*ms)
		b.calls.expect(t, "message orderbook:T1 e1/5", "message orderbook:T1 e1/9", "message orderbook:T1 e1/9")
		b.equal("resyncs", b.Stats().Resyncs, 4)
		// A snapshot that comes while the request waits is what was wanted.
		b.pass(5 * time.Second)
		b.Resync(book("T1"))
		b.settle()
		b.conn(0).snapshot("orderbook", "T1", 10)
		b.pass(5 * time.Second)
		b.equal("not needed", len(resyncs()), 4)
	})
}

// TestResyncLimit: resyncs take at most half of the venue's frames a second, so that other frames pass.
func TestResyncLimit(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(books(200)...)
		b.pass(time.Minute)
		for _, topic := range books(200) {
			b.Resync(topic)
		}
		b.pass(2 * time.Second)
		b.watch(price("new"))
		b.pass(100 * time.Millisecond)
		if n := len(b.venue.sent("subscribe")); b.venue.sent("subscribe")[n-1].Channel != "prices" {
			t.Error("the new topic waits behind the resyncs")
		}
		b.pass(time.Minute)
		frames := b.venue.sent("resync")
		b.equal("resyncs", len(frames), 200)
		for i := 10; i < len(frames); i++ {
			if frames[i].at-frames[i-10].at < time.Second {
				t.Fatalf("eleven resyncs within %s", frames[i].at-frames[i-10].at)
			}
		}
	})
}

// TestBadFrame: a frame with a bad part is not delivered, and a snapshot is asked for, less and less often while they
// stay bad.
func TestBadFrame(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T1","seq":2,"prevSeq":1,"changes":[{"side":"BUY","price":0.4,"size":1},{"side":"BUY"}]}`)
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T9","seq":2,"prevSeq":1,"changes":[{}]}`)
		b.pass(time.Second)
		b.calls.expect(t, "message orderbook:T1 e1/9")
		b.equal("resyncs", len(b.venue.sent("resync")), 1)

		b.venue.set(func() {
			b.venue.respond = func(c *fakeConn, f sentFrame) bool {
				if f.Type == "resync" {
					c.send(`{"type":"orderbook_snapshot","tokenId":"T1","seq":3,"bids":[7],"asks":[]}`)
				}
				return f.Type == "resync"
			}
		})
		b.conn(0).send(`{"type":"orderbook_snapshot","tokenId":"T1","seq":3,"bids":[7],"asks":[]}`)
		b.pass(10 * time.Minute)
		b.calls.expect(t)
		frames := b.venue.sent("resync")[1:]
		if n := len(frames); n < 15 || n > 26 {
			t.Fatalf("%d resyncs in ten minutes", n)
		}
		last := frames[len(frames)-1].at - frames[len(frames)-2].at
		if last < maxResyncEvery || last > maxResyncEvery+time.Second {
			t.Errorf("the last two resyncs are %s apart", last)
		}
	})
}

// TestUnknownToken: of a batch only the topic that the venue does not know is refused, named or not.
func TestUnknownToken(t *testing.T) {
	// most is how many subscriptions it may take to find two of 62.
	most := map[string]int{"named": 3, "named, the rest taken": 1, "not named": 22, "named, without request": 3}
	for name, script := range map[string]func(v *venue) func(c *fakeConn, f sentFrame) bool{
		"named": func(*venue) func(c *fakeConn, f sentFrame) bool {
			return func(c *fakeConn, f sentFrame) bool {
				i := slices.IndexFunc(f.TokenIDs, func(id string) bool { return strings.HasPrefix(id, "bad") })
				if i < 0 {
					return false
				}
				c.send(`{"type":"error","rid":%q,"code":"UNKNOWN_TOKEN","tokenId":%q}`, f.Rid, f.TokenIDs[i])
				return true
			}
		},
		"named, the rest taken": func(*venue) func(c *fakeConn, f sentFrame) bool {
			return func(c *fakeConn, f sentFrame) bool {
				if f.Type != "subscribe" {
					return false
				}
				var good, bad []string
				for _, id := range f.TokenIDs {
					if strings.HasPrefix(id, "bad") {
						bad = append(bad, fmt.Sprintf("%q", id))
					} else {
						good = append(good, id)
					}
				}
				if len(bad) > 0 {
					c.send(`{"type":"error","rid":%q,"code":"UNKNOWN_TOKEN","tokenIds":[%s]}`, f.Rid, strings.Join(bad, ","))
				}
				f.TokenIDs = good
				c.answer(f)
				return true
			}
		},
		"not named": func(*venue) func(c *fakeConn, f sentFrame) bool {
			return func(c *fakeConn, f sentFrame) bool {
				if f.Type != "subscribe" || !slices.ContainsFunc(f.TokenIDs, func(id string) bool { return strings.HasPrefix(id, "bad") }) {
					return false
				}
				c.send(`{"type":"error","rid":%q,"code":"UNKNOWN_TOKEN","error":"unknown token"}`, f.Rid)
				return true
			}
		},
		"named, without request": func(*venue) func(c *fakeConn, f sentFrame) bool {
			return func(c *fakeConn, f sentFrame) bool {
				i := slices.IndexFunc(f.TokenIDs, func(id string) bool { return strings.HasPrefix(id, "bad") })
				if i >= 0 {
					c.send(`{"type":"error","code":"UNKNOWN_TOKEN","tokenId":%q}`, f.TokenIDs[i])
				}
				return i >= 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *Config, v *venue) { v.refuse = errors.New("later") }, func(b *bench) {
				respond := script(b.venue)
				b.watch(books(40)...)
				b.watch(book("bad1"))
				b.watch(books(60)[40:]...)
				b.watch(book("bad2"))
				b.venue.set(func() { b.venue.refuse, b.venue.respond = nil, respond })
				b.pass(20 * time.Second)
				state := map[string]string{}
				for _, call := range b.calls.take() {
					kind, rest, _ := strings.Cut(call, " ")
					switch kind {
					case "up":
						_, ids, _ := strings.Cut(rest, " ")
						for _, id := range strings.Fields(ids) {
							state[id] = "up"
						}
					case "down":
						for _, id := range strings.Fields(rest) {
							state[id] = "down"
						}
					case "message":
						id, _, _ := strings.Cut(rest, " ")
						if state[id] != "up" && state[id] != "good" {
							t.Errorf("%s while it is %q", call, state[id])
						}
						state[id] = "good"
					case "refused":
						id, code, _ := strings.Cut(rest, " ")
						state[id] = code
					}
				}
				for _, topic := range books(60) {
					if s := state["orderbook:"+topic.ID]; s != "good" {
						t.Errorf("%s is %q", topic.ID, s)
					}
				}
				for _, id := range []string{"bad1", "bad2"} {
					if s := state["orderbook:"+id]; s != "NOT_FOUND" {
						t.Errorf("%s is %q", id, s)
					}
				}
				b.equal("topics", b.Stats().Topics, 60)
				b.equal("refused", b.Stats().Refused, 2)
				// They stay refused.
				n := len(b.venue.sent("subscribe"))
				if n > most[name] {
					t.Errorf("%d subscriptions", n)
				}
				b.conn(0).drop(1006)
				b.pass(time.Second)
				for _, f := range b.venue.sent("subscribe")[n:] {
					if slices.Contains(f.TokenIDs, "bad1") {
						t.Error("a refused topic is subscribed again")
					}
				}
			})
		})
	}
}

// TestRefusals: codes and what becomes of them.
func TestRefusals(t *testing.T) {
	for code, want := range map[string]market.Code{
		`"UNKNOWN_MARKET"`: market.CodeNotFound, `"not_found"`: market.CodeNotFound, `"FORBIDDEN"`: market.CodeForbidden,
		`"UNAUTHENTICATED"`: market.CodeUnauthenticated, `"TOO_DEEP"`: market.CodeUnsupported, `403`: market.CodeForbidden, `null`: market.CodeUnsupported,
	} {
		inBubble(t, func(_ *Config, v *venue) {
			v.respond = func(c *fakeConn, f sentFrame) bool {
				c.send(`{"type":"error","rid":%q,"code":%s,"error":"canary %s"}`, f.Rid, code, "secret")
				return true
			}
		}, func(b *bench) {
			b.watch(book("T1"))
			b.settle()
			b.calls.expect(t, "up e1 orderbook:T1", "refused orderbook:T1 "+string(want))
			b.equal("topics", b.Stats().Topics, 0)
			b.watch(book("T1")) // may be tried again
			b.settle()
			b.calls.expect(t, "up e1 orderbook:T1", "refused orderbook:T1 "+string(want))
		})
	}
}

// TestRateLimited: a subscription that the venue puts off is down until it is sent again.
func TestRateLimited(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		n := 0
		v.respond = func(c *fakeConn, f sentFrame) bool {
			if f.Type != "subscribe" {
				return false
			}
			switch n++; n {
			case 1:
				c.send(`{"type":"error","rid":%q,"code":"RATE_LIMITED"}`, f.Rid)
			case 2:
				c.send(`{"type":"error","rid":%q,"code":"RATE_LIMITED","retryAfterMs":7000}`, f.Rid)
			default:
				return false
			}
			return true
		}
	}, func(b *bench) {
		b.watch(book("T1"))
		b.pass(0)
		b.calls.expect(t, "up e1 orderbook:T1", "down orderbook:T1")
		b.pass(time.Second)
		b.calls.expect(t, "up e1 orderbook:T1", "down orderbook:T1")
		b.pass(6 * time.Second)
		b.calls.expect(t)
		b.pass(time.Second)
		b.calls.expect(t, "up e1 orderbook:T1", "message orderbook:T1 e1/1")
		// Of an unnamed request: nothing is sent for a while.
		b.conn(0).send(`{"type":"error","code":"RATE_LIMITED","retryAfterMs":3000}`)
		b.settle()
		b.watch(book("T2"))
		b.pass(2900 * time.Millisecond)
		b.calls.expect(t)
		b.pass(200 * time.Millisecond)
		b.calls.expect(t, "up e1 orderbook:T2", "message orderbook:T2 e1/1")
		b.equal("dials", len(b.venue.dialled()), 1)
	})
}

// TestRateLimitedAgain: the wait doubles up to half a minute while the venue stays busy.
func TestRateLimitedAgain(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = func(c *fakeConn, f sentFrame) bool {
			if f.Type == "subscribe" {
				c.send(`{"type":"error","rid":%q,"code":"TOO_MANY_REQUESTS"}`, f.Rid)
			}
			return f.Type == "subscribe"
		}
	}, func(b *bench) {
		b.watch(book("T1"))
		b.pass(80 * time.Second)
		var waits []time.Duration
		frames := b.venue.sent("subscribe")
		for i := 1; i < len(frames); i++ {
			waits = append(waits, frames[i].at-frames[i-1].at)
		}
		ms := time.Millisecond
		b.equal("waits", waits, []time.Duration{750 * ms, 1500 * ms, 3000 * ms, 6000 * ms, 12000 * ms, 22500 * ms, 22500 * ms})
	})
}

// TestRateLimitedResync: it is asked for again.
func TestRateLimitedResync(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		n := 0
		v.respond = func(c *fakeConn, f sentFrame) bool {
			if f.Type != "resync" || n > 0 {
				return false
			}
			n++
			c.send(`{"type":"error","rid":%q,"code":"RATE_LIMITED","retryAfterMs":4000}`, f.Rid)
			return true
		}
	}, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.Resync(book("T1"))
		b.pass(4 * time.Second)
		b.calls.expect(t)
		b.pass(500 * time.Millisecond)
		b.calls.expect(t, "message orderbook:T1 e1/9")
	})
}
