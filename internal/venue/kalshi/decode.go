package kalshi

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldType    = wire.NewField("type").Interned()
	fieldSID     = wire.NewField("sid")
	fieldNumber  = wire.NewField("seq")
	fieldID      = wire.NewField("id")
	fieldMessage = wire.NewField("msg")
	fieldChannel = wire.NewField("channel")
	fieldCode    = wire.NewField("code")

	fieldLevel = wire.NewField("price_dollars")
	fieldDelta = wire.NewField("delta_fp")
	fieldKind  = wire.NewField("event_type").Interned()
)

// maxDepth bounds the levels of a side of a streamed book. With a tick size of 0.001, a side has at most 999 levels.
const maxDepth = 1000

// Decode returns the events of a frame. If the frame is not JSON, the only event is an EventGarbage.
func (c *codec) Decode(frame []byte, at time.Time) []stream.Event {
	v, err := wire.Parse(frame)
	if err != nil {
		c.observer.Frame("garbage")
		return []stream.Event{{Kind: stream.EventGarbage}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := wire.NewRow(v, c.observer.Drift)
	f := received{at: at, msg: r.Child(r.Of(fieldMessage))}
	f.sid, _ = r.Of(fieldSID).Uint()
	f.seq, _ = r.Of(fieldNumber).Uint()
	f.id, _ = r.Of(fieldID).Uint()
	events, fresh := c.checkNumber(f)
	if fresh {
		events = append(events, c.handle(r.Text(fieldType), f)...)
	}
	return events
}

// received is a frame of the venue. sid, seq and id are 0 if the frame does not have them.
type received struct {
	at           time.Time
	sid, seq, id uint64
	msg          *wire.Row
}

// checkNumber compares the number of a frame with the last number of its subscription. If it is not greater, fresh is false. After a
// gap, the state of all subjects is lost, because the lost message may have been about any of them.
func (c *codec) checkNumber(f received) (events []stream.Event, fresh bool) {
	s := c.sids[f.sid]
	if s == nil || f.seq == 0 {
		return nil, true
	}
	last := s.seq
	switch {
	case f.seq <= last:
		f.msg.Note("repeated number")
		return nil, false
	case last > 0 && f.seq > last+1:
		f.msg.Note("gap of a subscription")
		events = c.loseAll(f.sid)
	}
	s.seq = f.seq
	return events, true
}

// loseAll marks the state of all subjects of an open subscription as lost. It skips subjects on the channel of prices, because the
// next frame contains all prices of the market again.
func (c *codec) loseAll(sid uint64) (events []stream.Event) {
	if c.sids[sid] == nil {
		return nil
	}
	for _, sub := range c.subjectsOf(sid) {
		if sub.channel != messages.ChannelPrices {
			events = append(events, c.loseOne(c.subjects[sub])...)
		}
	}
	return events
}

func (c *codec) loseOne(state *subjectState) []stream.Event {
	state.book, state.askedAt = nil, time.Time{}
	return c.numbers.Lose(state.topics()...)
}

// fill sets what is specific to a kind of message, in the message of an outcome.
type fill func(s side, m *messages.Message)

// marketFrames maps the type of a frame about a market to the channel, the kind of message and the function that reads the frame. If
// the function returns nil, there is no message. If it makes the row bad, the state of the subject is lost.
var marketFrames = map[string]struct {
	channel messages.Channel
	kind    messages.Kind
	read    func(f received, ticker string, state *subjectState) fill
}{
	"orderbook_snapshot":  {messages.ChannelOrderbook, messages.KindBookSnapshot, readSnapshot},
	"orderbook_delta":     {messages.ChannelOrderbook, messages.KindBookDelta, readDelta},
	typeTicker:            {messages.ChannelPrices, messages.KindPrice, readTicker},
	"trade":               {messages.ChannelTrades, messages.KindTrade, readTradeFrame},
	"market_lifecycle_v2": {messages.ChannelMarket, messages.KindMarket, readLifecycle},
}

const typeTicker = "ticker"

// otherFrames maps the type of each other frame to the function that handles it. The channel market_lifecycle_v2 also has frames
// about events.
var otherFrames = map[string]func(*codec, received) []stream.Event{
	"subscribed":       (*codec).subscribed,
	"ok":               (*codec).answered,
	"unsubscribed":     (*codec).ended,
	"error":            (*codec).failure,
	"event_lifecycle":  func(*codec, received) []stream.Event { return nil },
	"event_fee_update": func(*codec, received) []stream.Event { return nil },
}

// handle handles a frame. A frame of an unknown type may be about any market of its subscription.
func (c *codec) handle(kind string, f received) []stream.Event {
	_, isMarket := marketFrames[kind]
	other := otherFrames[kind]
	if !isMarket && other == nil {
		c.observer.Frame("unknown")
		return c.loseAll(f.sid)
	}
	c.observer.Frame(kind)
	if other != nil {
		return other(c, f)
	}
	return c.publish(kind, f)
}

// errNegative makes a change bad after which the total at a price would be negative, because a change was missed.
var errNegative = errors.New("negative level")

// publish returns a message for each wanted outcome of the market that a frame is about. A frame with an unreadable ticker may be about
// any market of its subscription.
func (c *codec) publish(kind string, f received) []stream.Event {
	t, ticker := marketFrames[kind], f.msg.RequireID(fieldMarketTicker)
	var events []stream.Event
	if t.kind == messages.KindBookSnapshot {
		events = c.confirm(f.id) // a requested snapshot answers its command
	}
	state := c.subjects[subject{t.channel, ticker}]
	switch {
	case f.msg.Err != nil:
		f.msg.Note("bad frame")
		return append(events, c.loseAll(f.sid)...)
	case state == nil:
		return events
	}
	set := t.read(f, ticker, state)
	switch {
	case f.msg.Err == errNegative:
		f.msg.Note(errNegative.Error())
		return append(events, c.loseOne(state)...)
	case f.msg.Err != nil:
		f.msg.Note("bad frame")
		return append(events, c.loseOne(state)...)
	case set == nil:
		return events
	}
	for _, s := range sides {
		if topic := state.wanted[s]; topic.ID != "" {
			m := &messages.Message{Topic: topic, Kind: t.kind, Epoch: c.epoch, Seq: c.numbers.Next(topic), Time: f.msg.Time(fieldTime), ReceivedAt: f.at}
			set(s, m)
			events = append(events, stream.Event{Kind: stream.EventMessage, Message: m})
		}
	}
	return events
}

func readSnapshot(f received, ticker string, state *subjectState) fill {
	b := readBids(f.msg, true)
	state.book, state.askedAt, state.sid = &b, time.Time{}, f.sid
	return func(s side, m *messages.Message) {
		m.Book = b.book(ticker, s, maxDepth)
		m.Book.Timestamp, m.Book.Epoch, m.Book.Seq = m.Time, m.Epoch, m.Seq
	}
}

// readDelta adds a signed change to the total at a price. Without a book, it drops the change.
func readDelta(f received, _ string, state *subjectState) fill {
	if state.book == nil {
		return nil
	}
	bidder, price, delta := yes, f.msg.Price(fieldLevel), f.msg.RequireDecimal(fieldDelta)
	switch f.msg.RequireText(wire.FieldSide) {
	case "yes":
	case "no":
		bidder, price = no, no.price(price) // the subscription has prices of YES on both sides
	default:
		f.msg.Fail(wire.FieldSide, "is not yes or no")
	}
	total, ok := state.book.add(bidder, price, delta)
	if !ok && f.msg.Err == nil {
		f.msg.Err = errNegative
	}
	return func(s side, m *messages.Message) {
		m.Changes, m.Depth = []market.LevelChange{changeOf(s, bidder, price, total)}, maxDepth
	}
}

func readTicker(f received, ticker string, state *subjectState) fill {
	q := readQuote(f.msg)
	if state.sid = f.sid; f.msg.Err == nil {
		state.last = &f
	}
	if q.price(ticker, yes) == nil {
		return nil
	}
	return func(s side, m *messages.Message) {
		m.Price, m.Spread = q.price(ticker, s), q.spread(ticker, s)
		m.Price.Timestamp, m.Spread.Timestamp = m.Time, m.Time
	}
}

func readTradeFrame(f received, _ string, _ *subjectState) fill {
	trades := readTrade(f.msg)
	return func(s side, m *messages.Message) { m.Trades = trades[s : s+1 : s+1] }
}

func readLifecycle(f received, ticker string, _ *subjectState) fill {
	kind := f.msg.RequireText(fieldKind)
	known := lifecycles[kind]
	change := &market.MarketChange{Kind: cmp.Or(known.kind, strings.ToUpper(kind)), StatusRaw: known.status}
	if change.StatusRaw != "" {
		change.Status = statusOf(change.StatusRaw)
	}
	if kind == "determined" {
		for _, s := range sides {
			if f.msg.Of(fieldResult).Is(suffixes[s][1:]) {
				change.Outcome, change.WinningTokenID = labels[s], s.token(ticker)
			}
		}
	}
	return func(_ side, m *messages.Message) { m.Market = change }
}

func (c *codec) subscribed(f received) []stream.Event {
	sid, _ := f.msg.Of(fieldSID).Uint()
	name := f.msg.Text(fieldChannel)
	for channel, own := range channels {
		if sid != 0 && own == name && c.sids[sid] == nil {
			c.sids[sid] = &subscription{channel: channel}
		}
	}
	for _, sub := range c.unanswered[f.id].subjects {
		if state := c.subjects[sub]; state != nil && channels[sub.channel] == name {
			state.sid = sid
		}
	}
	return c.confirm(f.id)
}

// answered handles the response to a command that neither starts nor ends a subscription. After cmdList it repeats the last prices.
func (c *codec) answered(f received) []stream.Event {
	sent := c.unanswered[f.id]
	added := sent.action == actionAdd
	if added && c.sids[sent.sid] == nil { // the subscription has ended since the command was sent
		return c.reject(f.id, codeUnknownSID)
	}
	events := c.confirm(f.id)
	for _, sub := range sent.subjects {
		switch state := c.subjects[sub]; {
		case state == nil:
		case added:
			state.sid = sent.sid
		case sent.action == "" && state.last != nil:
			events = append(events, c.publish(typeTicker, *state.last)...)
		}
	}
	return events
}

func (c *codec) ended(f received) []stream.Event {
	delete(c.sids, f.sid)
	return c.confirm(f.id)
}

func (c *codec) confirm(id uint64) []stream.Event {
	sent, ok := c.unanswered[id]
	if !ok {
		return nil
	}
	delete(c.unanswered, id)
	return []stream.Event{{Kind: stream.EventAck, Rid: sent.rid, Topics: sent.topics}}
}

// These are the error codes that the codec handles separately. The venue ends the subscription after codeChannelError and
// codeOverflow.
const (
	codeUnknownSID   = 7
	codeChannelError = 10
	codeOverflow     = 25
	codeFull         = 26
)

// laterCodes contains the codes of temporary errors: a later command of the same form may succeed.
var laterCodes = []uint64{1, codeUnknownSID, codeChannelError, 18, codeOverflow, codeFull, 27}

func (c *codec) failure(f received) []stream.Event {
	code, _ := f.msg.Of(fieldCode).Uint()
	sent := c.unanswered[f.id]
	sid := f.sid
	if sid == 0 && code == codeUnknownSID {
		sid = sent.sid
	}
	var events []stream.Event
	switch {
	case sid != 0 && (code == codeUnknownSID || code == codeChannelError || code == codeOverflow):
		c.observer.Drift("subscription ended")
		delete(c.sids, sid)
		for _, sub := range c.subjectsOf(sid) {
			events = append(events, c.loseOne(c.subjects[sub])...)
			delete(c.subjects, sub)
		}
	case code == codeFull && c.sids[sent.sid] != nil:
		c.sids[sent.sid].full = true
	}
	return append(events, c.reject(f.id, code)...)
}

func (c *codec) reject(id, code uint64) []stream.Event {
	sent, known := c.unanswered[id]
	if !known {
		return nil
	}
	delete(c.unanswered, id)
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; state != nil && state.sid == 0 && sent.action != actionDelete {
			delete(c.subjects, sub) // the socket does not have the market, so the next request subscribes to it again
		}
	}
	e := stream.Event{Kind: stream.EventError, Rid: sent.rid, Code: "UNSUPPORTED"}
	if slices.Contains(laterCodes, code) {
		e.Code = "UNAVAILABLE"
	}
	return []stream.Event{e}
}
