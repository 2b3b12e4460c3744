package demo

import "slices"

// tradeAccounts fills some of the demo accounts' orders that the market has reached. Sometimes an account also trades at the market
// price, or replaces or adds an order. No position opens or closes.
func (v *Venue) tradeAccounts(now millis) {
	r := &v.random
	for i := range accounts {
		w := v.accounts[accounts[i].address]
		for k := 0; k < len(w.orders); k++ {
			if w.orders[k].reached() && r.oneIn(4) && v.fillOrder(w, k, now, r) {
				k--
			}
		}
		if len(w.positions) > 0 && r.oneIn(12) {
			v.takeLiquidity(w, w.positions[r.intn(len(w.positions))], now)
		}
		if v.dice.orders.oneIn(20) {
			w.requote(now, &v.dice.orders)
		}
	}
}

// tradeGuests lets derived wallets trade while they have subscribers. Derived wallets trade less often than the demo accounts, and at
// most maxGuests of them trade at all.
func (v *Venue) tradeGuests(now millis) {
	r := &v.dice.guests
	for _, t := range v.stream.users {
		w := t.wallet
		if v.accounts[w.address] == w || len(w.positions) == 0 || !r.oneIn(40) || !w.traded && v.guests >= maxGuests {
			continue
		}
		if !w.traded {
			w.traded = true
			v.guests++
		}
		v.takeLiquidity(w, w.positions[r.intn(len(w.positions))], now)
	}
}

// reached reports whether the best price of the opposite side has reached the order's limit price. A quiet book or a market that
// is not open reaches no price.
func (o *order) reached() bool {
	if o.token.market.status != statusOpen || o.token.quiet {
		return false
	}
	if o.side == Buy {
		ask, ok := o.token.bestAsk()
		return ok && ask <= o.price
	}
	bid, ok := o.token.bestBid()
	return ok && bid >= o.price
}

// fillOrder fills half or all of the unfilled size of the order at index k. It cancels the order if the wallet has too little cash
// or no position in the token, or if the sale would close the position. It reports whether the order has ended. If the
// order has ended and the wallet has a position in the token, fillOrder places a new order for the position.
func (v *Venue) fillOrder(w *wallet, k int, now millis, r *rng) bool {
	o := w.orders[k]
	p := w.positionIn(o.token)
	size := o.size - o.filled
	if o.filled == 0 && size >= 2*share && r.oneIn(2) {
		size = size / 2 / share * share
	}
	if p != nil && (o.side == Buy && w.cash >= notional(size, o.price) || o.side == Sell && p.size > size) {
		v.fill(w, o.token, o.side, o.price, size, now, o.side.opposite())
		o.filled += size
		if o.filled < o.size {
			return false
		}
	}
	w.endOrder(k, now) // filled or cancelled
	if p != nil {
		w.place(p, o.side == Buy, now, r)
	}
	return true
}

// endOrder removes the order at index k from w.orders and marks it as filled or cancelled.
func (w *wallet) endOrder(k int, now millis) {
	o := w.orders[k]
	o.ended = orderCancelled
	if o.filled == o.size {
		o.ended = orderFilled
	}
	w.orders, w.changedAt = slices.Delete(slices.Clone(w.orders), k, k+1), now
	if w.topic != nil {
		w.stream.ended = append(w.stream.ended, o)
	}
}

// place adds an order for a position, at a price near the market. The order sells if sell is true or the cash is too low to buy.
func (w *wallet) place(p *position, sell bool, now millis, r *rng) {
	o := newOrder(p, sell)
	o.priceNear(r)
	if o.side == Buy && w.cash-w.reserved() < notional(o.size, o.price) {
		o.side = Sell
		o.priceNear(r)
	}
	if o.side == Sell {
		o.size = min(o.size, p.size)
	}
	o.number, o.createdAt, w.changedAt = w.nextNumber(), now, now
	w.orders = append(w.orders, o)
}

// requote replaces a random order by a new order for the same position. If the wallet has fewer orders than usual, requote tries to
// add an order instead.
func (w *wallet) requote(now millis, r *rng) {
	if len(w.orders) < w.usualOrders && len(w.positions) > 0 {
		for range 8 {
			p := w.positions[r.intn(len(w.positions))]
			if p.token.market.status == statusOpen && !slices.ContainsFunc(w.orders, func(o *order) bool { return o.token == p.token }) {
				w.place(p, r.oneIn(2), now, r)
				return
			}
		}
		return
	}
	if len(w.orders) == 0 {
		return
	}
	k := r.intn(len(w.orders))
	o := w.orders[k]
	if p := w.positionIn(o.token); p != nil {
		w.endOrder(k, now)
		w.place(p, o.side == Sell, now, r)
	}
}

// takeLiquidity trades a tenth of a position's usual size, but at least one share, at the market price. It buys if the position is
// smaller than usual, or else sells. It does nothing if the market is not open, the book is quiet, the cash is too low or the sale
// would close the position.
func (v *Venue) takeLiquidity(w *wallet, p *position, now millis) {
	size := max(p.usualSize/10, share)
	side := Buy
	if p.size >= p.usualSize {
		side = Sell
	}
	if p.token.market.status != statusOpen || p.token.quiet || side == Sell && p.size <= size ||
		side == Buy && w.cash-w.reserved() < notional(size, p.token.taker(side)) {
		return
	}
	v.fill(w, p.token, side, p.token.taker(side), size, now, side)
}
