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

// TestPartialConfirmation checks that a confirmation that lists ids confirms no other topics of the request. The venue rejects each of
// the others in a frame of its own, as the demo venue does.
func TestPartialConfirmation(t *testing.T) {
	respond := respondTo("subscribe", func(c *fakeConn, f sentFrame) {
		var good []string
		for _, id := range f.TokenIDs {
			if !strings.HasPrefix(id, "bad") {
				good = append(good, fmt.Sprintf("%q", id))
			}
		}
		if len(good) > 0 {
			c.send(`{"type":"subscribed","rid":%q,"channel":"trades","tokenIds":[%s]}`, f.Rid, strings.Join(good, ","))
		}
		for _, id := range f.TokenIDs {
			if strings.HasPrefix(id, "bad") {
				c.send(`{"type":"error","rid":%q,"code":"UNKNOWN_TOKEN","tokenId":%q}`, f.Rid, id)
			}
		}
	})
	inBubble(t, func(_ *Config, v *venue) { v.respond = respond }, func(b *bench) {
		tape := func(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelTrades, ID: id} }
		b.watch(tape("T1"), tape("bad1"), tape("bad2"))
		b.advance(30 * time.Second)
		b.equal("confirmed", b.calls.acks, []string{"trades:T1"})
		b.equal("topics", b.Stats().Topics, 1)
	})
}

// TestUnknownToken checks that the client refuses only the unknown topics of a request, even if the error of the venue does not
// name these topics.
func TestUnknownToken(t *testing.T) {
	// most is the maximum number of subscribe frames that the client may need to find the two unknown topics among 62 topics. If the
	// errors do not name topics, each topic gets a frame of its own.
	most := map[string]int{"named": 3, "named, other topics accepted": 1, "not named": 63, "named, without rid": 3}
	for name, respond := range map[string]func(c *fakeConn, f sentFrame) bool{
		"named": func(c *fakeConn, f sentFrame) bool {
			i := slices.IndexFunc(f.TokenIDs, func(id string) bool { return strings.HasPrefix(id, "bad") })
			if i < 0 {
				return false
			}
			c.send(`{"type":"error","rid":%q,"code":"UNKNOWN_TOKEN","tokenId":%q}`, f.Rid, f.TokenIDs[i])
			return true
		},
		"named, other topics accepted": func(c *fakeConn, f sentFrame) bool {
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
		},
		"not named": func(c *fakeConn, f sentFrame) bool {
			if f.Type != "subscribe" || !slices.ContainsFunc(f.TokenIDs, func(id string) bool { return strings.HasPrefix(id, "bad") }) {
				return false
			}
			c.send(`{"type":"error","rid":%q,"code":"UNKNOWN_TOKEN","error":"unknown token"}`, f.Rid)
			return true
		},
		"named, without rid": func(c *fakeConn, f sentFrame) bool {
			i := slices.IndexFunc(f.TokenIDs, func(id string) bool { return strings.HasPrefix(id, "bad") })
			if i >= 0 {
				c.send(`{"type":"error","code":"UNKNOWN_TOKEN","tokenId":%q}`, f.TokenIDs[i])
			}
			return i >= 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *Config, v *venue) { v.refuse = errors.New("later") }, func(b *bench) {
				b.watch(books(40)...)
				b.watch(book("bad1"))
				b.watch(books(60)[40:]...)
				b.watch(book("bad2"))
				b.venue.set(func() { b.venue.refuse, b.venue.respond = nil, respond })
				b.advance(20 * time.Second)
				state := map[string]string{}
				for _, call := range b.calls.take() {
					kind, rest, _ := strings.Cut(call, " ")
					switch kind {
					case "up", "down":
						for _, id := range strings.Fields(rest) {
							state[id] = kind
						}
					case "message":
						id, _, _ := strings.Cut(rest, " ")
						if state[id] != "up" && state[id] != "good" {
							t.Errorf("%q arrived while the state of the topic was %q", call, state[id])
						}
						state[id] = "good"
					case "refused":
						id, code, _ := strings.Cut(rest, " ")
						state[id] = code
					}
				}
				for _, topic := range books(60) {
					if s := state["orderbook:"+topic.ID]; s != "good" {
						t.Errorf("the state of the known topic %s is %q, want \"good\"", topic.ID, s)
					}
				}
				for _, id := range []string{"bad1", "bad2"} {
					if s := state["orderbook:"+id]; s != "NOT_FOUND" {
						t.Errorf("the state of the unknown topic %s is %q, want \"NOT_FOUND\"", id, s)
					}
				}
				b.equal("topics", b.Stats().Topics, 60)
				b.equal("refused", b.Stats().Refused, 2)
				// The client does not subscribe to the refused topics again.
				n := len(b.venue.sent("subscribe"))
				if n > most[name] {
					t.Errorf("the client sent %d subscribe frames, want at most %d", n, most[name])
				}
				b.conn(0).drop(1006)
				b.advance(time.Second)
				for _, f := range b.venue.sent("subscribe")[n:] {
					if slices.Contains(f.TokenIDs, "bad1") {
						t.Error("a refused topic is subscribed again")
					}
				}
			})
		})
	}
}

