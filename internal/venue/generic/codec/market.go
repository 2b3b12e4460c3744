package codec

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldYesPrice = wire.NewField("yesPrice")
	fieldNoPrice  = wire.NewField("noPrice")

	fieldMarkets = wire.NewField("markets")
	fieldBook    = wire.NewField("orderbook", "book")

	fieldChanges = wire.NewField("changes")
	fieldTrades  = wire.NewField("trades")

	fieldChange       = wire.NewField("change", "kind", "event")
	fieldWinningToken = wire.NewField("winningTokenId", "winningAssetId")
	fieldWinning      = wire.NewField("outcome", "winningOutcome")
)

// token returns the topic of a frame's token, or those of the market's YES and NO tokens if the frame names only a market. If it finds
// none, t is zero. numbered reports that the frame has the id of the token: then its sequence numbers count the messages of this token.
func (d *decoder) token(r *wire.Row, c messages.Channel) (t, no messages.Topic, numbered bool) {
	if v := r.Of(wire.FieldTokenID); !v.IsNull() {
		if id, ok := v.ID(); ok && id != "" {
			return messages.Topic{Channel: c, ID: id}, no, true
		}
		noAddress(r)
		return t, no, false
	}
	id, ok := r.Of(wire.FieldMarketID).ID()
	if !ok || id == "" {
		noAddress(r)
		return t, no, false
	}
	m, label := d.env.Market(id), r.Of(wire.FieldOutcome)
	topicOf := func(label string) (t messages.Topic) {
		if o := m.OutcomeByLabel(label); o != nil {
			t = messages.Topic{Channel: c, ID: o.TokenID}
		}
		return t
	}
	switch {
	case m == nil:
	case label.IsNull():
		t, no = topicOf(string(market.OutcomeYes)), topicOf(string(market.OutcomeNo))
	default:
		if t = topicOf(label.Text()); t.ID == "" {
			noAddress(r)
		}
		return t, no, false
	}
	if t.ID == "" || no.ID == "" {
		r.Note("market with unknown tokens")
		return messages.Topic{}, messages.Topic{}, false
	}
	return t, no, false
}

func (d *decoder) price(r *wire.Row, at time.Time) []stream.Event {
	t, no, numbered := d.token(r, messages.ChannelPrices)
	switch {
	case t.ID == "":
		return nil
	case no.ID != "":
		return d.prices(r, t, no, at)
	}
	m := d.message(r, t, messages.KindPrice, at, numbered)
	m.Spread = spread(r, t.ID, m.Time)
	m.Price = priceOf(r, t.ID, m)
	return deliver(r, m)
}

// priceOf decodes the price of a frame, or computes it from the best bid and ask. If it can do neither, the frame is bad.
func priceOf(r *wire.Row, tokenID string, m *messages.Message) *market.Price {
	p := &market.Price{TokenID: tokenID, Basis: market.BasisVenue, Timestamp: m.Time}
	if stated := r.Unit(wire.FieldPrice); stated != nil {
		p.Price = *stated
		return p
	}
	if m.Spread != nil {
		var ok bool
		if p.Price, p.Basis, ok = m.Spread.Price(); ok {
			r.Note("price missing")
			return p
		}
	}
	r.Fail(wire.FieldPrice, "is missing")
	return nil
}

// spread decodes the best bid and ask. It returns nil if the frame contains neither, or if the bid is above the ask.
func spread(r *wire.Row, tokenID string, at time.Time) *market.Spread {
	if !r.Has(wire.FieldBestBid) && !r.Has(wire.FieldBestAsk) {
		return nil
	}
	s := &market.Spread{
		TokenID: tokenID,
		BestBid: r.Unit(wire.FieldBestBid), BestAsk: r.Unit(wire.FieldBestAsk), Spread: r.Unit(wire.FieldSpread),
		Timestamp: at,
	}
	if s.BestBid != nil && s.BestAsk != nil {
		if s.BestBid.Cmp(*s.BestAsk) > 0 {
			r.Note("crossed spread")
			return nil
		}
		if s.Spread == nil {
			s.Spread = s.Width()
		}
	}
	return s
}

