package stream

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

var (
	fieldType   = field{"type"}
	fieldRid    = names("rid", "requestId")
	fieldEpoch  = names("epoch")
	fieldSeq    = names("seq", "sequence")
	fieldPrev   = names("prevSeq", "previousSequence")
	fieldTime   = names("timestamp", "time", "ts")
	fieldLimits = names("limits")

	fieldHeartbeatMs     = names("heartbeatMs")
	fieldLimitTopics     = names("topics")
	fieldLimitDepth      = names("depth")
	fieldFramesPerSecond = names("framesPerSecond")
	fieldFrameBytes      = names("frameBytes")

	fieldSeqs       = names("seqs")
	fieldCode       = names("code")
	fieldRetryAfter = names("retryAfterMs")
	fieldTokenIDs   = names("tokenIds")
	fieldMarketIDs  = names("marketIds")

	fieldTokenID  = names("tokenId", "assetId", "clobTokenId")
	fieldMarketID = names("marketId", "conditionId", "market")
	fieldAddress  = names("address")
)

// native is the language of the contract, with what is known of venues that come close to it.
type native struct{}

func (native) decoder(c *Client, identity market.Topic) decoder {
	d := &nativeDecoder{client: c, identity: identity}
	d.depth = or(c.cfg.Depth, DefaultDepth)
	return d
}

// nativeDecoder reads the frames of one socket.
type nativeDecoder struct {
	client *Client
	// identity is the user topic of the socket, or the zero topic.
	identity market.Topic
	// epoch is the venue's, by its hello; depth is the one that books are asked for with.
	epoch string
	depth int
}

// frames are the types that are known, with what reads them.
var frames = map[string]func(d *nativeDecoder, r *row, at time.Time) []event{
	"hello":     (*nativeDecoder).hello,
	"pong":      acknowledged(eventPong),
	"heartbeat": (*nativeDecoder).heartbeat,
	"error":     (*nativeDecoder).failure,

	"subscribed":        acknowledged(eventAck),
	"unsubscribed":      acknowledged(eventAck),
	"authenticated":     acknowledged(eventAck),
	"subscribe_markets": acknowledged(eventAck),

	"price_update":       (*nativeDecoder).price,
	"orderbook_snapshot": (*nativeDecoder).bookSnapshot,
	"orderbook_update":   (*nativeDecoder).bookUpdate,
	"trades_snapshot":    (*nativeDecoder).tradesSnapshot,
	"trade":              (*nativeDecoder).trade,
	"market_update":      (*nativeDecoder).marketUpdate,
	"market_resolved":    (*nativeDecoder).marketResolved,
	"market_snapshot":    (*nativeDecoder).marketSnapshot,

	"user_snapshot":   (*nativeDecoder).userSnapshot,
	"order_update":    (*nativeDecoder).orderUpdate,
	"fill":            (*nativeDecoder).fill,
	"position_update": (*nativeDecoder).positionUpdate,
	"balance_update":  (*nativeDecoder).balanceUpdate,
}

func (d *nativeDecoder) decode(frame []byte, at time.Time) []event {
	v, ok := parse(frame)
	if !ok {
		d.client.frame("garbage")
		d.client.count.garbage.Add(1)
		return []event{{kind: eventGarbage, at: at}}
	}
	if list, ok := v.([]any); ok {
		events := make([]event, 0, len(list)+1)
		events = append(events, event{kind: eventLife, at: at})
		for _, v := range list {
			events = append(events, d.one(v, at)...)
		}
		return events
	}
	return d.one(v, at)
}

// one reads one frame. What it cannot place still is a sign of life.
func (d *nativeDecoder) one(v any, at time.Time) []event {
	m, _ := v.(map[string]any)
	kind, _ := fieldType.of(m).(string)
	read := frames[kind]
	if read == nil {
		d.client.frame("unknown")
		d.client.count.unknown.Add(1)
		return acknowledged(eventAck)(d, &row{fields: m, note: d.client.drift}, at)
	}
	d.client.frame(kind)
	events := read(d, &row{fields: m, note: d.client.drift}, at)
	if len(events) == 0 {
		return []event{{kind: eventLife, at: at}}
	}
	for i := range events {
		events[i].at = at
	}
	return events
}

// acknowledged reads a frame of which only the request that it answers matters.
func acknowledged(kind eventKind) func(*nativeDecoder, *row, time.Time) []event {
	return func(_ *nativeDecoder, r *row, at time.Time) []event {
		return []event{{kind: kind, at: at, rid: ridOf(r)}}
	}
}

