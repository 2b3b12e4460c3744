package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"oddsgraph/internal/market/messages"
)

// testCodec is the codec of the scripted venue. Frames are JSON objects or lists of them. It decodes no values, because the client
// does not read them.
type testCodec struct {
	env      Env
	identity messages.Topic
	epoch    string
}

// testProtocol returns a protocol with all features: a hello, acknowledgements, heartbeats and snapshots.
func testProtocol() *Protocol {
	return &Protocol{
		NewCodec: func(identity messages.Topic, env Env) Codec { return &testCodec{env: env, identity: identity} },
		Greets:   true, Snapshots: []messages.Channel{messages.ChannelTrades, messages.ChannelUser},
	}
}

func (c *testCodec) Encode(r *Request) [][]byte {
	f := struct {
		Type        string           `json:"type"`
		Rid         string           `json:"rid"`
		Channel     messages.Channel `json:"channel,omitempty"`
		TokenIDs    []string         `json:"tokenIds,omitempty"`
		MarketIDs   []string         `json:"marketIds,omitempty"`
		TokenID     string           `json:"tokenId,omitempty"`
		Address     string           `json:"address,omitempty"`
		Credentials json.RawMessage  `json:"credentials,omitempty"`
		Depth       int              `json:"depth,omitempty"`
	}{Type: [...]string{"", "subscribe", "unsubscribe", "resync", "auth", "ping"}[r.Verb], Rid: r.Rid, Depth: r.Depth}
	if r.Verb == VerbAuth {
		f.Credentials = json.RawMessage(r.Credentials.Wire())
	} else if len(r.Topics) > 0 {
		f.Channel = r.Topics[0].Channel
	}
	for _, t := range r.Topics {
		switch {
		case t.Channel == messages.ChannelUser:
			f.Address = t.ID
		case r.Verb == VerbResync:
			f.TokenID = t.ID
		case t.Channel == messages.ChannelMarket:
			f.MarketIDs = append(f.MarketIDs, t.ID)
		default:
			f.TokenIDs = append(f.TokenIDs, t.ID)
		}
	}
	frame, _ := json.Marshal(f) // Marshal cannot fail for this struct
	return [][]byte{frame}
}

// testFrame contains the members of all types of frames.
type testFrame struct {
	Type, Rid, Channel, Epoch, TokenID, Address string
	Code                                        any
	TokenIDs, MarketIDs                         []string
	HeartbeatMs, RetryAfterMs                   int
	Limits                                      Hello
	Seqs                                        map[string]map[string]uint64
	Seq, PrevSeq                                uint64
	Bids, Asks, Changes                         json.RawMessage
}

// messageKinds maps the types of frames to the channels and the kinds of their messages.
var messageKinds = map[string]struct {
	channel messages.Channel
	kind    messages.Kind
}{
	"orderbook_snapshot": {messages.ChannelOrderbook, messages.KindBookSnapshot}, "orderbook_update": {messages.ChannelOrderbook, messages.KindBookDelta},
	"price_update": {messages.ChannelPrices, messages.KindPrice}, "trades_snapshot": {messages.ChannelTrades, messages.KindTradesSnapshot},
	"user_snapshot": {messages.ChannelUser, messages.KindUserSnapshot}, "balance_update": {messages.ChannelUser, messages.KindBalance},
}

func (c *testCodec) Decode(frame []byte, at time.Time) []Event {
	var list []json.RawMessage
	if json.Unmarshal(frame, &list) != nil {
		return []Event{c.decode(frame, at)}
	}
	events := []Event{{Kind: EventLife}}
	for _, one := range list {
		events = append(events, c.decode(one, at))
	}
	return events
}

func (c *testCodec) decode(frame []byte, at time.Time) Event {
	if !json.Valid(frame) {
		c.env.Observer.Frame("garbage")
		return Event{Kind: EventGarbage}
	}
	var f testFrame
	_ = json.Unmarshal(frame, &f) // a frame that is no object has no type
	e := Event{Rid: f.Rid}
	m, isMessage := messageKinds[f.Type]
	switch {
	case isMessage:
		return c.message(&f, m.channel, m.kind, at)
	case f.Type == "hello":
		c.epoch = f.Epoch
		f.Limits.Heartbeat = time.Duration(f.HeartbeatMs) * time.Millisecond
		e.Kind, e.Epoch, e.Hello = EventHello, f.Epoch, f.Limits
	case f.Type == "pong":
		e.Kind = EventLife
	case f.Type == "heartbeat":
		e.Kind, e.Epoch = EventHeartbeat, c.epoch
		for channel, ids := range f.Seqs {
			for id, seq := range ids {
				if e.Seqs == nil {
					e.Seqs = map[messages.Topic]uint64{}
				}
				e.Seqs[c.topic(messages.Channel(channel), id)] = seq
			}
		}
	case f.Type == "error":
		e.Kind, e.Code, e.RetryAfter = EventError, strings.ToUpper(fmt.Sprint(f.Code)), time.Duration(f.RetryAfterMs)*time.Millisecond
		if e.IDs = append(f.TokenIDs, f.MarketIDs...); f.TokenID != "" {
			e.IDs = append(e.IDs, f.TokenID)
		}
	default:
		e.Kind = EventAck
		if f.Type == "subscribed" {
			for _, id := range append(f.TokenIDs, f.MarketIDs...) {
				e.Topics = append(e.Topics, c.topic(messages.Channel(f.Channel), id))
			}
		} else if f.Type != "unsubscribed" && f.Type != "authenticated" {
			c.env.Observer.Frame("unknown")
		}
	}
	return e
}

// message returns the event of a message. A book with an unusable level is bad. A message for another account has no effect.
func (c *testCodec) message(f *testFrame, channel messages.Channel, kind messages.Kind, at time.Time) Event {
	t := c.topic(channel, f.TokenID)
	if channel == messages.ChannelUser {
		if t = c.topic(channel, f.Address); t != c.identity {
			return Event{Kind: EventLife}
		}
	}
	for _, raw := range []json.RawMessage{f.Bids, f.Asks, f.Changes} {
		var levels []struct{ Price, Size any }
		bad := raw != nil && json.Unmarshal(raw, &levels) != nil
		for _, l := range levels {
			bad = bad || l.Price == nil || l.Size == nil
		}
		if bad {
			return Event{Kind: EventBad, Topic: t}
		}
	}
	return Event{Kind: EventMessage, Message: &messages.Message{Topic: t, Kind: kind, Epoch: c.epoch, Seq: f.Seq, PrevSeq: f.PrevSeq, ReceivedAt: at}}
}

func (c *testCodec) topic(channel messages.Channel, id string) messages.Topic {
	if channel == messages.ChannelUser && (id == "" || strings.EqualFold(id, c.identity.ID)) {
		return c.identity
	}
	return messages.Topic{Channel: channel, ID: id}
}