func (d *decoder) prices(r *wire.Row, yes, no messages.Topic, at time.Time) []stream.Event {
	var events []stream.Event
	for _, side := range []struct {
		topic messages.Topic
		field wire.Field
	}{{yes, fieldYesPrice}, {no, fieldNoPrice}} {
		if stated := r.Unit(side.field); stated != nil {
			m := d.message(r, side.topic, messages.KindPrice, at, false)
			m.Price = &market.Price{TokenID: side.topic.ID, Price: *stated, Basis: market.BasisVenue, Timestamp: m.Time}
			events = append(events, stream.Event{Kind: stream.EventMessage, Message: m})
		}
	}
	if len(events) == 0 {
		r.Fail(fieldYesPrice, "and noPrice are missing")
	}
	if r.Err != nil {
		return badFrame(r, yes, no)
	}
	return events
}

func (d *decoder) bookSnapshot(r *wire.Row, at time.Time) []stream.Event {
	t, _, numbered := d.token(r, messages.ChannelOrderbook)
	if t.ID == "" {
		return nil
	}
	m := d.message(r, t, messages.KindBookSnapshot, at, numbered)
	m.Book = d.levels(r, m)
	return deliver(r, m)
}

// bookUpdate decodes the changes of a book. If the JSON field "changes" is missing, bids and asks are a snapshot. If such a frame
// has a previous sequence number, it is bad, because its bids and asks could also be changes.
func (d *decoder) bookUpdate(r *wire.Row, at time.Time) []stream.Event {
	t, _, numbered := d.token(r, messages.ChannelOrderbook)
	if t.ID == "" {
		return nil
	}
	if !r.Has(fieldChanges) {
		m := d.message(r, t, messages.KindBookSnapshot, at, numbered)
		if m.PrevSeq != 0 {
			r.Fail(fieldChanges, "is missing")
		}
		m.Book = d.levels(r, m)
		return deliver(r, m)
	}
	m := d.message(r, t, messages.KindBookDelta, at, numbered)
	list, ok := r.Of(fieldChanges).List()
	if !ok {
		r.Fail(fieldChanges, "is not a list")
	}
	m.Changes, m.Depth = make([]market.LevelChange, 0, len(list)), d.depth
	for _, v := range list {
		m.Changes = append(m.Changes, change(r, v))
	}
	return deliver(r, m)
}

func change(r *wire.Row, v wire.Value) market.LevelChange {
	in := r.Child(v)
	var change market.LevelChange
	raw := strings.ToUpper(in.Text(wire.FieldSide))
	switch raw {
	case "BUY", "BID", "BIDS":
		change.Side = market.SideBuy
	case "SELL", "ASK", "ASKS":
		change.Side = market.SideSell
	default:
		in.Fail(wire.FieldSide, "is not a known side")
	}
	change.Level = market.Level{Price: in.Price(wire.FieldPrice), Size: in.Size(wire.FieldSize)}
	if in.Err != nil {
		r.Fail(fieldChanges, "has a bad element: "+in.Err.Error())
	}
	return change
}

func (d *decoder) levels(r *wire.Row, m *messages.Message) *market.Book {
	b := &market.Book{
		TokenID:   m.Topic.ID,
		Timestamp: m.Time,
		Epoch:     m.Epoch,
		Seq:       m.Seq,
		Hash:      r.Text(wire.FieldHash),
		Depth:     d.depth,
	}
	b.Bids, b.Asks = r.Levels()
	if bid, ask := b.BestBid(), b.BestAsk(); bid != nil && ask != nil && bid.Cmp(*ask) <= 0 {
		if b.Spread = r.Unit(wire.FieldSpread); b.Spread == nil {
			b.Spread = b.Width()
		}
	}
	return b
}

func (d *decoder) tradesSnapshot(r *wire.Row, at time.Time) []stream.Event {
	t, no, numbered := d.token(r, messages.ChannelTrades)
	switch {
	case t.ID == "":
		return nil
	case no.ID != "":
		return noAddress(r)
	}
	m := d.message(r, t, messages.KindTradesSnapshot, at, numbered)
	list, ok := r.Of(fieldTrades).List()
	if !ok {
		r.Fail(fieldTrades, "is not a list")
	}
	m.Trades = make([]market.Trade, 0, len(list))
	marketID, _ := r.Of(wire.FieldMarketID).ID()
	for _, v := range list {
		in := r.Child(v)
		trade := tapeTrade(in, t)
		trade.MarketID = cmp.Or(trade.MarketID, marketID)
		m.Trades = append(m.Trades, trade)
		if in.Err != nil {
			r.Fail(fieldTrades, "has a bad element: "+in.Err.Error())
		}
	}
	oldestFirst(m.Trades)
	return deliver(r, m)
}

