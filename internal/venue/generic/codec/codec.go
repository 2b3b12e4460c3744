// Package codec encodes and decodes the frames of the generic venue's stream.
package codec

import (
	"cmp"
	"math"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldType   = wire.NewField("type").Interned()
	fieldRid    = wire.NewField("rid", "requestId")
	fieldPrev   = wire.NewField("prevSeq", "previousSequence")
	fieldTime   = wire.NewField("timestamp", "time", "ts")
	fieldLimits = wire.NewField("limits")

	fieldHeartbeatMs     = wire.NewField("heartbeatMs")
	fieldLimitTopics     = wire.NewField("topics")
	fieldLimitDepth      = wire.NewField("depth")
	fieldFramesPerSecond = wire.NewField("framesPerSecond")
	fieldFrameBytes      = wire.NewField("frameBytes")

	fieldChannel    = wire.NewField("channel")
	fieldSeqs       = wire.NewField("seqs")
	fieldCode       = wire.NewField("code")
	fieldRetryAfter = wire.NewField("retryAfterMs")
	fieldTokenIDs   = wire.NewField("tokenIds")
	fieldMarketIDs  = wire.NewField("marketIds")

	fieldAddress = wire.NewField("address")
)

// decoder is the codec of one socket. It also accepts all known deviations from the documentation. Decode is not safe for concurrent
// calls.
type decoder struct {
	env stream.Env
	// identity is the user topic of the socket. It is the zero topic on public sockets.
	identity messages.Topic
	// epoch is the epoch in the venue's hello. depth is the maximum number of levels on each side of a book.
	epoch string
	depth int
}

func newDecoder(identity messages.Topic, env stream.Env) *decoder {
	return &decoder{env: env, identity: identity, depth: stream.AssumedDepth}
}

// Protocol returns the protocol of the generic venue's stream.
func Protocol() *stream.Protocol {
	return &stream.Protocol{
		NewCodec: func(identity messages.Topic, env stream.Env) stream.Codec { return newDecoder(identity, env) },
		Greets:   true, Snapshots: []messages.Channel{messages.ChannelTrades, messages.ChannelUser},
	}
}

func (d *decoder) Encode(r *stream.Request) [][]byte { return [][]byte{encode(r)} }

var frames = map[string]func(d *decoder, r *wire.Row, at time.Time) []stream.Event{
	"hello":     (*decoder).hello,
	"pong":      func(*decoder, *wire.Row, time.Time) []stream.Event { return nil },
	"heartbeat": (*decoder).heartbeat,
	"error":     (*decoder).failure,

	"subscribed":        (*decoder).subscribed,
	"unsubscribed":      (*decoder).acknowledged,
	"authenticated":     (*decoder).acknowledged,
	"subscribe_markets": (*decoder).acknowledged,

	"price_update":       (*decoder).price,
	"orderbook_snapshot": (*decoder).bookSnapshot,
	"orderbook_update":   (*decoder).bookUpdate,
	"trades_snapshot":    (*decoder).tradesSnapshot,
	"trade":              (*decoder).trade,
	"market_update":      (*decoder).marketUpdate,
	"market_resolved":    (*decoder).marketResolved,
	"market_snapshot":    (*decoder).marketSnapshot,

	"user_snapshot": accountFrame(messages.KindUserSnapshot, func(r *wire.Row, m *messages.Message) {
		m.Orders, m.Positions = rows(r, fieldOrders, (*wire.Row).Order), rows(r, fieldPositions, (*wire.Row).Position)
		if v := r.Of(fieldBalance); !v.IsNull() {
			m.Balance = element(r, fieldBalance, v, (*wire.Row).Balance)
		}
	}),
	"order_update": accountFrame(messages.KindOrder, func(r *wire.Row, m *messages.Message) {
		m.Orders = []market.Order{readNested(r, fieldOrder, (*wire.Row).Order)}
	}),
	"fill": accountFrame(messages.KindFill, func(r *wire.Row, m *messages.Message) {
		m.Trades = []market.Trade{readNested(r, fieldTrade, (*wire.Row).UserTrade)}
	}),
	"position_update": accountFrame(messages.KindPosition, func(r *wire.Row, m *messages.Message) {
		m.Positions = []market.Position{readNested(r, fieldPosition, (*wire.Row).Position)}
	}),
	"balance_update": accountFrame(messages.KindBalance, func(r *wire.Row, m *messages.Message) {
		m.Balance = readNested(r, fieldBalance, (*wire.Row).Balance)
	}),
}

