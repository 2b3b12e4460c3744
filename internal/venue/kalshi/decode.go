package kalshi

import (
	"slices"
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

	fieldSide  = wire.NewField("side").Interned()
	fieldLevel = wire.NewField("price_dollars")
	fieldDelta = wire.NewField("delta_fp")
	fieldKind  = wire.NewField("event_type").Interned()
)

// maxDepth bounds the levels of a side of a streamed book. With a tick size of 0.001, a side has at most 999 levels.
const maxDepth = 1000

// Decode returns the events of a frame. If the frame is not JSON, the only event is an EventGarbage. If the frame causes no other
// event, the only event is an EventLife.
func (c *codec) Decode(frame []byte, at time.Time) []stream.Event {
	note := c.observer.Drift
	v, err := wire.Parse(frame)
	if err != nil {
		c.observer.Frame("garbage")
		return []stream.Event{{Kind: stream.EventGarbage, At: at}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := wire.NewRow(v, note)
	msg := r.Child(r.Of(fieldMessage))
	f := received{at: at, msg: msg}
	f.sid, _ = r.Of(fieldSID).Uint()
	f.seq, _ = r.Of(fieldNumber).Uint()
	f.id, _ = r.Of(fieldID).Uint()
	events, fresh := c.checkNumber(f, note)
	if fresh {
		events = append(events, c.handle(r.Text(fieldType), f)...)
	}
	if len(events) == 0 {
		events = []stream.Event{{Kind: stream.EventLife}}
	}
	for i := range events {
		events[i].At = at
	}
	return events
}

// received is a frame of the venue. sid, seq and id are 0 if the frame does not have them.
type received struct {
	at           time.Time
	sid, seq, id uint64
	msg          *wire.Row
}

// checkNumber compares the number of a frame with the last number of its subscription. After a gap, checkNumber calls loseAll,
// because the lost message may have been about any market of the subscription. If the number is not greater than the last number,
// fresh is false. If the frame has no number or its subscription is unknown, fresh is true.
func (c *codec) checkNumber(f received, note func(string)) (events []stream.Event, fresh bool) {
	s := c.sids[f.sid]
	if s == nil || f.seq == 0 {
		return nil, true
	}
	last := s.seq
	switch {
	case f.seq <= last:
		note("repeated number")
		return nil, false
	case last > 0 && f.seq > last+1:
		note("gap of a subscription")
		events = c.loseAll(f.sid)
	}
	s.seq = f.seq
	return events, true
}

// loseAll marks the state of all subjects of a subscription as lost. It skips subjects on the channel of prices, because the next
// frame contains all prices of the market again.
func (c *codec) loseAll(sid uint64) (events []stream.Event) {
	for _, sub := range c.subjectsOf(sid) {
		if sub.channel != messages.ChannelPrices {
			events = append(events, c.loseOne(c.subjects[sub])...)
		}
	}
	return events
}

// loseOne marks the state of a subject as lost. It skips one number in the sequence of each topic of the subject, so that these
// sequences have a gap, too.
func (c *codec) loseOne(state *subjectState) []stream.Event {
	state.book, state.askedAt = nil, time.Time{}
	return c.lossEvents(state.topics())
}

// lossEvents returns an event for each topic, and skips one number of the topic.
func (c *codec) lossEvents(topics []messages.Topic) (events []stream.Event) {
	for _, t := range topics {
		c.numbers.Next(t)
		events = append(events, stream.Event{Kind: stream.EventBad, Topic: t})
	}
	return events
}

func (c *codec) handle(kind string, f received) []stream.Event {
	read := frames[kind]
	if read == nil {
		c.observer.Frame("unknown")
		return nil
	}
	c.observer.Frame(kind)
	return read(c, f)
}

// frames maps the type of a frame to the function that handles the frame.
var frames = map[string]func(*codec, received) []stream.Event{
	"orderbook_snapshot":  (*codec).snapshot,
	"orderbook_delta":     (*codec).delta,
	"ticker":              (*codec).ticker,
	"trade":               (*codec).trade,
	"market_lifecycle_v2": (*codec).lifecycle,
	"subscribed":          (*codec).subscribed,
	"ok":                  (*codec).answered,
	"unsubscribed":        (*codec).ended,
	"error":               (*codec).failure,
}

// subjectOfFrame returns the ticker of a frame's market and the state of the market's subject. If no topic of the subject is
// subscribed, the state is nil.
func (c *codec) subjectOfFrame(channel messages.Channel, f received) (ticker string, state *subjectState) {
	ticker = f.msg.RequireID(fieldMarketTicker)
	return ticker, c.subjects[subject{channel, ticker}]
}

// message returns a message of a topic with the fields that all kinds have in common.
func (c *codec) message(t messages.Topic, kind messages.Kind, f received) *messages.Message {
	return &messages.Message{
		Topic: t, Kind: kind, Epoch: c.epoch, Seq: c.numbers.Next(t), Time: f.msg.Time(fieldTime), ReceivedAt: f.at,
	}
}

// deliver returns an event for each wanted outcome of a subject. It calls fill to set the fields that are specific to the kind of
// message.
func (c *codec) deliver(state *subjectState, kind messages.Kind, f received, fill func(s side, m *messages.Message)) (events []stream.Event) {
	for _, s := range sides {
		if t := state.wanted[s]; t.ID != "" {
			m := c.message(t, kind, f)
			fill(s, m)
			events = append(events, stream.Event{Kind: stream.EventMessage, Message: m})
		}
	}
	return events
}

func (c *codec) snapshot(f received) (events []stream.Event) {
	if f.id != 0 {
		events = c.confirm(f.id)
	}
	ticker, state := c.subjectOfFrame(messages.ChannelOrderbook, f)
	if state == nil {
		return events
	}
	b := readBids(f.msg, true)
	if f.msg.Err != nil {
		return append(events, c.handleUnusable(state, f)...)
	}
	l := newLadder(b)
	state.book, state.askedAt, state.sid = &l, time.Time{}, f.sid
	return append(events, c.deliver(state, messages.KindBookSnapshot, f, func(s side, m *messages.Message) {
		m.Book = b.book(ticker, s, maxDepth)
		m.Book.Timestamp, m.Book.Epoch, m.Book.Seq = m.Time, m.Epoch, m.Seq
	})...)
}

// handleUnusable marks the state of a subject as lost after an unreadable frame.
func (c *codec) handleUnusable(state *subjectState, f received) []stream.Event {
	f.msg.Note("bad frame")
	return c.loseOne(state)
}

// delta adds a signed change to the total at a price, and returns events with the new total. If there is no book yet, or the book
// was lost, delta drops the change.
func (c *codec) delta(f received) []stream.Event {
	_, state := c.subjectOfFrame(messages.ChannelOrderbook, f)
	if state == nil || state.book == nil {
		return nil
	}
	bidder, price, delta := yes, f.msg.Price(fieldLevel), f.msg.RequireDecimal(fieldDelta)
	switch f.msg.RequireText(fieldSide) {
	case "yes":
	case "no":
		bidder, price = no, no.price(price) // the subscription has prices of YES on both sides
	default:
		f.msg.Fail(fieldSide, "is not yes or no")
	}
	if f.msg.Err != nil {
		return c.handleUnusable(state, f)
	}
	total, err := state.book.add(bidder, price, delta)
	if err != nil {
		f.msg.Note("negative level")
		return c.loseOne(state)
	}
	return c.deliver(state, messages.KindBookDelta, f, func(s side, m *messages.Message) {
		m.Changes, m.Depth = []market.LevelChange{changeOf(s, bidder, price, total)}, maxDepth
	})
}

// tick is a frame with prices.
type tick struct {
	quote quote
	frame received
}

func (c *codec) ticker(f received) []stream.Event {
	ticker, state := c.subjectOfFrame(messages.ChannelPrices, f)
	if state == nil {
		return nil
	}
	state.sid = f.sid
	q := readQuote(f.msg)
	if f.msg.Err != nil {
		return c.handleUnusable(state, f)
	}
	state.last = &tick{q, f}
	return c.prices(ticker, state)
}

// prices returns the events that deliver the last prices of a subject. If the market has no price, prices returns no event.
func (c *codec) prices(ticker string, state *subjectState) []stream.Event {
	q := state.last.quote
	if q.price(ticker, yes) == nil {
		return nil
	}
	return c.deliver(state, messages.KindPrice, state.last.frame, func(s side, m *messages.Message) {
		m.Price, m.Spread = q.price(ticker, s), q.spread(ticker, s)
		m.Price.Timestamp, m.Spread.Timestamp = m.Time, m.Time
	})
}

func (c *codec) trade(f received) []stream.Event {
	_, state := c.subjectOfFrame(messages.ChannelTrades, f)
	if state == nil {
		return nil
	}
	trades := readTrade(f.msg)
	if f.msg.Err != nil {
		return c.handleUnusable(state, f)
	}
	return c.deliver(state, messages.KindTrade, f, func(s side, m *messages.Message) { m.Trades = trades[s : s+1 : s+1] })
}

func (c *codec) lifecycle(f received) []stream.Event {
	ticker, state := c.subjectOfFrame(messages.ChannelMarket, f)
	if state == nil {
		return nil
	}
	kind := f.msg.RequireText(fieldKind)
	if f.msg.Err != nil {
		return c.handleUnusable(state, f)
	}
	change := &market.MarketChange{Kind: kindOf(kind), StatusRaw: lifecycles[kind]}
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
	return c.deliver(state, messages.KindMarket, f, func(_ side, m *messages.Message) { m.Market = change })
}

// subscribed handles the confirmation of a subscription. The confirmation contains the id of the subscription.
func (c *codec) subscribed(f received) []stream.Event {
	sid, ok := f.msg.Of(fieldSID).Uint()
	sent := c.unanswered[f.id]
	name := f.msg.Text(fieldChannel)
	for channel, own := range channels {
		if ok && sid > 0 && own == name && c.sids[sid] == nil {
			c.sids[sid] = &subscription{channel: channel}
		}
	}
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; state != nil && channels[sub.channel] == name {
			state.sid = sid
		}
	}
	return c.confirm(f.id)
}

// answered handles the response to a command that neither starts nor ends a subscription.
func (c *codec) answered(f received) []stream.Event {
	sent := c.unanswered[f.id]
	if sent.action == actionAdd && c.sids[sent.sid] == nil { // the subscription has ended since the command was sent
		return c.reject(f.id, codeUnknownSID)
	}
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; state != nil && sent.action == actionAdd {
			state.sid = sent.sid
		}
	}
	events := c.confirm(f.id)
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; sent.action == "" && state != nil && state.last != nil {
			events = append(events, c.prices(sub.ticker, state)...)
		}
	}
	return events
}

