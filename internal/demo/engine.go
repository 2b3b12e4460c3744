package demo

import (
	"context"
	"errors"
	"time"
)

// pace is how often Run moves the market.
const pace = 150 * time.Millisecond

// move is what one step did to one instrument. Applying the changes to the book before gives the book at bookSeq.
type move struct {
	instrument *instrument
	token      *token // the first one that shows it
	changes    []levelChange
	priced     bool // the price changed too
}

// Run moves the market about seven times a second until the context ends, and returns the context's error. Only one Run
// should be active.
func (v *Venue) Run(ctx context.Context) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			v.Step()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Step moves the market once: about one in sixty of the open books gets a new price or new sizes, and the demo accounts
// trade. What it does depends on the seed, the number of steps before it and the clock.
func (v *Venue) Step() {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.steps++
	v.moves = v.moves[:0]
	r := &v.random
	for range max(len(v.listing.tradable)/60, 1) {
		if len(v.listing.tradable) == 0 {
			break
		}
		t := v.listing.tradable[r.intn(len(v.listing.tradable))]
		if t.market.status != statusOpen {
			continue
		}
		price := t.instrument.price
		if !r.oneIn(3) {
			price = t.nextPrice(now, r)
		}
		v.move(t, price, now)
	}
	v.tradeAccounts(now)
}

// nextPrice draws the token's next price in ticks: a small step, drawn towards what its past leads to.
func (t *token) nextPrice(now millis, r *rng) int {
	in := t.instrument
	missing := int(t.market.priceAt(t.outcome, now)/in.tick) - in.price
	pull, stray := missing/2, 1
	if in.tick < 100 {
		pull, stray = missing/4, 3
	}
	return min(max(in.price+pull+r.between(-stray, stray), 1), in.ticks-1)
}

// move gives an instrument a price in ticks, and other sizes when that is the price it has. t is the first token that
// shows it.
func (v *Venue) move(t *token, price int, now millis) {
	in := t.instrument
	m := move{instrument: in, token: t, priced: price != in.price}
	if m.priced {
		m.changes = in.quote(price, &v.random, nil)
		in.priceSeq++
		in.priceAt = now
	} else {
		m.changes = in.resize(&v.random, nil)
	}
	if len(m.changes) > 0 {
		in.bookSeq++
		in.bookAt = now
	}
	if m.priced || len(m.changes) > 0 {
		v.moves = append(v.moves, m)
	}
}

// Errors of the methods that change the state.
var (
	ErrUnknownToken   = errors.New("demo: unknown token")
	ErrUnknownAccount = errors.New("demo: only the demo accounts trade")
	ErrNotTrading     = errors.New("demo: the market does not trade")
	ErrPrice          = errors.New("demo: the price is not on the token's grid between 0 and 1")
	ErrSide           = errors.New("demo: the side is not BUY or SELL")
	ErrCash           = errors.New("demo: the account's free cash does not pay for it")
	ErrSize           = errors.New("demo: the size is not positive, or more than is held")
)

// SetPrice moves a token of an open market to a price, with its book and the market's other token. From there the price
// drifts back as the market moves.
func (v *Venue) SetPrice(tokenID string, price Price) error {
	t := v.listing.tokenByID[tokenID]
	if t == nil {
		return ErrUnknownToken
	}
	if price < t.tick || price > payout-t.tick || price%t.tick != 0 {
		return ErrPrice
	}
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.market.status != statusOpen {
		return ErrNotTrading
	}
	if t.mirrored {
		t, price = t.market.tokens[0], payout-price
	}
	v.moves = v.moves[:0]
	v.move(t, int(price/t.tick), now)
	return nil
}

// Trade buys or sells for a demo account at the best price of the market, in one fill. Selling all that is held closes the
// position.
func (v *Venue) Trade(address, tokenID string, side Side, size Size) error {
	t := v.listing.tokenByID[tokenID]
	if t == nil {
		return ErrUnknownToken
	}
	address, _ = parseAddress(address)
	w := v.accounts[address]
	if w == nil {
		return ErrUnknownAccount
	}
	if side != Buy && side != Sell {
		return ErrSide
	}
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.market.status != statusOpen {
		return ErrNotTrading
	}
	if p := w.held(t); size <= 0 || side == Sell && (p == nil || p.size < size) {
		return ErrSize
	}
	price := t.taker(side)
	if side == Buy && w.cash-w.reserved() < notional(size, price) {
		return ErrCash
	}
	w.fill(t, side, price, size, now)
	return nil
}

