package polymarket

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldEventType    = wire.NewField("event_type").Interned()
	fieldAsset        = wire.NewField("asset_id").Interned()
	fieldMarket       = wire.NewField("market").Interned()
	fieldChanges      = wire.NewField("price_changes")
	fieldStreamSide   = wire.NewField("side").Interned()
	fieldTopBid       = wire.NewField("best_bid")
	fieldTopAsk       = wire.NewField("best_ask")
	fieldWinningAsset = wire.NewField("winning_asset_id")
	fieldWinningName  = wire.NewField("winning_outcome")
	fieldTransaction  = wire.NewField("transaction_hash")
	fieldAssets       = wire.NewField("assets_ids", "asset_ids")
	fieldNewTick      = wire.NewField("new_tick_size")
)

// Decode returns the events of a frame. If the frame cannot be read, the only event is an EventGarbage.
func (c *codec) Decode(frame []byte, at time.Time) (events []stream.Event) {
	if string(frame) == pongText {
		c.env.Observer.Frame("pong")
		return nil
	}
	v, err := wire.Parse(frame)
	if err != nil {
		c.env.Observer.Frame("garbage")
		return []stream.Event{{Kind: stream.EventGarbage}}
	}
	rows := []wire.Value{v}
	if v.Kind() == wire.List {
		rows = v.Elements()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range rows {
		events = append(events, c.decodeOne(wire.NewRow(v, c.env.Observer.Drift), at)...)
	}
	return events
}

func (c *codec) decodeOne(r *wire.Row, now time.Time) []stream.Event {
	kind := r.Text(fieldEventType)
	if kind == "" && r.Has(wire.FieldBids) {
		kind = "book" // the first books of a socket may have no type
	}
	read := frames[kind]
	if read == nil {
		c.env.Observer.Frame("unknown")
		return nil
	}
	c.env.Observer.Frame(kind)
	return read(c, r, now)
}

// frames maps the type of a frame to the function that handles the frame.
var frames = map[string]func(*codec, *wire.Row, time.Time) []stream.Event{
	"book":             (*codec).bookFrame,
	"price_change":     (*codec).priceChange,
	"best_bid_ask":     (*codec).bestPrices,
	"last_trade_price": (*codec).lastTrade,
	"tick_size_change": func(c *codec, r *wire.Row, now time.Time) []stream.Event {
		return c.marketChange(r, now, market.MarketChange{Kind: "TICK_SIZE", TickSize: tickSize(r)})
	},
	"new_market": func(c *codec, r *wire.Row, now time.Time) []stream.Event {
		return c.marketChange(r, now, market.MarketChange{Kind: "CREATED"})
	},
	"market_resolved": func(c *codec, r *wire.Row, now time.Time) []stream.Event {
		return c.marketChange(r, now, market.MarketChange{
			Kind: "RESOLVED", Status: market.StatusResolved, StatusRaw: string(market.StatusResolved),
			Outcome: r.Text(fieldWinningName), WinningTokenID: r.ID(fieldWinningAsset),
		})
	},
}

func (c *codec) message(t messages.Topic, kind messages.Kind, at, now time.Time) *messages.Message {
	return &messages.Message{Topic: t, Kind: kind, Epoch: c.epoch, Seq: c.numbers.Next(t), Time: at, ReceivedAt: now}
}

func (a *asset) topic(channel messages.Channel) (t messages.Topic, wanted bool) {
	t = messages.Topic{Channel: channel, ID: a.id}
	return t, a.wanted[t]
}

// bookFrame replaces the book of an asset. The venue sends a whole book after a subscription and after a trade.
func (c *codec) bookFrame(r *wire.Row, now time.Time) []stream.Event {
	a := c.assets[r.RequireID(fieldAsset)]
	if a == nil {
		return nil
	}
	at := r.Time(fieldTimestamp)
	bids, asks := r.Levels()
	if r.Err != nil {
		return c.handleUnusable(a, r)
	}
	l := &ladder{bids, asks}
	owed := a.owes(messages.ChannelOrderbook)
	pending := len(a.burst) > 0
	a.changed = true
	if a.replace(l, at) || pending || owed {
		return c.publishState(a, now)
	}
	return c.report(a, l.top(), at, now)
}

func (a *asset) owes(channel messages.Channel) bool {
	return slices.ContainsFunc(a.owed, func(t messages.Topic) bool { return t.Channel == channel })
}

// publishState publishes the book and the prices of an asset. After it, no topic waits for the state.
func (c *codec) publishState(a *asset, now time.Time) (events []stream.Event) {
	if t, wanted := a.topic(messages.ChannelOrderbook); wanted {
		m := c.message(t, messages.KindBookSnapshot, a.at, now)
		m.Book = a.book.toBook(a.id, a.at)
		m.Book.Epoch, m.Book.Seq = m.Epoch, m.Seq
		events = append(events, stream.Event{Kind: stream.EventMessage, Message: m})
	}
	events = append(events, c.report(a, a.book.top(), a.at, now)...)
	a.owed = nil
	return events
}

// report publishes the best prices of an asset if they have changed or a topic waits for them. The price is the midpoint. If a side
// is empty or the bid is above the ask, report publishes nothing.
func (c *codec) report(a *asset, best top, at, now time.Time) []stream.Event {
	owed := a.owes(messages.ChannelPrices)
	if a.top != nil && a.top.equal(best) && !owed {
		return nil
	}
	a.top = &best
	t, wanted := a.topic(messages.ChannelPrices)
	if !wanted || best.bid == nil || best.ask == nil || best.bid.Cmp(*best.ask) > 0 {
		return nil
	}
	a.owed = slices.DeleteFunc(a.owed, func(o messages.Topic) bool { return o == t })
	m := c.message(t, messages.KindPrice, at, now)
	m.Spread = &market.Spread{TokenID: a.id, BestBid: best.bid, BestAsk: best.ask, Timestamp: at}
	m.Spread.Spread = m.Spread.Width()
	m.Price = &market.Price{TokenID: a.id, Timestamp: at}
	m.Price.Price, m.Price.Basis, _ = m.Spread.Price()
	return []stream.Event{{Kind: stream.EventMessage, Message: m}}
}

func (c *codec) handleUnusable(a *asset, r *wire.Row) []stream.Event {
	r.Note("bad frame")
	a.lose()
	return c.lossEvents(a)
}

// lossEvents returns an event that reports the loss of an asset's book. The topic of the book and the topic of the prices depend on
// the book, but an event for one of these topics is enough. If neither topic is subscribed, lossEvents returns no event.
func (c *codec) lossEvents(a *asset) []stream.Event {
	for _, channel := range []messages.Channel{messages.ChannelOrderbook, messages.ChannelPrices} {
		if t, wanted := a.topic(channel); wanted {
			return c.numbers.Lose(t)
		}
	}
	return nil
}

func (c *codec) priceChange(r *wire.Row, now time.Time) (events []stream.Event) {
	list, ok := r.Of(fieldChanges).List()
	if !ok {
		r.Note("price_change without price_changes")
		return nil
	}
	at := r.Time(fieldTimestamp)
	for _, v := range list {
		row := r.Child(v)
		a := c.assets[row.RequireID(fieldAsset)]
		if a == nil {
			continue
		}
		ch := readChange(row, at)
		if row.Err != nil {
			events = append(events, c.handleUnusable(a, row)...)
			continue
		}
		events = append(events, c.apply(a, ch, now)...)
		events = append(events, c.report(a, ch.top, at, now)...)
	}
	return events
}

func readChange(r *wire.Row, at time.Time) change {
	ch := change{at: at, top: readTop(r)}
	if ch.Side = market.ParseSide(r.RequireText(fieldStreamSide)); ch.Side == market.SideUnknown {
		r.Fail(fieldStreamSide, "is not BUY or SELL")
	}
	ch.Level = market.Level{Price: r.Price(wire.FieldPrice), Size: r.Size(wire.FieldSize)}
	return ch
}

// readTop reads the reported best prices. The bid is nil if it is missing, "" or 0. The ask is nil if it is missing, "", 0 or 1.
func readTop(r *wire.Row) (t top) {
	if d := optionalPrice(r, fieldTopBid); d != nil && d.Sign() > 0 {
		t.bid = d
	}
	if d := optionalPrice(r, fieldTopAsk); d != nil && d.Sign() > 0 && d.Cmp(one) < 0 {
		t.ask = d
	}
	return t
}

func optionalPrice(r *wire.Row, f wire.Field) *market.Decimal {
	if r.Of(f).Is("") {
		return nil
	}
	return r.Unit(f)
}

// apply applies a change to the book of an asset. A burst consists of all changes that one order causes. If the change completes
// the burst, apply publishes the burst as one message. If a change is missing, apply reports the loss of the book.
func (c *codec) apply(a *asset, ch change, now time.Time) []stream.Event {
	if a.lost {
		a.keep(ch)
		return nil
	}
	if a.book == nil {
		return nil // the venue has not sent the first book yet
	}
	done, gap := a.apply(ch, now)
	if gap {
		a.lose(ch)
		return c.lossEvents(a)
	}
	t, wanted := a.topic(messages.ChannelOrderbook)
	if len(done) == 0 || !wanted {
		return nil
	}
	m := c.message(t, messages.KindBookDelta, a.at, now)
	m.Changes = done
	return []stream.Event{{Kind: stream.EventMessage, Message: m}}
}

func (c *codec) bestPrices(r *wire.Row, now time.Time) []stream.Event {
	a := c.assets[r.RequireID(fieldAsset)]
	best := readTop(r)
	if a == nil || r.Err != nil {
		return nil
	}
	return c.report(a, best, r.Time(fieldTimestamp), now)
}

// lastTrade decodes a trade. Polymarket sends no id, so the id is a hash of fields that stay the same after a reconnect. A trade that
// cannot be read is missing, so the topic has a gap.
func (c *codec) lastTrade(r *wire.Row, now time.Time) []stream.Event {
	a := c.assets[r.RequireID(fieldAsset)]
	if a == nil {
		return nil
	}
	t, wanted := a.topic(messages.ChannelTrades)
	trade := market.Trade{
		MarketID: r.ID(fieldMarket), TokenID: a.id, SideRaw: r.Text(fieldStreamSide), Price: r.Price(wire.FieldPrice), Size: r.Size(wire.FieldSize),
		Timestamp: r.RequireTime(fieldTimestamp), TransactionHash: r.Text(fieldTransaction),
	}
	trade.Side = market.ParseSide(trade.SideRaw)
	switch {
	case !wanted:
		return nil
	case r.Err != nil:
		r.Note("bad trade")
		return c.numbers.Lose(t)
	}
	trade.TradeID = tradeID(trade)
	m := c.message(t, messages.KindTrade, trade.Timestamp, now)
	m.Trades = []market.Trade{trade}
	return []stream.Event{{Kind: stream.EventMessage, Message: m}}
}

// tradeID returns the id of a trade. If the trade has a transaction, the id does not depend on the time, because REST rounds the
// time to seconds.
func tradeID(t market.Trade) string {
	at := strings.ToLower(t.TransactionHash)
	if at == "" {
		at = t.Timestamp.UTC().Format(time.RFC3339Nano)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{t.TokenID, strings.ToUpper(t.SideRaw), t.Price.Reduce().String(), t.Size.Reduce().String(), at}, " ")))
	return hex.EncodeToString(sum[:16])
}