// TestRefusals checks the error of a refused topic for several of the venue's error codes.
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
			b.calls.expect(t, "up orderbook:T1", "refused orderbook:T1 "+string(want))
			b.equal("topics", b.Stats().Topics, 0)
			b.watch(book("T1")) // a caller may watch a refused topic again
			b.settle()
			b.calls.expect(t, "up orderbook:T1", "refused orderbook:T1 "+string(want))
		})
	}
}

// TestRateLimited checks that a topic is down after a RATE_LIMITED error, until the client subscribes to it again.
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
		b.advance(0)
		b.calls.expect(t, "up orderbook:T1", "down orderbook:T1")
		b.advance(time.Second)
		b.calls.expect(t, "up orderbook:T1", "down orderbook:T1")
		b.advance(6 * time.Second)
		b.calls.expect(t)
		b.advance(time.Second)
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 e1/1")
		// A RATE_LIMITED error without a rid delays all further frames on the connection.
		b.conn(0).send(`{"type":"error","code":"RATE_LIMITED","retryAfterMs":3000}`)
		b.settle()
		b.watch(book("T2"))
		b.advance(2900 * time.Millisecond)
		b.calls.expect(t)
		b.advance(200 * time.Millisecond)
		b.calls.expect(t, "up orderbook:T2", "message orderbook:T2 e1/1")
		b.equal("dials", len(b.venue.dialled()), 1)
	})
}

// TestRateLimitedAgain checks that the maximum wait doubles after each rate-limit error, up to 30 s. With the random number 0.5 of
// inBubble, each wait is three quarters of its maximum.
func TestRateLimitedAgain(t *testing.T) {
	inBubble(t, func(_ *Config, v *venue) {
		v.respond = respondTo("subscribe", func(c *fakeConn, f sentFrame) { c.send(`{"type":"error","rid":%q,"code":"TOO_MANY_REQUESTS"}`, f.Rid) })
	}, func(b *bench) {
		b.watch(book("T1"))
		b.advance(80 * time.Second)
		var waits []time.Duration
		frames := b.venue.sent("subscribe")
		for i := 1; i < len(frames); i++ {
			waits = append(waits, frames[i].at-frames[i-1].at)
		}
		ms := time.Millisecond
		b.equal("waits", waits, []time.Duration{750 * ms, 1500 * ms, 3000 * ms, 6000 * ms, 12000 * ms, 22500 * ms, 22500 * ms})
	})
}

// TestRateLimitedResync checks that the client repeats a resync that the venue refused because of its rate limit.
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
		b.advance(4 * time.Second)
		b.calls.expect(t)
		b.advance(500 * time.Millisecond)
		b.calls.expect(t, "message orderbook:T1 e1/9")
	})
}
