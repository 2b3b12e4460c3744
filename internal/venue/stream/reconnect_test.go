package stream

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

// waits returns the times between dials.
func (b *bench) waits() []time.Duration {
	at := b.venue.dialled()
	out := make([]time.Duration, 0, len(at))
	for i := 1; i < len(at); i++ {
		out = append(out, at[i]-at[i-1])
	}
	return out
}

// TestBackoff: 1 s doubling to 30 s with full jitter, which is a half here; over again after a stable minute.
func TestBackoff(t *testing.T) {
	s := time.Second
	inBubble(t, func(_ *Config, v *venue) { v.refuse = errors.New("connection refused") }, func(b *bench) {
		b.pass(80 * s)
		b.equal("waits", b.waits(), []time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 15 * s, 15 * s, 15 * s, 15 * s})
		b.equal("reasons", slices.Compact(b.reasons()), []string{"dial"})
		b.equal("state", b.Stats().State, StateDisconnected)
		b.equal("warnings", strings.Count(b.log.String(), "level=WARN"), 1)

		b.venue.set(func() { b.venue.refuse = nil })
		b.pass(15 * s)
		b.conn(0).drop(1006) // not stable yet
		b.pass(15 * s)
		b.equal("still long", b.waits()[len(b.waits())-1] >= 15*s, true)
		b.pass(time.Minute)
		n := len(b.waits())
		b.conn(1).drop(1006)
		b.pass(s/2 - 1)
		b.equal("short again", len(b.waits()), n)
		b.pass(1)
		b.equal("short again", len(b.waits()), n+1)
		b.equal("reconnects", b.Stats().Reconnects, 2)
	})
}

// TestWaitEnds: the wait stops with the context.
func TestWaitEnds(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.settle()
		b.conn(0).drop(closeLimited)
		b.settle()
		before := time.Now()
		b.stop()
		b.equal("stopped after", time.Since(before), time.Duration(0))
	})
}

// TestCloseCodes: the waits of rule 6.
func TestCloseCodes(t *testing.T) {
	for _, test := range []struct {
		err    error
		wait   time.Duration
		reason string
	}{
		{&CloseError{1000}, 500 * time.Millisecond, "closed"},
		{&CloseError{1006}, 500 * time.Millisecond, "closed"},
		{&CloseError{closeCredentials}, 500 * time.Millisecond, "credentials"},
		{&CloseError{closeSlow}, 0, "slow"},
		{&CloseError{closeRestart}, 5 * time.Second, "restart"},
		{&CloseError{closeLimited}, time.Minute, "limited"},
		{fmt.Errorf("reading: %w", &CloseError{closeLimited}), time.Minute, "limited"},
		{io.ErrUnexpectedEOF, 500 * time.Millisecond, "closed"},
	} {
		inBubble(t, nil, func(b *bench) {
			b.watch(book("T1"))
			b.pass(10 * time.Second)
			b.calls.take()
			b.conn(0).end(test.err)
			if test.wait > 0 {
				b.pass(test.wait - 1)
				b.calls.expect(t, "down orderbook:T1")
				b.pass(1)
				b.calls.expect(t, "up e1 orderbook:T1", "message orderbook:T1 e1/1")
			} else {
				b.settle()
				b.calls.expect(t, "down orderbook:T1", "up e1 orderbook:T1", "message orderbook:T1 e1/1")
			}
			b.equal("reasons", b.reasons(), []string{test.reason})
			b.equal("reconnects", b.Stats().Reconnects, 1)
		})
	}
}

// TestTooSlowAgain: a venue that finds us slow each time is not dialled in a loop.
func TestTooSlowAgain(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.settle()
		for i := range 5 {
			b.conn(i).drop(closeSlow)
			b.pass(10 * time.Second)
		}
		b.pass(time.Minute)
		b.conn(5).drop(closeSlow)
		b.settle()
		b.conn(6)
		b.conn(6).drop(closeSlow)
		b.settle()
		b.equal("connections", len(b.venue.dialled()), 7)
		b.pass(time.Minute)
		b.equal("connections", len(b.venue.dialled()), 8)
	})
}

// TestHandshake: the venue may say how long to wait.
func TestHandshake(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.refuse = &HandshakeError{Status: 429, RetryAfter: 20 * time.Second} }, func(b *bench) {
		b.pass(45 * time.Second)
		b.equal("waits", b.waits(), []time.Duration{20 * time.Second, 20 * time.Second})
	})
}

