package stream

import (
	"errors"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

var (
	fieldPrice    = names("price", "p")
	fieldBestBid  = names("bestBid", "bid")
	fieldBestAsk  = names("bestAsk", "ask")
	fieldSpread   = names("spread")
	fieldYesPrice = names("yesPrice")
	fieldNoPrice  = names("noPrice")

	fieldBids    = names("bids")
	fieldAsks    = names("asks")
	fieldChanges = names("changes")
	fieldSize    = names("size", "quantity", "amount")
	fieldSide    = names("side")
	fieldHash    = names("hash")
	fieldBook    = names("orderbook", "book")

	fieldTrades  = names("trades")
	fieldTradeID = append(names("tradeId", "id"), "tradeID")
	fieldHeld    = names("size", "quantity", "currentSize", "shares")
	fieldLabel   = names("outcome")
	fieldFee     = names("fee")
	fieldTxHash  = names("transactionHash", "txHash")
	fieldTradeAt = names("timestamp", "time", "ts", "matchTime", "createdAt")

	fieldChange       = names("change", "kind", "event")
	fieldStatus       = names("status", "state")
	fieldWinningToken = names("winningTokenId", "winningAssetId")
	fieldWinning      = names("outcome", "winningOutcome")
	fieldMarkets      = names("markets")
)

// placing says how a frame names what it is about.
type placing uint8

const (
	// nowhere: not at all, or not understandably, which is noted.
	nowhere placing = iota
	// byToken: by the token's id, so the frame's numbers are the token's own.
	byToken
	// byOutcome: by market and outcome.
	byOutcome
	// byMarket: by the market alone.
	byMarket
)

// token returns the topic of the token that a frame is about. By market alone that is the YES token, and no is the other.
func (d *nativeDecoder) token(r *row, c market.Channel) (t, no market.Topic, by placing) {
	if v := fieldTokenID.of(r.fields); v != nil {
		id, ok := idOf(v)
		if !ok || id == "" {
			astray(r)
			return t, no, nowhere
		}
		return market.Topic{Channel: c, ID: id}, no, byToken
	}
	id, ok := idOf(fieldMarketID.of(r.fields))
	if !ok || id == "" {
		astray(r)
		return t, no, nowhere
	}
	yesToken, noToken, ok := d.client.cfg.Tokens(id)
	if !ok {
		r.note("market with unknown tokens")
		return t, no, nowhere
	}
	t, no = market.Topic{Channel: c, ID: yesToken}, market.Topic{Channel: c, ID: noToken}
	label := fieldLabel.of(r.fields)
	if label == nil {
		return t, no, byMarket
	}
	name, _ := label.(string)
	switch market.KindOfOutcome(name) {
	case market.OutcomeYes:
		return t, no, byOutcome
	case market.OutcomeNo:
		return no, t, byOutcome
	}
	astray(r)
	return t, no, nowhere
}

// price reads price_update, addressed by token, or by market with the prices of YES and NO.
func (d *nativeDecoder) price(r *row, at time.Time) []event {
	t, no, by := d.token(r, market.ChannelPrices)
	switch by {
	case nowhere:
		return nil
	case byMarket:
		return d.prices(r, t, no, at)
	}
	m := d.message(r, t, market.MessagePrice, at, by == byToken)
	m.Spread = r.spread(t.ID, m.Time)
	m.Price = r.priceOf(t.ID, m)
	return deliver(r, m)
}

// priceOf reads the price, else works it out from the best prices.
func (r *row) priceOf(tokenID string, m *market.Message) *market.Price {
	p := &market.Price{TokenID: tokenID, Basis: market.BasisVenue, Timestamp: m.Time}
	if stated := r.unit(fieldPrice); stated != nil {
		p.Price = *stated
		return p
	}
	s := m.Spread
	switch {
	case s == nil, s.BestBid == nil && s.BestAsk == nil:
		r.bad(fieldPrice, "is missing")
		return nil
	case s.BestAsk == nil:
		p.Price, p.Basis = *s.BestBid, market.BasisBestBid
	case s.BestBid == nil:
		p.Price, p.Basis = *s.BestAsk, market.BasisBestAsk
	default:
		p.Price, p.Basis = *s.Midpoint(), market.BasisMidpoint
	}
	r.note("price missing")
	return p
}

// spread reads the best prices; nil where the frame has none of them, or has them crossed.
func (r *row) spread(tokenID string, at time.Time) *market.Spread {
	if !fieldBestBid.in(r.fields) && !fieldBestAsk.in(r.fields) {
		return nil
	}
	s := &market.Spread{
		TokenID: tokenID,
		BestBid: r.unit(fieldBestBid), BestAsk: r.unit(fieldBestAsk), Spread: r.unit(fieldSpread),
		Timestamp: at,
	}
	if s.BestBid != nil && s.BestAsk != nil {
		if s.BestBid.Cmp(*s.BestAsk) > 0 {
			r.note("crossed spread")
			return nil
		}
		if s.Spread == nil {
			d := s.BestAsk.Sub(*s.BestBid).Reduce()
			s.Spread = &d
		}
	}
	return s
}

// prices reads the yesPrice and noPrice of a frame that is addressed by market.
func (d *nativeDecoder) prices(r *row, yes, no market.Topic, at time.Time) []event {
	var events []event
	for _, side := range []struct {
		topic market.Topic
		field field
	}{{yes, fieldYesPrice}, {no, fieldNoPrice}} {
		if stated := r.unit(side.field); stated != nil {
			m := d.message(r, side.topic, market.MessagePrice, at, false)
			m.Price = &market.Price{TokenID: side.topic.ID, Price: *stated, Basis: market.BasisVenue, Timestamp: m.Time}
			events = append(events, event{kind: eventMessage, message: m})
		}
	}
	if len(events) == 0 {
		r.bad(fieldYesPrice, "is missing, and noPrice is")
	}
	if r.err != nil {
		return spoilt(r, yes, no)
	}
	return events
}

func (d *nativeDecoder) bookSnapshot(r *row, at time.Time) []event {
	t, _, by := d.token(r, market.ChannelOrderbook)
	if by == nowhere {
		return nil
	}
	m := d.message(r, t, market.MessageBookSnapshot, at, by == byToken)
	m.Book = d.levels(r, m)
	return deliver(r, m)
}

// bookUpdate reads the changes of a book, or a whole book, which is a snapshot. Lists of bids and asks that are said to
// follow a state could be either, so they are bad.
func (d *nativeDecoder) bookUpdate(r *row, at time.Time) []event {
	t, _, by := d.token(r, market.ChannelOrderbook)
	if by == nowhere {
		return nil
	}
	if !fieldChanges.in(r.fields) {
		m := d.message(r, t, market.MessageBookSnapshot, at, by == byToken)
		if m.PrevSeq != 0 {
			r.bad(fieldChanges, "is missing")
		}
		m.Book = d.levels(r, m)
		return deliver(r, m)
	}
	m := d.message(r, t, market.MessageBookDelta, at, by == byToken)
	list, ok := listOf(fieldChanges.of(r.fields))
	if !ok {
		r.bad(fieldChanges, "is not a list")
	}
	m.Changes = make([]market.LevelChange, 0, len(list))
	for _, v := range list {
		m.Changes = append(m.Changes, r.change(v))
	}
	return deliver(r, m)
}

// change reads one element of changes; a bad one makes the frame bad, so that no half of it is applied.
func (r *row) change(v any) market.LevelChange {
	in := r.inner(v)
	var change market.LevelChange
	raw := strings.ToUpper(in.text(fieldSide))
	switch raw {
	case "BUY", "BID", "BIDS":
		change.Side = market.SideBuy
	case "SELL", "ASK", "ASKS":
		change.Side = market.SideSell
	default:
		in.bad(fieldSide, "is none")
	}
	change.Level = market.Level{Price: in.price(fieldPrice), Size: in.size(fieldSize)}
	if in.err != nil {
		r.bad(fieldChanges, "has a bad element: "+in.err.Error())
	}
	return change
}

// levels reads a whole book. A crossed one is handed on as it is, without a spread.
func (d *nativeDecoder) levels(r *row, m *market.Message) *market.Book {
	b := &market.Book{
		TokenID:   m.Topic.ID,
		Bids:      r.side(fieldBids, fieldAsks),
		Asks:      r.side(fieldAsks, fieldBids),
		Timestamp: m.Time,
		Epoch:     m.Epoch,
		Seq:       m.Seq,
		Hash:      r.text(fieldHash),
		Depth:     d.depth,
	}
	slices.SortFunc(b.Bids, func(x, y market.Level) int { return y.Price.Cmp(x.Price) })
	slices.SortFunc(b.Asks, func(x, y market.Level) int { return x.Price.Cmp(y.Price) })
	b.Bids, b.Asks = r.merge(b.Bids), r.merge(b.Asks)
	if len(b.Bids) > 0 && len(b.Asks) > 0 && b.Bids[0].Price.Cmp(b.Asks[0].Price) <= 0 {
		if b.Spread = r.unit(fieldSpread); b.Spread == nil {
			d := b.Asks[0].Price.Sub(b.Bids[0].Price).Reduce()
			b.Spread = &d
		}
	}
	return b
}

// side reads the levels of a side. A missing one makes the book bad; null is an empty side if the other one is a list.
func (r *row) side(f, other field) []market.Level {
	v := f.of(r.fields)
	list, ok := listOf(v)
	if !ok {
		if _, vouched := other.of(r.fields).([]any); v != nil || !f.in(r.fields) || !vouched {
			r.bad(f, "is not a list")
		}
		return nil
	}
	levels := make([]market.Level, 0, len(list))
	for _, v := range list {
		level, err := r.level(v)
		if err != nil {
			r.bad(f, "has a bad level: "+err.Error())
			return nil
		}
		if !level.Size.IsZero() {
			levels = append(levels, level)
		}
	}
	return levels
}

// level reads {price,size} or [price,size].
func (r *row) level(v any) (market.Level, error) {
	if pair, ok := v.([]any); ok {
		if len(pair) < 2 {
			return market.Level{}, errors.New("a pair without size")
		}
		v = map[string]any{fieldPrice[0]: pair[0], fieldSize[0]: pair[1]}
	}
	in := r.inner(v)
	level := market.Level{Price: in.price(fieldPrice), Size: in.size(fieldSize)}
	return level, in.err
}

// merge sums neighbouring levels of the same price.
func (r *row) merge(levels []market.Level) []market.Level {
	out := levels[:0]
	for _, level := range levels {
		if last := len(out) - 1; last >= 0 && out[last].Price.Cmp(level.Price) == 0 {
			out[last].Size = out[last].Size.Add(level.Size)
			r.note("repeated level")
			continue
		}
		out = append(out, level)
	}
	return out
}

func (d *nativeDecoder) tradesSnapshot(r *row, at time.Time) []event {
	t, _, by := d.token(r, market.ChannelTrades)
	switch by {
	case nowhere:
		return nil
	case byMarket:
		return astray(r)
	}
	m := d.message(r, t, market.MessageTradesSnapshot, at, by == byToken)
	list, ok := listOf(fieldTrades.of(r.fields))
	if !ok {
		r.bad(fieldTrades, "is not a list")
	}
	m.Trades = make([]market.Trade, 0, len(list))
	for _, v := range list {
		in := r.inner(v)
		m.Trades = append(m.Trades, in.tapeTrade(m))
		if in.err != nil {
			r.bad(fieldTrades, "has a bad element: "+in.err.Error())
		}
	}
	oldestFirst(m.Trades)
	return deliver(r, m)
}

// oldestFirst sorts trades; those of the same time stay in the venue's order, whichever way round that is.
func oldestFirst(trades []market.Trade) {
	if n := len(trades); n > 1 && trades[0].Timestamp.After(trades[n-1].Timestamp) {
		slices.Reverse(trades)
	}
	slices.SortStableFunc(trades, func(a, b market.Trade) int { return a.Timestamp.Compare(b.Timestamp) })
}

func (d *nativeDecoder) trade(r *row, at time.Time) []event {
	t, _, by := d.token(r, market.ChannelTrades)
	switch by {
	case nowhere:
		return nil
	case byMarket:
		return astray(r)
	}
	m := d.message(r, t, market.MessageTrade, at, by == byToken)
	m.Trades = []market.Trade{r.tapeTrade(m)}
	return deliver(r, m)
}

// tapeTrade reads a trade of the public tape. Token and market are the message's where the row does not name them; a row
// that names another token is bad.
func (r *row) tapeTrade(m *market.Message) market.Trade {
	t := r.trade()
	if t.TokenID == "" {
		t.TokenID = m.Topic.ID
	}
	if t.TokenID != m.Topic.ID {
		r.bad(fieldTokenID, "is another one")
	}
	if t.MarketID == "" {
		t.MarketID = m.MarketID
	}
	return t
}

func (d *nativeDecoder) marketUpdate(r *row, at time.Time) []event {
	return d.marketMessage(r, at, func(m *market.MarketChange) {
		if m.Kind = strings.ToUpper(r.text(fieldChange)); len(m.Kind) > maxCode {
			r.unreadable(fieldChange)
			m.Kind = ""
		}
		switch {
		case m.Kind != "":
		case m.StatusRaw != "":
			m.Kind = "STATUS"
		default:
			m.Kind = "METADATA"
		}
		if m.Kind == kindResolved {
			r.resolve(m)
		}
	})
}

const kindResolved = "RESOLVED"

func (d *nativeDecoder) marketResolved(r *row, at time.Time) []event {
	return d.marketMessage(r, at, func(m *market.MarketChange) {
		m.Kind = kindResolved
		r.resolve(m)
	})
}

// marketMessage reads what all frames of the market channel have in common.
func (d *nativeDecoder) marketMessage(r *row, at time.Time, fill func(*market.MarketChange)) []event {
	id, ok := idOf(fieldMarketID.of(r.fields))
	if !ok || id == "" {
		return astray(r)
	}
	m := d.message(r, market.Topic{Channel: market.ChannelMarket, ID: id}, market.MessageMarket, at, true)
	m.Market = &market.MarketChange{StatusRaw: r.text(fieldStatus)}
	if m.Market.StatusRaw != "" {
		m.Market.Status = market.ParseStatus(m.Market.StatusRaw)
	}
	fill(m.Market)
	return deliver(r, m)
}

// resolve reads how a market ended. A frame that does not state the status means RESOLVED.
func (r *row) resolve(m *market.MarketChange) {
	if m.StatusRaw == "" {
		m.Status, m.StatusRaw = market.StatusResolved, string(market.StatusResolved)
	}
	m.Outcome = r.text(fieldWinning)
	m.WinningTokenID = r.id(fieldWinningToken)
}

// marketSnapshot reads the compatibility form in which one frame has a market's prices and perhaps its book, or a list of
// markets has them.
func (d *nativeDecoder) marketSnapshot(r *row, at time.Time) []event {
	list, ok := listOf(fieldMarkets.of(r.fields))
	if !ok {
		list = []any{r.fields}
	}
	stamp := fieldTime.of(r.fields)
	var events []event
	for _, v := range list {
		fields, ok := v.(map[string]any)
		if !ok {
			r.note("bad market in snapshot")
			continue
		}
		if fieldTime.of(fields) == nil && stamp != nil {
			fields[fieldTime[0]] = stamp
		}
		if fieldYesPrice.in(fields) || fieldNoPrice.in(fields) {
			in := &row{fields: fields, note: r.note}
			if yes, no, by := d.token(in, market.ChannelPrices); by == byMarket {
				events = append(events, d.prices(in, yes, no, at)...)
			}
		}
		if book, ok := fieldBook.of(fields).(map[string]any); ok {
			for _, f := range []field{fieldBids, fieldAsks} {
				if f.in(book) {
					fields[f[0]] = f.of(book)
				}
			}
		}
		if fieldBids.in(fields) || fieldAsks.in(fields) {
			events = append(events, d.bookSnapshot(&row{fields: fields, note: r.note}, at)...)
		}
	}
	return events
}
