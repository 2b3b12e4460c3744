package demo

import "slices"

const tapeLength = 50

// tapeTrade is one public trade. side is the taker's side.
type tapeTrade struct {
	id    string
	price Price
	size  Size
	side  Side
	at    millis
}

func (trade *tapeTrade) toTrade(t *token) Trade {
	return Trade{trade.id, t.id, trade.price, trade.size, trade.side, trade.at.Time()}
}

// tape has the last public trades of a token since the venue opened.
type tape struct {
	seq    uint64 // sequence number of the present state, from 1
	count  uint64 // number of all trades since the venue opened; the id of a trade depends on this number
	trades []tapeTrade
}

func (v *Venue) printTrade(t *token, trade tapeTrade) {
	tp := &t.tape
	tp.count++
	tp.seq++
	if len(tp.trades) == 2*tapeLength {
		tp.trades = append(tp.trades[:0], tp.trades[tapeLength:]...)
	}
	tp.trades = append(tp.trades, trade)
	v.publishTrade(t, trade)
	if v.config.Watch != nil {
		v.config.Watch.Traded(t.id, trade.toTrade(t))
	}
}

// printTrades adds a random public trade for about half of the instruments that moved in the step, and for about one in sixty of
// all tradable instruments.
func (v *Venue) printTrades(now millis) {
	r := &v.dice.tape
	for i := range v.moves {
		if r.oneIn(2) {
			v.printOne(v.moves[i].token, now)
		}
	}
	for range len(v.listing.tradable) / 60 {
		t := v.listing.tradable[r.intn(len(v.listing.tradable))]
		if t.market.status == statusOpen && !t.quiet {
			v.printOne(t, now)
		}
	}
}

// printOne adds a random public trade at the best price. In a binary market it draws one of the two tokens for the trade.
func (v *Venue) printOne(t *token, now millis) {
	r := &v.dice.tape
	if t.market.binary() {
		t = t.market.tokens[r.intn(2)]
	}
	trade := tapeTrade{side: Buy, size: Size(r.between(1, 60)*5) * share, at: now}
	if r.oneIn(2) {
		trade.side = Sell
	}
	if r.oneIn(4) {
		trade.size += Size(r.intn(int(share)))
	}
	trade.price = t.taker(trade.side)
	trade.id = t.tradeID(0, t.tape.count)
	v.printTrade(t, trade)
}

// tradeID returns the id of a public trade without a wallet. past is 1 for trades from before the venue opened and 0 for later
// trades.
func (t *token) tradeID(past, number uint64) string {
	return string(appendHex([]byte("tr-"), hash(t.market.seed, 6, past, uint64(t.outcome), number)))
}

// recentTrades returns the last trades of the token, at most tapeLength, oldest first. Trades from before the venue opened are
// generated from the seed.
func (t *token) recentTrades(opened millis) []tapeTrade {
	trades := t.tape.trades[max(len(t.tape.trades)-tapeLength, 0):]
	m := t.market
	last := opened
	if m.born.closedAt > 0 {
		last = min(last, m.born.closedAt)
	}
	var past []tapeTrade
	for k := range uint64(tapeLength - len(trades)) {
		r := rng(hash(m.seed, 7, uint64(t.outcome), k))
		at := last - millis(k)*90*second - millis(r.intn(80_000))
		if at < m.startAt || m.born.status == statusUpcoming {
			break
		}
		trade := tapeTrade{id: t.tradeID(1, k), price: m.priceAt(t.outcome, at), size: Size(r.between(1, 60)*5) * share, side: Buy, at: at}
		if r.oneIn(2) {
			trade.side = Sell
		}
		past = append(past, trade)
	}
	slices.Reverse(past)
	return append(past, trades...)
}