// TestReconnectAsked: the handler may drop a connection; a wish from before it was open is void.
func TestReconnectAsked(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.Reconnect(book("T1"))
		b.watch(book("T1"))
		b.Reconnect(book("T1"))
		b.settle()
		b.calls.expect(t, "up e1 orderbook:T1", "message orderbook:T1 e1/1")
		b.Reconnect(book("T1"))
		b.pass(500 * time.Millisecond)
		b.calls.expect(t, "down orderbook:T1", "up e1 orderbook:T1", "message orderbook:T1 e1/1")
		b.equal("reasons", b.reasons(), []string{"asked"})
	})
	inBubble(t, func(_ *Config, v *venue) { v.hello = "" }, func(b *bench) {
		b.watch(book("T1"))
		b.pass(time.Second)
		b.Reconnect(book("T1"))
		b.Resync(book("T1"))
		b.pass(time.Minute)
		b.equal("reasons", b.reasons(), []string(nil))
		b.equal("resyncs", len(b.venue.sent("resync")), 0)
		b.calls.expect(t, "up  orderbook:T1", "message orderbook:T1 /1")
	})
}

// TestOutage: topics that are watched and unwatched while there is no connection are what is subscribed afterwards.
func TestOutage(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"), book("T2"), price("T1"))
		b.settle()
		b.calls.take()
		b.venue.set(func() { b.venue.refuse = errors.New("away") })
		b.conn(0).drop(1006)
		b.pass(10 * time.Second)
		b.calls.expect(t, "down orderbook:T1 orderbook:T2 prices:T1")
		b.Unwatch(book("T1"))
		b.watch(book("T3"), book("T4"))
		b.Unwatch(book("T4"))
		b.Unwatch(price("T1"))
		b.watch(price("T1")) // anew
		b.Resync(book("T2"))
		b.Reconnect(book("T2"))
		b.equal("topics", b.Stats().Topics, 3)
		b.venue.set(func() { b.venue.refuse = nil })
		b.pass(time.Minute)
		calls := b.calls.take()
		slices.Sort(calls)
		b.equal("calls", calls, []string{"message orderbook:T2 e1/1", "message orderbook:T3 e1/1", "message prices:T1 e1/1",
			"up e1 orderbook:T2 orderbook:T3", "up e1 prices:T1"})
		b.equal("unsubscribed", len(b.venue.sent("unsubscribe")), 0)
		b.equal("resyncs", len(b.venue.sent("resync")), 0)
	})
}

// TestUnwatch: what is unwatched is unsubscribed and not delivered; what is watched again comes with a snapshot, on the
// same connection.
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
		b.calls.expect(t, "up e1 orderbook:T2", "message orderbook:T2 e1/1")
		frames := b.venue.sent("")
		last := frames[len(frames)-2:]
		b.equal("frames", []any{last[0].Type, last[0].conn, last[1].Type, last[1].conn}, "[unsubscribe 0 subscribe 0]")

		// Watched twice: the handler wants to begin anew.
		b.watch(book("T2"))
		b.settle()
		b.calls.expect(t, "up e1 orderbook:T2", "message orderbook:T2 e1/1")
		b.equal("topics", b.Stats().Topics, 2)
		b.Unwatch(book("T2"))
		b.settle()
		b.equal("topics", b.Stats().Topics, 1)
	})
}

// TestPool: topics fill connections in turn, until there is no room.
func TestPool(t *testing.T) {
	inBubble(t, func(c *Config, _ *venue) { c.TopicsPerConnection, c.Connections, c.Identities = 3, 2, 2 }, func(b *bench) {
		all := books(6)
		b.watch(all...)
		if err := b.Watch(book("more"), nil); !errors.Is(err, ErrFull) {
			t.Errorf("the seventh topic: %v", err)
		}
		if err := b.Watch(all[0], nil); err != nil {
			t.Errorf("a topic that is there: %v", err)
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
			t.Errorf("carried %v", carried)
		}
		b.equal("connections", b.Stats().Connections, 2)
		b.Unwatch(all[4])
		b.watch(book("more"))
		b.settle()
		b.equal("topics", b.Stats().Topics, 6)

		b.watch(user("s1"), user("s2"))
		if err := b.Watch(user("s3"), nil); !errors.Is(err, ErrFull) {
			t.Errorf("the third identity: %v", err)
		}
		b.Unwatch(user("s1"))
		b.watch(user("s3"))
		b.settle()
		b.equal("identities", b.Stats().Identities, 2)
		b.equal("connections", b.Stats().Connections, 4)
		for _, bad := range []market.Topic{{}, {Channel: "weather", ID: "x"}, {Channel: market.ChannelPrices}, {Channel: market.ChannelPrices, ID: "a,b"}, {Channel: market.ChannelPrices, ID: "T", Scope: "s"}} {
			if err := b.Watch(bad, nil); market.CodeOf(err) != market.CodeBadUserInput {
				t.Errorf("Watch(%v): %v", bad, err)
			}
		}
	})
}