// ridOf returns the number that a request was sent with, or nothing.
func ridOf(r *row) string {
	switch v := fieldRid.of(r.fields).(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

const (
	minHeartbeat = 100 * time.Millisecond
	maxHeartbeat = 5 * time.Minute
)

func (d *nativeDecoder) hello(r *row, _ time.Time) []event {
	d.epoch = r.label(fieldEpoch)
	h := hello{heartbeat: time.Duration(r.count(fieldHeartbeatMs)) * time.Millisecond}
	if h.heartbeat != 0 && (h.heartbeat < minHeartbeat || h.heartbeat > maxHeartbeat) {
		r.unreadable(fieldHeartbeatMs)
		h.heartbeat = 0
	}
	if limits, ok := fieldLimits.of(r.fields).(map[string]any); ok {
		l := r.inner(limits)
		h.topics = l.count(fieldLimitTopics)
		h.depth = l.count(fieldLimitDepth)
		h.framesPerSecond = l.count(fieldFramesPerSecond)
		h.frameBytes = l.count(fieldFrameBytes)
	}
	d.depth = askedDepth(d.client.cfg.Depth, h.depth)
	return []event{{kind: eventHello, epoch: d.epoch, hello: h}}
}

// askedDepth is the number of levels to ask for, where ours or the venue's is 0 when there is none.
func askedDepth(ours, venues int) int {
	switch {
	case ours == 0 && venues == 0:
		return DefaultDepth
	case ours == 0:
		return venues
	case venues == 0:
		return ours
	}
	return min(ours, venues)
}

// maxSeqs bounds what one heartbeat may list.
const maxSeqs = 10_000

func (d *nativeDecoder) heartbeat(r *row, _ time.Time) []event {
	epoch := r.label(fieldEpoch)
	if epoch == "" {
		epoch = d.epoch
	}
	e := event{kind: eventHeartbeat, epoch: epoch}
	channels, ok := fieldSeqs.of(r.fields).(map[string]any)
	if !ok && fieldSeqs.of(r.fields) != nil {
		r.unreadable(fieldSeqs)
	}
	for name, v := range channels {
		ids, ok := v.(map[string]any)
		if !ok {
			r.unreadable(fieldSeqs)
			continue
		}
		for id, v := range ids {
			seq, ok := sequenceOf(v)
			if !ok || v == nil || len(e.seqs) == maxSeqs {
				r.unreadable(fieldSeqs)
				continue
			}
			if e.seqs == nil {
				e.seqs = make(map[market.Topic]uint64, len(ids))
			}
			e.seqs[d.topic(market.Channel(name), id)] = seq
		}
	}
	return []event{e}
}

// topic returns the topic of an id on a channel as this socket carries it.
func (d *nativeDecoder) topic(c market.Channel, id string) market.Topic {
	if c == market.ChannelUser {
		if id = strings.ToLower(id); id == d.identity.ID || id == "" {
			return d.identity
		}
	}
	return market.Topic{Channel: c, ID: id}
}

// maxCode bounds the length of an error's code.
const maxCode = 64

func (d *nativeDecoder) failure(r *row, _ time.Time) []event {
	e := event{kind: eventError, rid: ridOf(r), code: strings.ToUpper(r.label(fieldCode))}
	if len(e.code) > maxCode {
		e.code = ""
	}
	if ms, ok := sequenceOf(fieldRetryAfter.of(r.fields)); ok {
		e.retryAfter = min(time.Duration(min(ms, math.MaxInt32))*time.Millisecond, maxRetryAfter)
	}
	for _, f := range []field{fieldTokenID, fieldMarketID, fieldAddress} {
		if id, ok := idOf(f.of(r.fields)); ok && id != "" {
			e.ids = append(e.ids, id)
		}
	}
	for _, f := range []field{fieldTokenIDs, fieldMarketIDs} {
		list, _ := listOf(f.of(r.fields))
		for _, v := range list {
			if id, ok := idOf(v); ok && id != "" {
				e.ids = append(e.ids, id)
			}
		}
	}
	return []event{e}
}

// message returns what all messages of a frame have in common. seq tells whether the frame's numbers are the topic's.
func (d *nativeDecoder) message(r *row, t market.Topic, kind market.MessageKind, at time.Time, seq bool) *market.Message {
	m := &market.Message{Topic: t, Kind: kind, Epoch: r.label(fieldEpoch), Time: r.time(fieldTime), ReceivedAt: at}
	if m.Epoch == "" {
		m.Epoch = d.epoch
	}
	if seq {
		m.Seq, m.PrevSeq = r.sequence(fieldSeq), r.sequence(fieldPrev)
	}
	if t.Channel != market.ChannelUser {
		if id, ok := idOf(fieldMarketID.of(r.fields)); ok {
			m.MarketID = id
		}
	}
	return m
}

// deliver returns the event of a message, or that of a bad frame when something in its row is bad.
func deliver(r *row, m *market.Message) []event {
	if r.err != nil {
		return spoilt(r, m.Topic)
	}
	return []event{{kind: eventMessage, message: m}}
}

// spoilt returns the events of a frame that cannot be used for the topics that it is about.
func spoilt(r *row, topics ...market.Topic) []event {
	r.note("bad " + string(topics[0].Channel) + " frame")
	events := make([]event, len(topics))
	for i, t := range topics {
		events[i] = event{kind: eventBad, topic: t}
	}
	return events
}

// astray returns nothing for a frame that does not say what it is about.
func astray(r *row) []event {
	r.note("frame without address")
	return nil
}
