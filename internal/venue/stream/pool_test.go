package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// TestUnwatch checks that the Handler gets no messages of an unwatched topic. If the topic is watched again, the Handler must get a
// snapshot.
func TestUnwatch(t *testing.T) {
	inBubble(t, func(c *Config, _ *venue) { c.TopicsPerConnection = 2 }, func(b *bench) {
		b.settle()
		b.watch(book("T1"), book("T2"))
		b.settle()
		b.watch(book("T3"))
		b.settle()
		b.calls.take()
		b.Unwatch(book("T1"))
		b.Unwatch(book("T9"))
		b.settle()
		b.equal("frame", b.venue.sent("unsubscribe")[0].raw, `{"type":"unsubscribe","rid":"2","channel":"orderbook","tokenIds":["T1"]}`)
		b.conn(0).snapshot("orderbook", "T1", 2)
		b.settle()
		b.calls.expect(t)

		b.Unwatch(book("T2"))
		b.watch(book("T2"))
		b.settle()
		b.calls.expect(t, "up orderbook:T2", "message orderbook:T2 e1/1")
		frames := b.venue.sent("")
		last := frames[len(frames)-2:]
		b.equal("frames", []any{last[0].Type, last[0].conn, last[1].Type, last[1].conn}, "[unsubscribe 0 subscribe 0]")

		// A second Watch of a watched topic subscribes to the topic again.
		b.watch(book("T2"))
		b.settle()
		b.calls.expect(t, "up orderbook:T2", "message orderbook:T2 e1/1")
		b.equal("topics", b.Stats().Topics, 2)
		b.Unwatch(book("T2"))
		b.settle()
		b.equal("topics", b.Stats().Topics, 1)
	})
}

// TestFullPool checks that a full pool accepts no further topic, even if its connections have different numbers of topics. After a
// reconnect, the pool must still have all topics.
func TestFullPool(t *testing.T) {
	inBubble(t, func(c *Config, _ *venue) { c.TopicsPerConnection, c.Connections = 2, 2 }, func(b *bench) {
		all := books(4)
		b.watch(all...)
		b.settle()
		b.Unwatch(all[0])
		b.Unwatch(all[2])
		b.watch(book("new"), all[0]) // the first connection takes both, so it has one topic more than TopicsPerConnection
		b.equal("error of a fifth topic", b.Watch(book("more"), nil), ErrFull)
		b.settle()
		b.calls.take()
		b.conn(0).drop(1006)
		b.advance(time.Minute)
		for _, call := range b.calls.take() {
			if strings.HasPrefix(call, "refused") {
				t.Errorf("the handler was called with %q", call)
			}
		}
		b.equal("topics", b.Stats().Topics, 4)
	})
}

// TestPool checks that topics fill one connection after another until the pool is full. Each user topic must have its own
// connection.
func TestPool(t *testing.T) {
	inBubble(t, func(c *Config, _ *venue) { c.TopicsPerConnection, c.Connections = 3, 2 }, func(b *bench) {
		all := books(6)
		b.watch(all...)
		if err := b.Watch(book("more"), nil); !errors.Is(err, ErrFull) {
			t.Errorf("Watch of a seventh topic returns %v, want ErrFull", err)
		}
		if err := b.Watch(all[0], nil); err != nil {
			t.Errorf("Watch of a topic that is already watched: got the error %v", err)
		}
		b.settle()
		carried := map[int][]string{}
		for _, f := range b.venue.sent("subscribe") {
			carried[f.conn] = append(carried[f.conn], f.TokenIDs...)
		}
		for conn := range carried {
			slices.Sort(carried[conn])
			carried[conn] = slices.Compact(carried[conn])
		}
		if len(carried) != 2 || len(carried[0]) != 3 || len(carried[1]) != 3 {
			t.Errorf("the connections have the topics %v, want 3 topics on each of 2 connections", carried)
		}
		b.equal("connections", b.Stats().Connections, 2)
		b.Unwatch(all[4])
		b.watch(book("more"))
		b.settle()
		b.equal("topics", b.Stats().Topics, 6)

		for i := range maxIdentities {
			b.watch(user(fmt.Sprint(i)))
		}
		if err := b.Watch(user("more"), nil); !errors.Is(err, ErrFull) {
			t.Errorf("Watch of user topic %d returns %v, want ErrFull", maxIdentities+1, err)
		}
		b.Unwatch(user("0"))
		b.watch(user("more"))
		b.settle()
		b.equal("identities", b.Stats().Identities, maxIdentities)
		b.equal("connections", b.Stats().Connections, 2+maxIdentities)
		for _, bad := range []messages.Topic{{}, {Channel: "weather", ID: "x"}, {Channel: messages.ChannelPrices}, {Channel: messages.ChannelPrices, ID: "a,b"}, {Channel: messages.ChannelPrices, ID: "T", Scope: "s"}} {
			if err := b.Watch(bad, nil); market.CodeOf(err) != market.CodeBadUserInput {
				t.Errorf("Watch(%v) returns %v, want BAD_USER_INPUT", bad, err)
			}
		}
	})
}