func (d *decoder) Decode(frame []byte, at time.Time) (events []stream.Event) {
	v, err := wire.Parse(frame)
	if err != nil {
		d.env.Observer.Frame("garbage")
		return []stream.Event{{Kind: stream.EventGarbage}}
	}
	if v.Kind() == wire.List {
		for _, v := range v.Elements() {
			events = append(events, d.decodeOne(v, at)...)
		}
		return events
	}
	return d.decodeOne(v, at)
}

func (d *decoder) decodeOne(v wire.Value, at time.Time) []stream.Event {
	r := &wire.Row{Object: v, Note: d.env.Observer.Drift}
	var kind string
	if t := r.Of(fieldType); t.Kind() == wire.String {
		kind = t.Text()
	}
	read := frames[kind]
	if read == nil {
		d.env.Observer.Frame("unknown")
		return d.acknowledged(r, at)
	}
	d.env.Observer.Frame(kind)
	return read(d, r, at)
}

func (d *decoder) acknowledged(r *wire.Row, _ time.Time) []stream.Event {
	return []stream.Event{{Kind: stream.EventAck, Rid: ridOf(r)}}
}

func (d *decoder) subscribed(r *wire.Row, _ time.Time) []stream.Event {
	e := stream.Event{Kind: stream.EventAck, Rid: ridOf(r)}
	channel := messages.Channel(r.Of(fieldChannel).Text())
	for _, id := range listedIDs(r) {
		e.Topics = append(e.Topics, d.topic(channel, id))
	}
	return []stream.Event{e}
}