// taker returns the price that a market order pays: the best one of the other side, or the stated price when that is empty.
func (t *token) taker(side Side) Price {
	best := t.bestAsk
	if side == Sell {
		best = t.bestBid
	}
	if p, ok := best(); ok {
		return p
	}
	return t.price()
}

// maxRecords bounds a trading account's history. Past it the oldest quarter is replaced by one TRANSFER of its sum.
const maxRecords = 20_000

// fill books a trade.
func (w *wallet) fill(t *token, side Side, price Price, size Size, now millis) {
	sell := side == Sell
	fee := Money(0)
	if sell {
		fee = notional(size, price) / 1000
	}
	records := newTrade(now, t, sell, price, size, fee)
	for _, r := range records {
		w.cash += r.amount
	}
	w.records = append(w.records, records...)
	w.changedAt = now
	p := w.held(t)
	if p == nil {
		p = &position{number: w.number(), token: t, usual: size}
		w.positions = append(w.positions, p)
	}
	p.change(sell, size, records[0].amount)
	if p.size == 0 {
		kept := make([]*position, 0, len(w.positions)-1)
		for _, q := range w.positions {
			if q != p {
				kept = append(kept, q)
			}
		}
		w.positions = kept
	}
	if len(w.records) > maxRecords {
		w.fold(maxRecords / 4)
	}
}

// fold replaces the oldest count records by one of their sum.
func (w *wallet) fold(count int) {
	sum := Money(0)
	for _, r := range w.records[:count] {
		sum += r.amount
	}
	kept := make([]record, 0, maxRecords+2)
	kept = append(kept, record{at: w.records[count-1].at, kind: kindTransfer, amount: sum})
	w.records = append(kept, w.records[count:]...)
	w.dropped += uint64(count - 1)
}

// tradeAccounts lets the demo accounts trade: orders that the market reached fill, and now and then an account takes
// liquidity. No position is opened or closed by it.
func (v *Venue) tradeAccounts(now millis) {
	r := &v.random
	for i := range accounts {
		w := v.accounts[accounts[i].address]
		for k := 0; k < len(w.orders); k++ {
			if w.orders[k].reached() && r.oneIn(4) && w.fillOrder(k, now, r) {
				k--
			}
		}
		if len(w.positions) > 0 && r.oneIn(12) {
			w.takeLiquidity(w.positions[r.intn(len(w.positions))], now)
		}
	}
}

// reached reports whether somebody would trade at the order's limit now.
func (o *order) reached() bool {
	if o.token.market.status != statusOpen {
		return false
	}
	if o.side == Buy {
		ask, ok := o.token.bestAsk()
		return ok && ask <= o.price
	}
	bid, ok := o.token.bestBid()
	return ok && bid >= o.price
}

// fillOrder fills half of the order at index k, or all that is left of it. It reports whether the order is gone; then a new
// one in the other direction takes its place at the end of the list.
func (w *wallet) fillOrder(k int, now millis, r *rng) bool {
	o := w.orders[k]
	p := w.held(o.token)
	size := o.size - o.filled
	if o.filled == 0 && size >= 2*share && r.oneIn(2) {
		size = size / 2 / share * share
	}
	if p != nil && (o.side == Buy && w.cash >= notional(size, o.price) || o.side == Sell && p.size > size) {
		w.fill(o.token, o.side, o.price, size, now)
		o.filled += size
		if o.filled < o.size {
			return false
		}
	}
	// Filled, or cancelled because it can't be paid for any more.
	orders := make([]*order, 0, len(w.orders))
	w.orders, w.changedAt = append(append(orders, w.orders[:k]...), w.orders[k+1:]...), now
	if p != nil {
		next := newOrder(p, o.side == Buy)
		next.priceNear(r)
		if next.side == Buy && w.cash-w.reserved() < notional(next.size, next.price) {
			next.side = Sell
			next.priceNear(r)
		}
		if next.side == Sell {
			next.size = min(next.size, p.size)
		}
		next.number, next.createdAt = w.number(), now
		w.orders = append(w.orders, next)
	}
	return true
}

// takeLiquidity trades a tenth of a position's usual size at the market, towards that size.
func (w *wallet) takeLiquidity(p *position, now millis) {
	size := max(p.usual/10, share)
	side := Buy
	if p.size >= p.usual {
		side = Sell
	}
	if p.token.market.status != statusOpen || side == Sell && p.size <= size ||
		side == Buy && w.cash-w.reserved() < notional(size, p.token.taker(side)) {
		return
	}
	w.fill(p.token, side, p.token.taker(side), size, now)
}