// ended handles the confirmation that a subscription has ended.
func (c *codec) ended(f received) []stream.Event {
	delete(c.sids, f.sid)
	return c.confirm(f.id)
}

// confirm returns the acknowledgement of a command and forgets the command. If the command is unknown, confirm returns no event.
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

// failure handles an error frame. The error rejects a command or ends a subscription.
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
		events = c.lossEvents(c.forget(sid))
	case code == codeFull && c.sids[sent.sid] != nil:
		c.sids[sent.sid].full = true
	}
	return append(events, c.reject(f.id, code)...)
}

// reject forgets a command that has failed. It returns an event for the failure, with the given error code of the venue. If the
// command is unknown, reject returns no event.
func (c *codec) reject(id, code uint64) []stream.Event {
	sent, known := c.unanswered[id]
	if !known {
		return nil
	}
	delete(c.unanswered, id)
	for _, sub := range sent.subjects {
		if state := c.subjects[sub]; state != nil && state.sid == 0 {
			delete(c.subjects, sub) // the socket does not have the market, so the next request subscribes to it again
		}
	}
	e := stream.Event{Kind: stream.EventError, Rid: sent.rid, Code: "UNSUPPORTED"}
	if slices.Contains(laterCodes, code) {
		e.Code = "UNAVAILABLE"
	}
	return []stream.Event{e}
}