func listedIDs(r *wire.Row) (ids []string) {
	for _, f := range []wire.Field{fieldTokenIDs, fieldMarketIDs} {
		list, _ := r.Of(f).List()
		for _, v := range list {
			if id, ok := v.ID(); ok && id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func ridOf(r *wire.Row) string { return r.Of(fieldRid).Text() }

const (
	minHeartbeat = 100 * time.Millisecond
	maxHeartbeat = 5 * time.Minute
)

func (d *decoder) hello(r *wire.Row, _ time.Time) []stream.Event {
	d.epoch = r.TextOrNumber(wire.FieldEpoch)
	h := stream.Hello{Heartbeat: time.Duration(count(r, fieldHeartbeatMs)) * time.Millisecond}
	if h.Heartbeat != 0 && (h.Heartbeat < minHeartbeat || h.Heartbeat > maxHeartbeat) {
		r.Unreadable(fieldHeartbeatMs)
		h.Heartbeat = 0
	}
	if limits := r.Of(fieldLimits); limits.Kind() == wire.Object {
		l := r.Child(limits)
		h.Topics = count(l, fieldLimitTopics)
		h.Depth = count(l, fieldLimitDepth)
		h.FramesPerSecond = count(l, fieldFramesPerSecond)
		h.FrameBytes = count(l, fieldFrameBytes)
	}
	d.depth = cmp.Or(h.Depth, stream.AssumedDepth)
	return []stream.Event{{Kind: stream.EventHello, Epoch: d.epoch, Hello: h}}
}

func count(r *wire.Row, f wire.Field) int {
	n, ok := r.Of(f).Uint()
	if !ok || n > 1<<30 || n == 0 && !r.Of(f).IsNull() {
		r.Unreadable(f)
		return 0
	}
	return int(n)
}

// sequence decodes an optional sequence number. A frame with an unreadable one cannot be ordered, so it is bad.
func sequence(r *wire.Row, f wire.Field) uint64 {
	n, ok := r.Of(f).Uint()
	if !ok {
		r.Fail(f, "is not a sequence number")
	}
	return n
}

// maxSeqs bounds the number of sequence numbers in a heartbeat.
const maxSeqs = 10_000

func (d *decoder) heartbeat(r *wire.Row, _ time.Time) []stream.Event {
	epoch := r.TextOrNumber(wire.FieldEpoch)
	if epoch == "" {
		epoch = d.epoch
	}
	e := stream.Event{Kind: stream.EventHeartbeat, Epoch: epoch}
	channels := r.Of(fieldSeqs)
	if channels.Kind() != wire.Object && !channels.IsNull() {
		r.Unreadable(fieldSeqs)
	}
	for name, v := range channels.Members() {
		if v.Kind() != wire.Object {
			r.Unreadable(fieldSeqs)
			continue
		}
		ids := v.Members()
		for id, v := range ids {
			seq, ok := v.Uint()
			if !ok || v.IsNull() || len(e.Seqs) == maxSeqs {
				r.Unreadable(fieldSeqs)
				continue
			}
			if e.Seqs == nil {
				e.Seqs = make(map[messages.Topic]uint64, len(ids))
			}
			e.Seqs[d.topic(messages.Channel(name), id)] = seq
		}
	}
	return []stream.Event{e}
}

// topic returns the topic of a channel and an id. For the connection's account, whose id may be missing, it is d.identity, which also has
// the Scope.
func (d *decoder) topic(c messages.Channel, id string) messages.Topic {
	if c == messages.ChannelUser {
		if id = strings.ToLower(id); id == d.identity.ID || id == "" {
			return d.identity
		}
	}
	return messages.Topic{Channel: c, ID: id}
}

// maxCode bounds the length of an error's code and of the kind of a market change.
const maxCode = 64

func (d *decoder) failure(r *wire.Row, _ time.Time) []stream.Event {
	e := stream.Event{Kind: stream.EventError, Rid: ridOf(r), Code: strings.ToUpper(r.TextOrNumber(fieldCode))}
	if len(e.Code) > maxCode {
		e.Code = ""
	}
	if ms, ok := r.Of(fieldRetryAfter).Uint(); ok {
		e.RetryAfter = min(time.Duration(min(ms, math.MaxInt32))*time.Millisecond, wire.MaxWait)
	}
	for _, f := range []wire.Field{wire.FieldTokenID, wire.FieldMarketID, fieldAddress} {
		if id, ok := r.Of(f).ID(); ok && id != "" {
			e.IDs = append(e.IDs, id)
		}
	}
	e.IDs = append(e.IDs, listedIDs(r)...)
	return []stream.Event{e}
}

// message returns a message. useSeq reports whether the sequence numbers in the frame count the messages of topic t.
func (d *decoder) message(r *wire.Row, t messages.Topic, kind messages.Kind, at time.Time, useSeq bool) *messages.Message {
	m := &messages.Message{Topic: t, Kind: kind, Epoch: r.TextOrNumber(wire.FieldEpoch), Time: r.Time(fieldTime), ReceivedAt: at}
	if m.Epoch == "" {
		m.Epoch = d.epoch
	}
	if useSeq {
		m.Seq, m.PrevSeq = sequence(r, wire.FieldSeq), sequence(r, fieldPrev)
	}
	return m
}

// deliver returns the event of a message. If r has an error, it returns the event of a bad frame.
func deliver(r *wire.Row, m *messages.Message) []stream.Event {
	if r.Err != nil {
		return badFrame(r, m.Topic)
	}
	return []stream.Event{{Kind: stream.EventMessage, Message: m}}
}

func badFrame(r *wire.Row, topics ...messages.Topic) []stream.Event {
	r.Note("bad " + string(topics[0].Channel) + " frame")
	events := make([]stream.Event, len(topics))
	for i, t := range topics {
		events[i] = stream.Event{Kind: stream.EventBad, Topic: t}
	}
	return events
}

func noAddress(r *wire.Row) []stream.Event {
	r.Note("frame without address")
	return nil
}
