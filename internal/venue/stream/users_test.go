package stream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// TestUsers checks that each user topic has its own connection, and that the client first authenticates on it. The client must
// accept frames without an address and ignore frames with the address of another user.
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
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 e1/1",
			"up user:"+address+"@s1", "message user:"+address+"@s1 e1/1",
			"up user:"+address+"@s2", "message user:"+address+"@s2 e1/1")
		for i, scope := range []string{"s1", "s2"} {
			var types []string
			for _, f := range b.venue.sent("") {
				if f.conn == i+1 {
					types = append(types, f.Type+f.Channel)
					if f.Type == "auth" && (f.Credentials["apiKey"] != scope || f.Address != address) {
						t.Errorf("the auth frame is %s", f.raw)
					}
				}
			}
			b.equal("frames", types, []string{"auth", "subscribeuser"})
		}
		// The first frame has the user's address in upper case. The second frame has the address of another user.
		b.conn(1).send(`{"type":"balance_update","address":%q,"seq":2,"prevSeq":1,"balance":{"cashBalance":1}}`, strings.ToUpper(address[:2])+strings.ToUpper(address[2:]))
		b.conn(1).send(`{"type":"balance_update","address":"0x2222222222222222222222222222222222222222","seq":2,"prevSeq":1,"balance":{"cashBalance":1}}`)
		b.conn(1).send(`{"type":"heartbeat","seqs":{"user":{%q:2}}}`, address)
		b.settle()
		b.calls.expect(t, "message user:"+address+"@s1 e1/2", "heartbeat e1 user:"+address+"@s1=2")
		b.Resync(user("s2"))
		b.advance(time.Second)
		b.equal("resync", b.venue.sent("resync")[0].raw, `{"type":"resync","rid":"3","channel":"user","address":"`+address+`"}`)
		b.calls.expect(t, "message user:"+address+"@s2 e1/9")
		// On a new connection, the client authenticates again.
		b.conn(1).drop(1006)
		b.advance(time.Second)
		b.calls.expect(t, "down user:"+address+"@s1", "up user:"+address+"@s1", "message user:"+address+"@s1 e1/1")
		b.equal("auths", len(b.venue.sent("auth")), 3)
		// The client closes the connection of an unwatched user topic at once.
		b.Unwatch(user("s1"))
		b.settle()
		b.equal("close code", b.conn(3).code, closeNormal)
		b.equal("connections", b.Stats().Connections, 2)
		b.Unwatch(user("s2"))
		b.watch(user("s2"))
		b.settle()
		b.equal("connections", b.Stats().Connections, 2)
	})
}

// TestNoCredentials checks that a client for a venue without credentials watches no account.
func TestNoCredentials(t *testing.T) {
	inBubble(t, func(cfg *Config, _ *venue) { cfg.NoCredentials = true }, func(b *bench) {
		err := b.Watch(user("s1"), credentials(b, canary))
		b.equal("error and topics", []any{market.CodeOf(err), b.Stats().Topics}, []any{market.CodeUnsupported, 0})
		b.equal("error of a public topic", b.Watch(book("T1"), nil), nil)
	})
}

// TestFurtherVenue checks that the venue gets its own ids, and the Handler those with the name of a further venue. Topics of other
// venues and of accounts are refused.
func TestFurtherVenue(t *testing.T) {
	inBubble(t, func(cfg *Config, _ *venue) {
		cfg.Venue, cfg.NoCredentials = "v", true
		cfg.Market = func(id string) *market.Market { return &market.Market{MarketID: id, Slug: "v:s"} }
	}, func(b *bench) {
		b.watch(book("v:T1"))
		b.settle()
		b.conn(0).send(`{"type":"heartbeat","seqs":{"orderbook":{"T1":1}}}`)
		b.settle()
		b.equal("ids sent", b.venue.sent("subscribe")[0].TokenIDs, []string{"T1"})
		b.equal("acknowledged", b.calls.acks, []string{"orderbook:v:T1"})
		b.Resync(book("v:T1"))
		b.advance(time.Second)
		b.conn(0).drop(1006)
		b.advance(time.Second)
		b.calls.expect(t, "up orderbook:v:T1", "message orderbook:v:T1 e1/1", "heartbeat e1 orderbook:v:T1=1", "message orderbook:v:T1 e1/9",
			"down orderbook:v:T1", "up orderbook:v:T1", "message orderbook:v:T1 e1/1")
		m := b.cfg.Market("x")
		b.equal("market of the codec", []string{m.MarketID, m.Slug}, []string{"x", "s"})
		b.Unwatch(book("v:T1"))
		b.equal("error of another venue's topic", market.CodeOf(b.Watch(book("w:T1"), nil)), market.CodeBadUserInput)
		b.equal("error of an account", market.CodeOf(b.Watch(messages.Topic{Channel: messages.ChannelUser, ID: "v:" + address}, nil)), market.CodeUnsupported)
		b.equal("topics", b.Stats().Topics, 0)
		b.venue.set(func() {
			b.venue.respond = respondTo("subscribe", func(c *fakeConn, f sentFrame) {
				c.send(`{"type":"error","rid":%q,"code":"NOT_FOUND"}`, f.Rid)
			})
		})
		b.watch(book("v:T2"))
		b.advance(time.Second)
		b.calls.expect(t, "up orderbook:v:T2", "refused orderbook:v:T2 NOT_FOUND")
	})
}

