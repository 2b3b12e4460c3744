package stream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
)

// bareCodec is the codec of a venue that sends no hello and no acknowledgements, and a snapshot only after a subscription. A
// subscription to a token includes all channels of the token. bareCodec numbers the messages of its socket.
type bareCodec struct {
	encoded []Request
	seq     uint64
}

func (c *bareCodec) Encode(r *Request) [][]byte {
	c.encoded = append(c.encoded, *r)
	switch r.Verb {
	case VerbSubscribe, VerbUnsubscribe:
		frames := make([][]byte, len(r.Topics))
		for i, t := range r.Topics {
			frames[i], _ = json.Marshal(map[string]any{"type": map[Verb]string{VerbSubscribe: "on", VerbUnsubscribe: "off"}[r.Verb], "tokenId": t.ID})
		}
		return frames
	case VerbResync:
		return append(c.Encode(&Request{Verb: VerbUnsubscribe, Topics: r.Topics}), c.Encode(&Request{Verb: VerbSubscribe, Topics: r.Topics})...)
	case VerbPing:
		return [][]byte{[]byte(`{"type":"PING"}`)}
	}
	return nil
}

func (c *bareCodec) Decode(frame []byte, at time.Time) []Event {
	id, book := strings.CutPrefix(string(frame), "book ")
	if !book {
		return nil
	}
	c.seq++
	topic := messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
	return []Event{{Kind: EventMessage, Message: &messages.Message{Topic: topic, Kind: messages.KindBookSnapshot, Epoch: "socket", Seq: c.seq}}}
}

// bareProtocol returns a function that configures the client and the venue for bareCodec. After each subscription, the venue sends
// a book.
func bareProtocol(header func(string) (http.Header, error)) func(*Config, *venue) {
	return func(c *Config, v *venue) {
		c.Protocol = &Protocol{
			NewCodec:  func(messages.Topic, Env) Codec { return &bareCodec{} },
			Subject:   func(t messages.Topic) string { return t.ID },
			PingEvery: 10 * time.Second, Silence: 25 * time.Second, Header: header,
		}
		c.TopicsPerConnection, c.Connections = 2, 2
		v.hello = ""
		v.respond = func(k *fakeConn, f sentFrame) bool {
			switch f.Type {
			case "on":
				k.send("book %s", f.TokenID)
			case "PING":
				k.send("PONG")
			}
			return true
		}
	}
}

// TestProtocolWithoutAnswers checks that the client subscribes to topics without a hello, and keeps a connection whose venue confirms
// nothing.
func TestProtocolWithoutAnswers(t *testing.T) {
	inBubble(t, bareProtocol(nil), func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 socket/1")

		// To get another snapshot, the client must unsubscribe and subscribe again.
		b.Resync(book("T1"))
		b.advance(2 * time.Second)
		b.calls.expect(t, "message orderbook:T1 socket/2")
		frames := b.venue.sent("")
		last := frames[len(frames)-2:]
		b.equal("confirmations", b.calls.acks, []string(nil))
		b.equal("frames", last[0].raw+last[1].raw, `{"tokenId":"T1","type":"off"}{"tokenId":"T1","type":"on"}`)

		// The client sends a ping after each Protocol.PingEvery. The pongs keep the connection open.
		b.advance(61 * time.Second)
		b.calls.expect(t)
		if n := len(b.venue.sent("PING")); n != 6 {
			t.Errorf("the client sent %d pings in a minute, want 6", n)
		}
	})
}

// TestSharedSubjects checks that topics with the same Protocol.Subject share a connection and count once towards
// TopicsPerConnection.
func TestSharedSubjects(t *testing.T) {
	inBubble(t, bareProtocol(nil), func(b *bench) {
		b.settle()
		b.watch(book("T1"), book("T2"), price("T1"), price("T2"))
		b.settle()
		b.equal("connections", b.Stats().Connections, 1)
		b.watch(book("T3"), book("T4"), price("T4"))
		b.settle()
		b.equal("connections", b.Stats().Connections, 2)
		b.equal("error of a fifth subject", b.Watch(book("T5"), nil), ErrFull)
		b.watch(price("T3")) // the subject T3 is already subscribed, so this topic takes no place
		b.Unwatch(book("T1"))
		b.settle()
		b.equal("error of a fifth subject", b.Watch(book("T5"), nil), ErrFull)
		b.Unwatch(price("T1"))
		b.settle()
		b.watch(book("T5"))
		b.equal("topics", b.Stats().Topics, 7)
	})
}

// TestHandshakeHeader checks that the client calls Protocol.Header for each handshake, and sends the header that it returns.
func TestHandshakeHeader(t *testing.T) {
	calls := 0
	header := func(path string) (http.Header, error) {
		calls++
		return http.Header{"Signature": {path}}, nil
	}
	inBubble(t, bareProtocol(header), func(b *bench) {
		b.watch(book("T1"))
		b.settle()
		b.conn(0).drop(1006)
		b.advance(2 * time.Second)
		b.equal("calls of Header", calls, 2)
		b.equal("headers of the handshakes", b.venue.headers, []http.Header{{"Signature": {"/ws"}}, {"Signature": {"/ws"}}})
	})
}

// maintainedCodec is a bareCodec that also implements Maintainer.
type maintainedCodec struct {
	bareCodec
	fail error
}

// Maintain emits a book after one minute and another book after two minutes. Then it returns c.fail, which may be nil.
func (c *maintainedCodec) Maintain(ctx context.Context, emit func(func(time.Time) []Event)) error {
	for range 2 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Minute):
			emit(func(now time.Time) []Event { return c.Decode([]byte("book T1"), now) })
		}
	}
	return c.fail
}

// TestMaintenance checks the order of messages from Maintain and from frames, and the reconnect after Maintain has failed.
func TestMaintenance(t *testing.T) {
	inBubble(t, func(c *Config, v *venue) {
		bareProtocol(nil)(c, v)
		c.Protocol.NewCodec = func(messages.Topic, Env) Codec { return &maintainedCodec{fail: errors.New("frozen")} }
	}, func(b *bench) {
		b.watch(book("T1"))
		b.advance(61 * time.Second)
		b.conn(0).send("book T1")
		b.settle()
		b.calls.expect(t, "up orderbook:T1", "message orderbook:T1 socket/1", "message orderbook:T1 socket/2", "message orderbook:T1 socket/3")
		b.advance(60 * time.Second)
		b.equal("reasons", b.reasons(), []string{"frozen"})
	})
}

// TestSilenceDuringMaintenance checks that messages from Maintain do not count as frames from the venue: a connection on which the
// venue is silent must still end.
func TestSilenceDuringMaintenance(t *testing.T) {
	inBubble(t, func(c *Config, v *venue) {
		bareProtocol(nil)(c, v)
		c.Protocol.NewCodec = func(messages.Topic, Env) Codec { return &maintainedCodec{} }
		c.Protocol.Silence, c.Protocol.PingEvery = 70*time.Second, time.Hour
	}, func(b *bench) {
		b.watch(book("T1"))
		b.advance(69 * time.Second)
		b.equal("reasons", b.reasons(), []string{})
		b.advance(2 * time.Second)
		b.equal("reasons", b.reasons(), []string{"silence"})
	})
}
