package demo

import (
	"context"
	"errors"
	"slices"
	"time"
)

const pace = 150 * time.Millisecond

// move is one change of an instrument's price or book. Its level changes turn the previous book into the present book.
type move struct {
	instrument *instrument
	token      *token // first token of the instrument
	changes    []levelChange
	priced     bool // the price changed
}

// Run moves the market about seven times a second, or once a minute if the venue is quiet, until the context ends, and returns the
// context's error. Only one Run should be active.
func (v *Venue) Run(ctx context.Context) error {
	every := pace
	if v.config.Quiet {
		every = time.Minute
	}
	ticker := time.NewTicker(every)
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

// Step moves the market once. About one in sixty of the open books gets a new price or new sizes. Some books get a public trade.
// Some demo accounts trade, and so do some other wallets that have subscribers. A step moves each book and each price at most once,
// so Run moves each of them at most seven times a second. A step may also change a market, see [Config.MarketEvery]. The changes
// depend on the seed, the number of previous steps and the clock.
func (v *Venue) Step() {
	_ = v.change(func(now millis) error {
		v.steps++
		v.moves = v.moves[:0]
		r := &v.random
		for range max(len(v.listing.tradable)/60, 1) {
			if len(v.listing.tradable) == 0 {
				break
			}
			t := v.listing.tradable[r.intn(len(v.listing.tradable))]
			if t.market.status != statusOpen || t.quiet || t.step == v.steps {
				continue
			}
			t.step = v.steps
			price := t.instrument.price
			if !r.oneIn(3) {
				price = t.nextPrice(now, r)
			}
			v.move(t, price, now)
		}
		v.printTrades(now)
		v.tradeAccounts(now)
		v.tradeGuests(now)
		v.changeRandomMarket(now)
		return nil
	})
}

// change runs f while it holds the venue's lock. Still under the lock, it then streams the changes of wallets. Every method that
// changes markets, books or wallets uses change.
func (v *Venue) change(f func(now millis) error) error {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	err := f(now)
	for _, t := range v.stream.users {
		v.publishAccount(t)
	}
	return err
}

// nextPrice returns a random next price of the token in ticks: part of the way to market.priceAt, plus or minus a few ticks.
func (t *token) nextPrice(now millis, r *rng) int {
	in := t.instrument
	missing := int(t.market.priceAt(t.outcome, now)/in.tick) - in.price
	pull, stray := missing/2, 1
	if in.tick < 100 {
		pull, stray = missing/4, 3
	}
	return min(max(in.price+pull+r.between(-stray, stray), 1), in.ticks-1)
}

// move sets the price of an instrument in ticks. If the instrument already has this price, move changes the sizes of some levels
// instead. t is the first token of the instrument.
func (v *Venue) move(t *token, price int, now millis) {
	in := t.instrument
	m := move{instrument: in, token: t, priced: price != in.price}
	if m.priced {
		m.changes = in.quote(price, &v.random, nil)
	} else {
		m.changes = in.resize(&v.random, nil)
	}
	if m.priced || len(m.changes) > 0 {
		v.moves = append(v.moves, m)
		v.moved(t, len(m.changes) > 0, m.priced, now)
	}
}

// moved assigns sequence numbers to a change of an instrument's book or price, or of both, and streams the change.
func (v *Venue) moved(t *token, book, price bool, now millis) {
	in := t.instrument
	if book {
		in.bookSeq++
		in.bookAt = now
	}
	if price {
		in.priceSeq++
		in.priceAt = now
	}
	for _, shown := range t.market.tokens {
		if shown.instrument != in {
			continue
		}
		if book {
			v.publishBook(shown)
		}
		if price {
			v.publishPrice(shown)
		}
	}
	v.notifyMoved(t)
}

// Errors of the methods that change the state.
var (
	ErrUnknownToken   = errors.New("demo: unknown token")
	ErrUnknownAccount = errors.New("demo: only the demo accounts trade")
	ErrNotTrading     = errors.New("demo: the market does not trade")
	ErrPrice          = errors.New("demo: the price is not on the token's grid between 0 and 1")
	ErrSide           = errors.New("demo: the side is not BUY or SELL")
	ErrCash           = errors.New("demo: the order costs more than the account's available cash")
	ErrSize           = errors.New("demo: the size is not positive, or more than is held")
)

// SetPrice moves a token of an open market to a price, together with the token's book. In a binary market, the opposite token moves
// too. In later steps the price drifts back.
func (v *Venue) SetPrice(tokenID string, price Price) error {
	t := v.listing.tokenByID[tokenID]
	if t == nil {
		return ErrUnknownToken
	}
	if price < t.tick || price > payout-t.tick || price%t.tick != 0 {
		return ErrPrice
	}
	return v.change(func(now millis) error {
		if t.market.status != statusOpen {
			return ErrNotTrading
		}
		if t.mirrored {
			t, price = t.market.tokens[0], payout-price
		}
		v.moves = v.moves[:0]
		v.move(t, int(price/t.tick), now)
		return nil
	})
}

// WholePosition is the size for [Venue.Trade] that sells all shares that the account holds.
const WholePosition Size = -1

// Trade buys or sells for a demo account in one fill at the best price, even if the level at this price has fewer shares. Selling
// all shares closes the position. The accounts also trade by themselves, so use [WholePosition] to close a position for sure.
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
	return v.change(func(now millis) error {
		if t.market.status != statusOpen {
			return ErrNotTrading
		}
		p := w.positionIn(t)
		if size == WholePosition && side == Sell && p != nil {
			size = p.size
		}
		if size <= 0 || side == Sell && (p == nil || p.size < size) {
			return ErrSize
		}
		price := t.taker(side)
		if side == Buy && w.cash-w.reserved() < notional(size, price) {
			return ErrCash
		}
		v.fill(w, t, side, price, size, now, side)
		return nil
	})
}

// taker returns the price of a market order: the best price of the opposite side, or the token's price if that side is empty.
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

// maxRecords is the maximum number of records of a wallet. When a wallet has more, one TRANSFER record replaces the oldest quarter.
const maxRecords = 20_000

// fill applies a trade to a wallet and adds the trade to the market's public trades. taker is the side of the taker's order.
func (v *Venue) fill(w *wallet, t *token, side Side, price Price, size Size, now millis, taker Side) {
	id := w.tradeID(w.dropped + uint64(len(w.records)))
	w.fill(t, side, price, size, now)
	v.printTrade(t, tapeTrade{id: id, price: price, size: size, side: taker, at: now})
}

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
	p := w.positionIn(t)
	if p == nil {
		p = &position{number: w.nextNumber(), token: t, usualSize: size}
		w.positions = append(w.positions, p)
	}
	p.change(sell, size, records[0].amount)
	if p.size == 0 {
		w.positions = slices.DeleteFunc(slices.Clone(w.positions), func(q *position) bool { return q == p })
		if w.topic != nil {
			w.stream.closed = append(w.stream.closed, p)
		}
	}
	if len(w.records) > maxRecords {
		w.fold(maxRecords / 4)
	}
}

// fold replaces the oldest records by one record with the sum of their amounts. count is the number of replaced records.
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