// oldestFirst sorts trades by time. If the venue lists the newest trade first, trades with the same time get the reverse order.
// Otherwise, they keep the venue's order.
func oldestFirst(trades []market.Trade) {
	if n := len(trades); n > 1 && trades[0].Timestamp.After(trades[n-1].Timestamp) {
		slices.Reverse(trades)
	}
	slices.SortStableFunc(trades, func(a, b market.Trade) int { return a.Timestamp.Compare(b.Timestamp) })
}

func (d *decoder) trade(r *wire.Row, at time.Time) []stream.Event {
	t, no, numbered := d.token(r, messages.ChannelTrades)
	switch {
	case t.ID == "":
		return nil
	case no.ID != "":
		return noAddress(r)
	}
	m := d.message(r, t, messages.KindTrade, at, numbered)
	m.Trades = []market.Trade{tapeTrade(r, t)}
	return deliver(r, m)
}

// tapeTrade decodes a public trade. If it names another token than the topic, the frame is bad.
func tapeTrade(r *wire.Row, topic messages.Topic) market.Trade {
	t := r.Trade()
	t.TokenID = cmp.Or(t.TokenID, topic.ID)
	if t.TokenID != topic.ID {
		r.Fail(wire.FieldTokenID, "is not the token of the topic")
	}
	return t
}

func (d *decoder) marketUpdate(r *wire.Row, at time.Time) []stream.Event {
	return d.marketMessage(r, at, strings.ToUpper(r.Text(fieldChange)))
}

func (d *decoder) marketResolved(r *wire.Row, at time.Time) []stream.Event {
	return d.marketMessage(r, at, kindResolved)
}

const kindResolved = "RESOLVED"

// marketMessage decodes a frame about a change of a market. If kind is empty, it depends on the other fields.
func (d *decoder) marketMessage(r *wire.Row, at time.Time, kind string) []stream.Event {
	id, ok := r.Of(wire.FieldMarketID).ID()
	if !ok || id == "" {
		return noAddress(r)
	}
	m := d.message(r, messages.Topic{Channel: messages.ChannelMarket, ID: id}, messages.KindMarket, at, true)
	if len(kind) > maxCode {
		r.Unreadable(fieldChange)
		kind = ""
	}
	change := &market.MarketChange{Kind: cmp.Or(kind, "METADATA"), StatusRaw: r.Text(wire.FieldStatus)}
	if change.StatusRaw != "" {
		change.Status, change.Kind = market.ParseStatus(change.StatusRaw), cmp.Or(kind, "STATUS")
	}
	if kind == kindResolved {
		resolve(r, change)
	}
	m.Market = change
	return deliver(r, m)
}

func resolve(r *wire.Row, m *market.MarketChange) {
	if m.StatusRaw == "" {
		m.Status, m.StatusRaw = market.StatusResolved, string(market.StatusResolved)
	}
	m.At, m.Outcome = r.Time(fieldTime), r.Text(fieldWinning)
	m.WinningTokenID = r.ID(fieldWinningToken)
}

// marketSnapshot decodes an older type of frame: the prices of a market, its book, or both, or a list of markets with these fields.
func (d *decoder) marketSnapshot(r *wire.Row, at time.Time) (events []stream.Event) {
	list, ok := r.Of(fieldMarkets).List()
	if !ok {
		list = []wire.Value{r.Object}
	}
	for _, v := range list {
		in := r.Child(v)
		if in.Err != nil {
			r.Note("bad market in snapshot")
		}
		if in.Of(fieldTime).IsNull() {
			in.Set(fieldTime, r.Of(fieldTime))
		}
		for _, f := range []wire.Field{wire.FieldBids, wire.FieldAsks} {
			if book := in.Of(fieldBook); f.PresentIn(book) {
				in.Set(f, f.Of(book))
			}
		}
		if in.Has(fieldYesPrice) || in.Has(fieldNoPrice) {
			if yes, no, _ := d.token(in, messages.ChannelPrices); no.ID != "" { // prices of outcomes without ids mean nothing
				events = append(events, d.prices(in, yes, no, at)...)
			}
		}
		if in.Has(wire.FieldBids) || in.Has(wire.FieldAsks) {
			in.Err = nil // the book is usable even if the prices are bad
			events = append(events, d.bookSnapshot(in, at)...)
		}
	}
	return events
}