// TestWatchBeforeRun: topics may be watched before Run.
func TestWatchBeforeRun(t *testing.T) {
	v := &venue{t: t, start: time.Now(), hello: helloFrame}
	c, err := New(Config{URL: "ws://venue.example", Dial: v, TopicsPerConnection: 1}, &record{})
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []market.Topic{book("T1"), book("T2"), user("s")} {
		if err := c.Watch(topic, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Topics != 3 || s.State != StateConnecting || s.Connections != 0 || !s.LastMessageAt.IsZero() {
		t.Errorf("%+v", s)
	}
	if n := len(v.dialled()); n != 0 {
		t.Errorf("%d dials before Run", n)
	}
}

// TestVenueLimit: a venue that takes fewer topics on a connection gets them on more.
func TestVenueLimit(t *testing.T) {
	inBubble(t, func(c *Config, v *venue) {
		c.Connections = 3
		v.hello = `{"type":"hello","epoch":"e1","limits":{"topics":4}}`
		v.refuse = errors.New("later")
	}, func(b *bench) {
		b.watch(books(13)...)
		b.venue.set(func() { b.venue.refuse = nil })
		b.pass(5 * time.Second)
		refused, up := 0, 0
		for _, call := range b.calls.take() {
			if strings.HasPrefix(call, "refused") && strings.HasSuffix(call, string(market.CodeRateLimited)) {
				refused++
			}
			if strings.HasPrefix(call, "message") {
				up++
			}
		}
		b.equal("refused, up", []int{refused, up}, []int{1, 12})
		b.equal("topics", b.Stats().Topics, 12)
		perConn := map[int]int{}
		for _, f := range b.venue.sent("subscribe") {
			perConn[f.conn] += len(f.TokenIDs)
		}
		b.equal("on each", perConn, map[int]int{0: 4, 1: 4, 2: 4})
		if err := b.Watch(book("more"), nil); !errors.Is(err, ErrFull) {
			t.Errorf("the next topic: %v", err)
		}
	})
}

// TestIdle: a surplus connection without topics is closed after a while, the last one stays.
func TestIdle(t *testing.T) {
	inBubble(t, func(c *Config, _ *venue) { c.TopicsPerConnection = 2 }, func(b *bench) {
		b.settle()
		b.equal("idle", b.Stats().Connections, 1)
		all := books(4)
		b.watch(all...)
		b.settle()
		b.equal("in use", b.Stats().Connections, 2)
		for _, topic := range all[2:] {
			b.Unwatch(topic)
		}
		b.pass(idleFor - 1)
		b.watch(book("T9"))
		b.pass(time.Minute)
		b.equal("in use again", b.Stats().Connections, 2)
		b.Unwatch(book("T9"))
		b.pass(idleFor)
		b.equal("surplus", b.Stats().Connections, 1)
		b.equal("farewell", b.conn(1).code, closeNormal)
		b.Unwatch(all[0])
		b.Unwatch(all[1])
		b.pass(time.Hour)
		b.equal("the last", b.Stats().Connections, 1)
		b.equal("dials", len(b.venue.dialled()), 2)
		b.equal("state", b.Stats().State, StateLive)
		// In an outage a surplus connection is not opened again.
		b.watch(all...)
		b.settle()
		b.venue.set(func() { b.venue.refuse = errors.New("away") })
		b.conn(0).drop(1006)
		b.conn(2).drop(1006)
		b.pass(time.Minute)
		for _, topic := range all {
			b.Unwatch(topic)
		}
		b.settle()
		b.venue.set(func() { b.venue.refuse = nil })
		b.pass(time.Minute)
		b.equal("after the outage", b.Stats().Connections, 1)
	})
}

// TestState: the pool's state is that of its worst connection, and each change is told.
func TestState(t *testing.T) {
	inBubble(t, func(c *Config, v *venue) {
		c.TopicsPerConnection = 1
		v.refuse = errors.New("away")
	}, func(b *bench) {
		var states []State
		observe := func() {
			t.Helper()
			changed := b.Changed()
			b.settle()
			states = append(states, b.Stats().State)
			select {
			case <-changed:
				states = append(states, b.Stats().State)
			default:
			}
		}
		b.settle()
		observe()
		b.venue.set(func() { b.venue.refuse = nil })
		changed := b.Changed()
		b.pass(time.Second)
		<-changed
		since := b.Stats().Since
		b.equal("since", since.Sub(b.venue.start), 500*time.Millisecond)
		observe()
		b.watch(book("T1"), book("T2"))
		b.settle()
		observe()
		changed = b.Changed()
		b.conn(1).drop(1006)
		<-changed
		observe()
		b.pass(time.Second)
		observe()
		b.watch(user("s"))
		b.settle()
		b.venue.set(func() { b.venue.refuse = errors.New("away") })
		b.conn(3).drop(1006) // the user's
		observe()
		b.stop()
		states = append(states, b.Stats().State)
		b.equal("states", states, []State{
			StateDisconnected, StateLive, StateLive, StateDisconnected, StateLive, StateLive, StateDisconnected,
		})
	})
}

// TestStopped: after Run there is nothing to watch, and Run is for once.
func TestStopped(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.settle()
		if err := b.Client.Run(t.Context()); err == nil {
			t.Error("a second Run began")
		}
		b.stop()
		if err := b.Watch(book("T1"), nil); !errors.Is(err, ErrStopped) {
			t.Errorf("Watch after Run: %v", err)
		}
		b.Unwatch(book("T1"))
		b.Resync(book("T1"))
		b.Reconnect(book("T1"))
	})
}

