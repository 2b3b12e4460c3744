package polymarket

import (
	"strconv"

	"oddsgraph/internal/demo"
)

// maxBurst is the maximum number of simultaneous level changes for which the stream sends price_change messages. If more levels
// change at once, the stream sends the whole book.
const maxBurst = 40

// book is an order book: bids from the highest price, asks from the lowest.
type book struct{ bids, asks []demo.Level }

// change is the new size of a level. A size of 0 removes the level.
type change struct {
	side demo.Side
	demo.Level
}

// forToken returns the book of one of the market's two tokens. b is the book of the token with the index 0.
func (b book) forToken(index int) book {
	if index == 0 {
		return b
	}
	return book{mirror(b.asks), mirror(b.bids)}
}

func mirror(levels []demo.Level) []demo.Level {
	out := make([]demo.Level, len(levels))
	for i, l := range levels {
		out[i] = demo.Level{Price: payout - l.Price, Size: l.Size}
	}
	return out
}

// forToken returns the change in the book of one of the market's two tokens. c is the change in the book of the token with the
// index 0.
func (c change) forToken(index int) change {
	if index == 0 {
		return c
	}
	side := demo.Buy
	if c.side == demo.Buy {
		side = demo.Sell
	}
	return change{side, demo.Level{Price: payout - c.Price, Size: c.Size}}
}

// top returns the best prices. bid is 0 if there are no bids, and ask is the payout if there are no asks.
func (b book) top() (bid, ask demo.Price) {
	ask = payout
	if len(b.bids) > 0 {
		bid = b.bids[0].Price
	}
	if len(b.asks) > 0 {
		ask = b.asks[0].Price
	}
	return bid, ask
}

// middle returns the midpoint, or false if a side of the book is empty.
func (b book) middle() (demo.Price, bool) {
	bid, ask := b.top()
	return (bid + ask) / 2, len(b.bids) > 0 && len(b.asks) > 0
}

// cut removes the asks if the market is one-sided.
func (m *market) cut(b book) book {
	if m.oneSided {
		b.asks = nil
	}
	return b
}

// diff returns the changes from one book to the next. New and resized levels come before removed levels, so a client that applies
// the changes one by one can see a crossed book.
func diff(old, next book) []change {
	var set, removed []change
	for _, s := range []struct {
		side      demo.Side
		old, next []demo.Level
	}{{demo.Buy, old.bids, next.bids}, {demo.Sell, old.asks, next.asks}} {
		sizes := make(map[demo.Price]demo.Size, len(s.old))
		for _, l := range s.old {
			sizes[l.Price] = l.Size
		}
		for _, l := range s.next {
			if sizes[l.Price] != l.Size {
				set = append(set, change{s.side, l})
			}
			delete(sizes, l.Price)
		}
		for _, l := range s.old {
			if _, gone := sizes[l.Price]; gone {
				removed = append(removed, change{s.side, demo.Level{Price: l.Price}})
			}
		}
	}
	return append(set, removed...)
}

// hash returns a text that identifies the present state of a token's book.
func (m *market) hash(index int) string {
	return digest("book", m.tokenIDs[index]+" "+m.timestamp())[:40]
}

// Moved implements [demo.Watcher].
func (v *Venue) Moved(demoToken string, price demo.Price, b demo.Book) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m, now := v.byDemoToken[demoToken].market, v.Clock.Now()
	next := m.cut(book{b.Bids, b.Asks})
	changes := diff(m.book, next)
	oldBid, oldAsk := m.book.top()
	bid, ask := next.top()
	m.price = price
	if len(changes) == 0 {
		return
	}
	m.book, m.movedAt, m.stamp = next, now, max(now.UnixMilli(), m.stamp+1)
	v.publish(m, changes, bid != oldBid || ask != oldAsk)
}

