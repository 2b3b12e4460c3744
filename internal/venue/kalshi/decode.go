package kalshi

import (
	"cmp"
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

	fieldSide  = wire.NewField("side").Interned()
	fieldLevel = wire.NewField("price_dollars")
	fieldDelta = wire.NewField("delta_fp")
	fieldKind  = wire.NewField("event_type").Interned()
)

// maxDepth bounds the levels of a side of a streamed book. With a tick size of 0.001, a side has at most 999 levels.
const maxDepth = 1000

// Decode returns the events of a frame. If the frame is not JSON, the only event is an EventGarbage.
func (c *codec) Decode(frame []byte, at time.Time) []stream.Event {
	note := c.observer.Drift
	v, err := wire.Parse(frame)
	if err != nil {
		c.observer.Frame("garbage")
		return []stream.Event{{Kind: stream.EventGarbage}}
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

func (c *codec) loseOne(state *subjectState) []stream.Event {
	state.book, state.askedAt = nil, time.Time{}
	return c.numbers.Lose(state.topics()...)
}

func (c *codec) handle(kind string, f received) []stream.Event {
	read := frames[kind]
	if read == nil {
		c.observer.Frame("unknown")
		return c.loseUnread(f)
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
	"event_lifecycle":     (*codec).skip,
	"event_fee_update":    (*codec).skip,
}

// skip handles a frame of the channel market_lifecycle_v2 that is not about a market.
func (c *codec) skip(received) []stream.Event { return nil }

// loseUnread handles a frame whose type or market is unknown. The frame may be about any market of its subscription. If the frame
// names no subscription, its missing number causes a gap later.
func (c *codec) loseUnread(f received) []stream.Event {
	if c.sids[f.sid] == nil {
		return nil
	}
	return c.loseAll(f.sid)
}

// subjectOfFrame returns the ticker of a frame's market and the state of the market's subject. If no topic of the subject is
// subscribed, the state is nil. If the ticker cannot be read, the state is nil, and lost has the events of loseUnread.
func (c *codec) subjectOfFrame(channel messages.Channel, f received) (ticker string, state *subjectState, lost []stream.Event) {
	ticker = f.msg.RequireID(fieldMarketTicker)
	if f.msg.Err != nil {
		f.msg.Note("bad frame")
		return "", nil, c.loseUnread(f)
	}
	return ticker, c.subjects[subject{channel, ticker}], nil
}

func (c *codec) message(t messages.Topic, kind messages.Kind, f received) *messages.Message {
	return &messages.Message{
		Topic: t, Kind: kind, Epoch: c.epoch, Seq: c.numbers.Next(t), Time: f.msg.Time(fieldTime), ReceivedAt: f.at,
	}
}

// deliver returns an event for each wanted outcome of a subject. fill sets what is specific to the kind of message.
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
	ticker, state, lost := c.subjectOfFrame(messages.ChannelOrderbook, f)
	if state == nil {
		return append(events, lost...)
	}
	b := readBids(f.msg, true)
	if f.msg.Err != nil {
		return append(events, c.handleUnusable(state, f)...)
	}
	state.book, state.askedAt, state.sid = &b, time.Time{}, f.sid
	return append(events, c.deliver(state, messages.KindBookSnapshot, f, func(s side, m *messages.Message) {
		m.Book = b.book(ticker, s, maxDepth)
		m.Book.Timestamp, m.Book.Epoch, m.Book.Seq = m.Time, m.Epoch, m.Seq
	})...)
}

func (c *codec) handleUnusable(state *subjectState, f received) []stream.Event {
	f.msg.Note("bad frame")
	return c.loseOne(state)
}

// delta adds a signed change to the total at a price. Without a book, it drops the change.
func (c *codec) delta(f received) []stream.Event {
	_, state, lost := c.subjectOfFrame(messages.ChannelOrderbook, f)
	if state == nil || state.book == nil {
		return lost
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
	total, ok := state.book.add(bidder, price, delta)
	if !ok {
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
	ticker, state, lost := c.subjectOfFrame(messages.ChannelPrices, f)
	if state == nil {
		return lost
	}
	state.sid = f.sid
	q := readQuote(f.msg)
	if f.msg.Err != nil {
		return c.handleUnusable(state, f)
	}
	state.last = &tick{q, f}
	return c.prices(ticker, state)
}

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
	_, state, lost := c.subjectOfFrame(messages.ChannelTrades, f)
	if state == nil {
		return lost
	}
	trades := readTrade(f.msg)
	if f.msg.Err != nil {
		return c.handleUnusable(state, f)
	}
	return c.deliver(state, messages.KindTrade, f, func(s side, m *messages.Message) { m.Trades = trades[s : s+1 : s+1] })
}

func (c *codec) lifecycle(f received) []stream.Event {
	ticker, state, lost := c.subjectOfFrame(messages.ChannelMarket, f)
	if state == nil {
		return lost
	}
	kind := f.msg.RequireText(fieldKind)
	if f.msg.Err != nil {
		return c.handleUnusable(state, f)
	}
	change := &market.MarketChange{Kind: cmp.Or(changes[kind], strings.ToUpper(kind)), StatusRaw: lifecycles[kind]}
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