// TestUsers: each user topic has a socket of its own, authenticates first, and gets the frames without address.
func TestUsers(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		for _, scope := range []string{"s1", "s2"} {
			if err := b.Watch(user(scope), credentials(t, `{"apiKey":"`+scope+`","secret":"x","passphrase":"y"}`)); err != nil {
				t.Fatal(err)
			}
			b.settle()
		}
		b.calls.expect(t, "up e1 orderbook:T1", "message orderbook:T1 e1/1",
			"up e1 user:"+address+"@s1", "message user:"+address+"@s1 e1/1",
			"up e1 user:"+address+"@s2", "message user:"+address+"@s2 e1/1")
		for i, scope := range []string{"s1", "s2"} {
			var types []string
			for _, f := range b.venue.sent("") {
				if f.conn == i+1 {
					types = append(types, f.Type+f.Channel)
					if f.Type == "auth" && (f.Credentials["apiKey"] != scope || f.Address != address) {
						t.Errorf("auth %s", f.raw)
					}
				}
			}
			b.equal("frames", types, []string{"auth", "subscribeuser"})
		}
		// With the address, in any case, and with another one.
		b.conn(1).send(`{"type":"balance_update","address":%q,"seq":2,"prevSeq":1,"balance":{"cashBalance":1}}`, strings.ToUpper(address[:2])+strings.ToUpper(address[2:]))
		b.conn(1).send(`{"type":"balance_update","address":"0x2222222222222222222222222222222222222222","seq":2,"prevSeq":1,"balance":{"cashBalance":1}}`)
		b.conn(1).send(`{"type":"heartbeat","seqs":{"user":{%q:2}}}`, address)
		b.settle()
		b.calls.expect(t, "message user:"+address+"@s1 e1/2", "heartbeat e1 user:"+address+"@s1=2")
		b.Resync(user("s2"))
		b.pass(time.Second)
		b.equal("resync", b.venue.sent("resync")[0].raw, `{"type":"resync","rid":"3","channel":"user","address":"`+address+`"}`)
		b.calls.expect(t, "message user:"+address+"@s2 e1/9")
		// After a loss it authenticates again.
		b.conn(1).drop(1006)
		b.pass(time.Second)
		b.calls.expect(t, "down user:"+address+"@s1", "up e1 user:"+address+"@s1", "message user:"+address+"@s1 e1/1")
		b.equal("auths", len(b.venue.sent("auth")), 3)
		// Who leaves is disconnected at once.
		b.Unwatch(user("s1"))
		b.settle()
		b.equal("farewell", b.conn(3).code, closeNormal)
		b.equal("connections", b.Stats().Connections, 2)
		b.Unwatch(user("s2"))
		b.watch(user("s2"))
		b.settle()
		b.equal("connections", b.Stats().Connections, 2)
	})
}