// Traded implements [demo.Watcher].
func (v *Venue) Traded(demoToken string, trade demo.Trade) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.byDemoToken[demoToken]
	m := t.market
	m.last[t.index] = lastTrade{trade.Price, trade.Side}
	v.send(m, 1<<t.index, false, object{
		"event_type": "last_trade_price", "asset_id": m.tokenIDs[t.index], "market": m.conditionID, "price": trade.Price.String(),
		"side": string(trade.Side), "size": trade.Size.String(), "fee_rate_bps": "0", "timestamp": stampOf(trade.At),
		"transaction_hash": transaction(trade),
	})
	if m.movedAt.Equal(trade.At) { // the book changed at the time of the trade, so the trade counts as the cause
		v.sendBooks(m)
	}
}

// Changed implements [demo.Watcher].
func (v *Venue) Changed(state demo.Market, kind string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.byDemoMarket[state.MarketID] {
		tick := m.state.TickSize
		m.state = state
		switch kind {
		case "CREATED":
			v.sendNew(m)
		case "TICK_SIZE":
			for i, id := range m.tokenIDs {
				v.send(m, 1<<i, false, object{
					"event_type": "tick_size_change", "asset_id": id, "market": m.conditionID, "old_tick_size": tick.String(),
					"new_tick_size": state.TickSize.String(), "timestamp": stampOf(v.Clock.Now()),
				})
			}
		case "RESOLVED":
			v.sendResolved(m)
		}
	}
}

// publish streams the changes of a book. A change of the best prices counts as a marketable order: each level gets a separate message,
// so between these messages the book can be crossed. All messages have the time, hashes and best prices of the new book. If there are
// more than maxBurst changes, publish sends whole books instead.
func (v *Venue) publish(m *market, changes []change, topMoved bool) {
	if len(m.subs) == 0 {
		return
	}
	step := len(changes)
	switch {
	case step > maxBurst:
		v.sendBooks(m)
		return
	case topMoved:
		step = 1
	}
	for from := 0; from < len(changes); from += step {
		rows := []object{}
		for _, c := range changes[from : from+step] {
			for i, id := range m.tokenIDs {
				bid, ask := m.book.forToken(i).top()
				own := c.forToken(i)
				rows = append(rows, object{
					"asset_id": id, "price": own.Price.String(), "size": own.Size.String(), "side": string(own.side), "hash": m.hash(i),
					"best_bid": bid.String(), "best_ask": ask.String(),
				})
			}
		}
		v.send(m, 3, false, object{"event_type": "price_change", "market": m.conditionID, "price_changes": rows, "timestamp": m.timestamp()})
	}
	for i, id := range m.tokenIDs {
		if bid, ask := m.book.forToken(i).top(); topMoved {
			v.send(m, 1<<i, true, object{
				"event_type": "best_bid_ask", "market": m.conditionID, "asset_id": id, "best_bid": bid.String(), "best_ask": ask.String(),
				"spread": (ask - bid).String(), "timestamp": m.timestamp(),
			})
		}
	}
}

func (v *Venue) sendBooks(m *market) {
	for i := range m.tokenIDs {
		v.send(m, 1<<i, false, m.streamedBook(i))
	}
}

func (m *market) timestamp() string { return strconv.FormatInt(m.stamp, 10) }

// wholeBook returns the members of a book that REST and the stream have in common.
func (m *market) wholeBook(index int) object {
	b := m.book.forToken(index)
	last := ""
	if l := m.last[index]; l.side != "" {
		last = l.price.String()
	}
	out := object{
		"market": m.conditionID, "asset_id": m.tokenIDs[index], "timestamp": m.timestamp(), "hash": m.hash(index),
		"bids": levels(b.bids), "asks": levels(b.asks), "tick_size": m.state.TickSize.String(), "last_trade_price": last,
	}
	if m.version == versionV2 {
		out["version"] = m.version
	}
	return out
}

func (m *market) streamedBook(index int) object {
	b := m.wholeBook(index)
	b["event_type"] = "book"
	return b
}

// levels returns a list of levels in Polymarket's order: the best level last.
func levels(list []demo.Level) []object {
	out := make([]object, len(list))
	for i, l := range list {
		out[len(list)-1-i] = object{"price": l.Price.String(), "size": l.Size.String()}
	}
	return out
}