// TestUserLeavesEarly checks that the client closes the connection of a user topic if the topic is unwatched while the connection
// opens.
func TestUserLeavesEarly(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.hello = "" }, func(b *bench) {
		b.settle()
		b.watchUser("s1")
		b.settle()
		b.Unwatch(user("s1"))
		b.settle()
		b.equal("close code", b.conn(1).code, closeNormal)
		b.equal("auths", len(b.venue.sent("auth")), 0)
		b.calls.expect(t)
	})
}

// TestUserLeavesInOutage checks that the client stops dialling for a user topic that is unwatched during an outage. The client
// still dials the public connection every 22.5 s.
func TestUserLeavesInOutage(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) { v.refuse = errors.New("away") }, func(b *bench) {
		b.watch(user("s1"))
		b.advance(time.Minute)
		b.Unwatch(user("s1"))
		b.settle()
		b.mu.Lock()
		b.equal("user connections and topics", []int{len(b.pool.users), len(b.pool.topics)}, []int{0, 0})
		b.mu.Unlock()
		n := len(b.venue.dialled())
		b.advance(time.Minute)
		b.equal("dials", len(b.venue.dialled())-n, 3)
	})
}

// TestAuthUnanswered checks that the client sends the subscription even if the venue does not respond to auth.
func TestAuthUnanswered(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = func(_ *fakeConn, f sentFrame) bool { return f.Type == "auth" }
	}, func(b *bench) {
		b.watchUser("s1")
		b.advance(authWithin - 1)
		b.calls.expect(t)
		b.advance(1)
		b.calls.expect(t, "up user:"+address+"@s1", "message user:"+address+"@s1 e1/1")
	})
}

// TestAuthRefused checks that the client refuses a user topic without a retry, in whatever form the venue rejects the credentials.
func TestAuthRefused(t *testing.T) {
	for name, test := range map[string]struct {
		frame   string // the type of the frame to which the venue responds
		respond func(c *fakeConn, f sentFrame)
		code    market.Code
	}{
		"close": {"auth", func(c *fakeConn, _ sentFrame) { c.drop(closeCredentials) }, market.CodeUnauthenticated},
		"error": {"auth", func(c *fakeConn, f sentFrame) {
			c.send(`{"type":"error","rid":%q,"code":"UNAUTHENTICATED","error":"no such key canary-key-7f3a"}`, f.Rid)
		}, market.CodeUnauthenticated},
		"error without rid": {"auth", func(c *fakeConn, _ sentFrame) {
			c.send(`{"type":"error","code":"UNAUTHORIZED","error":"no such key canary-key-7f3a"}`)
		}, market.CodeUnauthenticated},
		"foreign address": {"auth", func(c *fakeConn, f sentFrame) {
			c.send(`{"type":"error","rid":%q,"code":"FORBIDDEN"}`, f.Rid)
		}, market.CodeForbidden},
		"at the subscription": {"subscribe", func(c *fakeConn, f sentFrame) {
			c.send(`{"type":"error","rid":%q,"code":"FORBIDDEN"}`, f.Rid)
		}, market.CodeForbidden},
		"after the subscription": {"subscribe", func(c *fakeConn, f sentFrame) {
			c.answer(f)
			c.send(`{"type":"error","code":"UNAUTHENTICATED"}`)
		}, market.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bench) {
				b.settle()
				b.venue.set(func() { b.venue.respond = respondTo(test.frame, test.respond) })
				b.watchUser("s1")
				b.advance(10 * time.Minute)
				calls := b.calls.take()
				if len(calls) == 0 || calls[len(calls)-1] != "refused user:"+address+"@s1 "+string(test.code) {
					t.Errorf("the handler was called with %q, want a final refusal with %s", calls, test.code)
				}
				b.equal("identities", b.Stats().Identities, 0)
				b.equal("connections", b.Stats().Connections, 1)
				b.equal("dials", len(b.venue.dialled()), 2)
				b.equal("state", b.Stats().State, StateLive)
			})
		})
	}
}

// TestAuthPostponed checks that the client authenticates again after a RATE_LIMITED error.
func TestAuthPostponed(t *testing.T) {
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
		b.watchUser("s1")
		b.advance(time.Second)
		b.calls.expect(t, "up user:"+address+"@s1", "message user:"+address+"@s1 e1/1")
	})
}

// TestSecrets checks that only auth frames contain credentials, and that errors of New do not quote the URL. inBubble checks the
// log and the other errors.
func TestSecrets(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.settle()
		b.watchUser("s1")
		b.settle()
		b.mu.Lock()
		if s := fmt.Sprintf("%+v %v", *b.pool.topics[user("s1")], credentials(t, canary)); strings.Contains(s, "canary") {
			t.Errorf("the text of an entry contains a secret: %s", s)
		}
		b.mu.Unlock()
		b.conn(1).send(`{"type":"error","rid":"2","code":"canary-code","error":"canary"}`)
		b.conn(0).end(&CloseError{Code: 1008})
		b.advance(time.Second)
		for _, f := range b.venue.sent("") {
			if f.Type != "auth" && strings.Contains(f.raw, "canary") {
				t.Errorf("the frame %s contains a secret", f.raw)
			}
			if f.Type == "auth" && f.Credentials["extra"] != "canary-extra" {
				t.Errorf("the auth frame is %s", f.raw)
			}
		}
		if !strings.Contains(b.log.String(), "wss://venue.example/ws") {
			t.Errorf("the log does not name the stream:\n%s", b.log)
		}
	})
	for _, bad := range []string{"", "http://canary.example", "ws://", "ws://%zzcanary", "canary", "wss:///canary"} {
		if _, err := New(Config{URL: bad, Protocol: testProtocol()}, &record{}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("New(%q) returns %v, want an error without the URL", bad, err)
		}
	}
}