// TestUserLeavesEarly: a user topic that is unwatched while its socket is being opened is let go of.
func TestUserLeavesEarly(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.hello = "" }, func(b *bench) {
		b.settle()
		if err := b.Watch(user("s1"), credentials(t, canary)); err != nil {
			t.Fatal(err)
		}
		b.settle()
		b.Unwatch(user("s1"))
		b.settle()
		b.equal("farewell", b.conn(1).code, closeNormal)
		b.equal("auths", len(b.venue.sent("auth")), 0)
		b.calls.expect(t)
	})
}

// TestUserLeavesInOutage: nobody dials for a user topic that is unwatched.
func TestUserLeavesInOutage(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.refuse = errors.New("away") }, func(b *bench) {
		b.watch(user("s1"))
		b.pass(time.Minute)
		b.Unwatch(user("s1"))
		b.settle()
		b.mu.Lock()
		b.equal("left", []int{len(b.pool.users), len(b.pool.topics)}, []int{0, 0})
		b.mu.Unlock()
		n := len(b.venue.dialled())
		b.pass(time.Minute)
		b.equal("dials", len(b.venue.dialled())-n, 4)
	})
}

// TestLateVerdicts: what was decided about a connection or a topic does not hold when it was watched meanwhile.
func TestLateVerdicts(t *testing.T) {
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
		b.equal("retired", []bool{b.retire(k), b.retire(u.conn)}, []bool{false, false})
		b.equal("topics", b.Stats().Topics, 2)
	})
}

// TestWorst: the order of states is that of the connections' trouble, not that of the connections.
func TestWorst(t *testing.T) {
	c, err := New(Config{URL: "ws://venue.example"}, &record{})
	if err != nil {
		t.Fatal(err)
	}
	live, connecting, lost := StateLive, StateConnecting, StateDisconnected
	for _, test := range []struct {
		states []State
		want   State
	}{
		{nil, lost}, {[]State{live}, live}, {[]State{live, connecting}, connecting}, {[]State{connecting, live}, connecting},
		{[]State{connecting, lost, live}, lost}, {[]State{lost, connecting}, lost},
	} {
		c.mu.Lock()
		c.pool.public = nil
		for _, s := range test.states {
			c.pool.public = append(c.pool.public, &connection{state: s})
		}
		c.updateState()
		c.mu.Unlock()
		if got := c.Stats().State; got != test.want {
			t.Errorf("%v: %s, want %s", test.states, got, test.want)
		}
	}
}

// TestAuthUnanswered: a venue that says nothing to auth gets the subscription all the same.
func TestAuthUnanswered(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = func(_ *fakeConn, f sentFrame) bool { return f.Type == "auth" }
	}, func(b *bench) {
		if err := b.Watch(user("s1"), credentials(t, canary)); err != nil {
			t.Fatal(err)
		}
		b.pass(authWithin - 1)
		b.calls.expect(t)
		b.pass(1)
		b.calls.expect(t, "up e1 user:"+address+"@s1", "message user:"+address+"@s1 e1/1")
	})
}