func TestWatchBeforeRun(t *testing.T) {
	v := &venue{t: t, start: time.Now(), hello: helloFrame}
	c, err := New(Config{URL: "ws://venue.example", Protocol: testProtocol(), Dial: v, TopicsPerConnection: 1}, &record{})
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []messages.Topic{book("T1"), book("T2"), user("s")} {
		if err := c.Watch(topic, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Topics != 3 || s.State != StateConnecting || s.Connections != 0 || !s.LastMessageAt.IsZero() {
		t.Errorf("the stats before Run are %+v", s)
	}
	if n := len(v.dialled()); n != 0 {
		t.Errorf("the client dials %d times before Run", n)
	}
}

// TestVenueLimit checks that the client opens further connections if the venue accepts fewer topics on each connection than the
// configuration allows. The client must refuse a topic if no connection has room for it.
func TestVenueLimit(t *testing.T) {
	inBubble(t, func(c *Config, v *venue) {
		c.Connections = 3
		v.hello = `{"type":"hello","epoch":"e1","limits":{"topics":4}}`
		v.refuse = errors.New("later")
	}, func(b *bench) {
		b.watch(books(13)...)
		b.venue.set(func() { b.venue.refuse = nil })
		b.advance(5 * time.Second)
		refused, up := 0, 0
		for _, call := range b.calls.take() {
			if strings.HasPrefix(call, "refused") && strings.HasSuffix(call, string(market.CodeRateLimited)) {
				refused++
			}
			if strings.HasPrefix(call, "message") {
				up++
			}
		}
		b.equal("numbers of refused topics and of messages", []int{refused, up}, []int{1, 12})
		b.equal("topics", b.Stats().Topics, 12)
		perConn := map[int]int{}
		for _, f := range b.venue.sent("subscribe") {
			perConn[f.conn] += len(f.TokenIDs)
		}
		b.equal("topics of each connection", perConn, map[int]int{0: 4, 1: 4, 2: 4})
		if err := b.Watch(book("more"), nil); !errors.Is(err, ErrFull) {
			t.Errorf("Watch of a further topic returns %v, want ErrFull", err)
		}
	})
}

// TestIdle checks that the client closes a public connection without topics after idleFor, but keeps the last public connection
// open.
func TestIdle(t *testing.T) {
	inBubble(t, func(c *Config, _ *venue) { c.TopicsPerConnection = 2 }, func(b *bench) {
		b.settle()
		b.equal("connections before the first topic", b.Stats().Connections, 1)
		all := books(4)
		b.watch(all...)
		b.settle()
		b.equal("connections of four topics", b.Stats().Connections, 2)
		for _, topic := range all[2:] {
			b.Unwatch(topic)
		}
		b.advance(idleFor - 1)
		b.watch(book("T9"))
		b.advance(time.Minute)
		b.equal("connections after a topic was watched in time", b.Stats().Connections, 2)
		b.Unwatch(book("T9"))
		b.advance(idleFor)
		b.equal("connections after idleFor", b.Stats().Connections, 1)
		b.equal("close code", b.conn(1).code, closeNormal)
		b.Unwatch(all[0])
		b.Unwatch(all[1])
		b.advance(time.Hour)
		b.equal("connections without any topic", b.Stats().Connections, 1)
		b.equal("dials", len(b.venue.dialled()), 2)
		b.equal("state", b.Stats().State, StateLive)
		// After an outage without topics, the client reopens only one public connection.
		b.watch(all...)
		b.settle()
		b.venue.set(func() { b.venue.refuse = errors.New("away") })
		b.conn(0).drop(1006)
		b.conn(2).drop(1006)
		b.advance(time.Minute)
		for _, topic := range all {
			b.Unwatch(topic)
		}
		b.settle()
		b.venue.set(func() { b.venue.refuse = nil })
		b.advance(time.Minute)
		b.equal("connections after the outage", b.Stats().Connections, 1)
	})
}

// TestState checks that Stats reports the worst state of the public connections.
func TestState(t *testing.T) {
	inBubble(t, func(c *Config, v *venue) {
		c.TopicsPerConnection = 1
		v.refuse = errors.New("away")
	}, func(b *bench) {
		var states []State
		observe := func() {
			t.Helper()
			b.settle()
			states = append(states, b.Stats().State)
		}
		observe()
		b.venue.set(func() { b.venue.refuse = nil })
		b.advance(time.Second)
		since := b.Stats().Since
		b.equal("time of the first connection", since.Sub(b.venue.start), 750*time.Millisecond)
		observe()
		b.watch(book("T1"), book("T2"))
		b.settle()
		observe()
		b.conn(1).drop(1006)
		observe()
		b.advance(time.Second)
		observe()
		b.watch(user("s"))
		b.settle()
		b.venue.set(func() { b.venue.refuse = errors.New("away") })
		b.conn(3).drop(1006) // the connection of the user topic
		observe()
		b.stop()
		states = append(states, b.Stats().State)
		b.equal("states", states, []State{
			StateDisconnected, StateLive, StateLive, StateDisconnected, StateLive, StateLive, StateDisconnected,
		})
	})
}

// TestStopped checks that a second Run fails, and that Watch fails after Run has ended.
func TestStopped(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.settle()
		if err := b.Client.Run(t.Context()); err == nil {
			t.Error("a second Run began")
		}
		b.stop()
		if err := b.Watch(book("T1"), nil); !errors.Is(err, ErrStopped) {
			t.Errorf("Watch after Run returns %v, want ErrStopped", err)
		}
		b.Unwatch(book("T1"))
		b.Resync(book("T1"))
	})
}

// TestLateRejection checks that a late rejection of an earlier subscription does not remove a topic that was watched again since
// then.
func TestLateRejection(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"), user("s1"))
		b.settle()
		b.mu.Lock()
		e, u := b.pool.topics[book("T1")], b.pool.topics[user("s1")]
		turn, k := e.turn, e.conn
		b.mu.Unlock()
		b.watch(book("T1"))
		b.settle()
		b.calls.take()
		b.refuse(k, book("T1"), turn, errUnsupported)
		b.refuse(k, book("T2"), turn, errUnsupported)
		b.calls.expect(t)
		b.equal("results of retire", []bool{b.retire(k), b.retire(u.conn)}, []bool{false, false})
		b.equal("topics", b.Stats().Topics, 2)
	})
}