func tickSize(r *wire.Row) *market.Decimal {
	if size := r.Unit(fieldNewTick); size != nil && size.Sign() > 0 {
		return size
	}
	return nil
}

func (c *codec) marketChange(r *wire.Row, now time.Time, change market.MarketChange) (events []stream.Event) {
	change.At = r.Time(fieldTimestamp)
	for _, t := range c.marketTopics(r) {
		m := c.message(t, messages.KindMarket, change.At, now)
		m.Market = &change
		events = append(events, stream.Event{Kind: stream.EventMessage, Message: m})
	}
	return events
}

// marketTopics returns the subscribed topics of the market that a frame is about. The frame names tokens of the market. They decide,
// because the venue may write the id of the market differently than in its REST API: it pads the ids of V2 markets with zeros. If
// the socket is subscribed to none of the tokens, the id decides.
func (c *codec) marketTopics(r *wire.Row) (topics []messages.Topic) {
	tokens := []string{r.ID(fieldAsset), r.ID(fieldWinningAsset)}
	list, _ := r.Of(fieldAssets).List()
	for _, v := range list {
		id, _ := v.ID()
		tokens = append(tokens, id)
	}
	subscribed := false
	for _, id := range tokens {
		a := c.assets[id]
		if a == nil {
			continue
		}
		subscribed = true
		for t := range a.wanted {
			if t.Channel == messages.ChannelMarket && !slices.Contains(topics, t) {
				topics = append(topics, t)
			}
		}
	}
	id := r.ID(fieldMarket)
	if _, ok := c.markets[id]; ok && !subscribed {
		topics = append(topics, messages.Topic{Channel: messages.ChannelMarket, ID: id})
	}
	return topics
}