// TestAuthRefused: refused credentials end the topic, whichever way the venue says it, and are not tried again.
func TestAuthRefused(t *testing.T) {
	for name, test := range map[string]struct {
		respond func(c *fakeConn, f sentFrame) bool
		code    market.Code
	}{
		"close": {func(c *fakeConn, f sentFrame) bool {
			if f.Type == "auth" {
				c.drop(closeCredentials)
			}
			return f.Type == "auth"
		}, market.CodeUnauthenticated},
		"error": {func(c *fakeConn, f sentFrame) bool {
			if f.Type == "auth" {
				c.send(`{"type":"error","rid":%q,"code":"UNAUTHENTICATED","error":"no such key canary-key-7f3a"}`, f.Rid)
			}
			return f.Type == "auth"
		}, market.CodeUnauthenticated},
		"error without request": {func(c *fakeConn, f sentFrame) bool {
			if f.Type == "auth" {
				c.send(`{"type":"error","code":"UNAUTHORIZED","error":"no such key canary-key-7f3a"}`)
			}
			return f.Type == "auth"
		}, market.CodeUnauthenticated},
		"foreign address": {func(c *fakeConn, f sentFrame) bool {
			if f.Type == "auth" {
				c.send(`{"type":"error","rid":%q,"code":"FORBIDDEN"}`, f.Rid)
			}
			return f.Type == "auth"
		}, market.CodeForbidden},
		"at the subscription": {func(c *fakeConn, f sentFrame) bool {
			if f.Type == "subscribe" {
				c.send(`{"type":"error","rid":%q,"code":"FORBIDDEN"}`, f.Rid)
			}
			return f.Type == "subscribe"
		}, market.CodeForbidden},
		"late": {func(c *fakeConn, f sentFrame) bool {
			if f.Type == "subscribe" {
				c.answer(f)
				c.send(`{"type":"error","code":"UNAUTHENTICATED"}`)
			}
			return f.Type == "subscribe"
		}, market.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				b.settle()
				b.venue.set(func() { b.venue.respond = test.respond })
				if err := b.Watch(user("s1"), credentials(t, canary)); err != nil {
					t.Fatal(err)
				}
				b.pass(10 * time.Minute)
				calls := b.calls.take()
				if len(calls) == 0 || calls[len(calls)-1] != "refused user:"+address+"@s1 "+string(test.code) {
					t.Errorf("calls %q", calls)
				}
				b.equal("identities", b.Stats().Identities, 0)
				b.equal("connections", b.Stats().Connections, 1)
				b.equal("dials", len(b.venue.dialled()), 2)
				b.equal("state", b.Stats().State, StateLive)
			})
		})
	}
}

// TestAuthPutOff: a venue that is too busy to authenticate is asked again later.
func TestAuthPutOff(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		n := 0
		v.respond = func(c *fakeConn, f sentFrame) bool {
			if n++; f.Type == "auth" && n == 1 {
				c.send(`{"type":"error","rid":%q,"code":"RATE_LIMITED"}`, f.Rid)
				return true
			}
			return false
		}
	}, func(b *bench) {
		if err := b.Watch(user("s1"), credentials(t, canary)); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Second)
		b.calls.expect(t, "up e1 user:"+address+"@s1", "message user:"+address+"@s1 e1/1")
	})
}

// TestSecrets: credentials are in auth frames and nowhere else; the harness looks into logs and errors.
func TestSecrets(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.settle()
		creds := credentials(t, canary)
		if err := b.Watch(user("s1"), creds); err != nil {
			t.Fatal(err)
		}
		b.settle()
		b.mu.Lock()
		if s := fmt.Sprintf("%+v %v", *b.pool.topics[user("s1")], creds); strings.Contains(s, "canary") {
			t.Errorf("a secret prints: %s", s)
		}
		b.mu.Unlock()
		b.conn(1).send(`{"type":"error","rid":"2","code":"canary-code","error":"canary"}`)
		b.conn(0).end(&CloseError{Code: 1008})
		b.pass(time.Second)
		for _, f := range b.venue.sent("") {
			if f.Type != "auth" && strings.Contains(f.raw, "canary") {
				t.Errorf("a secret in %s", f.raw)
			}
			if f.Type == "auth" && f.Credentials["extra"] != "canary-extra" {
				t.Errorf("auth %s", f.raw)
			}
		}
		if !strings.Contains(b.log.String(), "wss://venue.example/ws") {
			t.Errorf("the log does not name the stream:\n%s", b.log)
		}
	})
	for _, bad := range []string{"", "http://canary.example", "ws://", "ws://%zzcanary", "canary", "wss:///canary"} {
		if _, err := New(Config{URL: bad}, &record{}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("New(%q): %v", bad, err)
		}
	}
	if _, err := New(Config{URL: "ws://venue.example"}, nil); err == nil {
		t.Error("a client without handler")
	}
	if _, err := New(Config{URL: "ws://venue.example", Connections: -1}, &record{}); err == nil {
		t.Error("a negative limit")
	}
}
