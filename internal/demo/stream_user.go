package demo

// A wallet's stream sends the differences between the present state and the last sent state. So code that changes a wallet or a
// price need not notify the stream.

// walletStream is the last sent state of a wallet. The last sent states of its positions and orders are in position.shown and
// order.shown.
type walletStream struct {
	records uint64      // number of records already sent, including those that wallet.fold has removed
	ended   []*order    // orders that ended since the last frame
	closed  []*position // positions closed since the last frame
	balance shownBalance
}

// shownPosition, shownOrder and shownBalance are the last sent values.
type (
	shownPosition struct {
		size  Size
		cost  Money
		price Price
	}
	shownOrder struct {
		known  bool
		filled Size
	}
	shownBalance struct {
		portfolio, cash Money
		at              millis
	}
)

func (p *position) values() shownPosition { return shownPosition{p.size, p.cost, p.token.price()} }
func (o *order) values() shownOrder       { return shownOrder{true, o.filled} }
func (w *wallet) values() shownBalance {
	return shownBalance{w.portfolioValue(), w.cash, w.updatedAt()}
}

// markSent marks the present state as sent. The state gets a new sequence number, because the wallet may have changed while it had
// no subscribers.
func (w *wallet) markSent() {
	w.seq++
	w.stream = walletStream{records: w.dropped + uint64(len(w.records)), balance: w.values()}
	for _, p := range w.positions {
		p.shown = p.values()
	}
	for _, o := range w.orders {
		o.shown = o.values()
	}
}

// publishAccount streams all differences of a wallet: orders, then fills, positions and the balance.
func (v *Venue) publishAccount(t *topic) {
	w := t.wallet
	send := func(kind frameKind, name string, add func([]byte) []byte) {
		previous := w.seq
		w.seq++
		b := addNumber(beginUser(kind, w, 512), "prevSeq", previous)
		t.groups[0].publish(finishFrame(kind, add(addName(b, name))))
	}
	sendOrder := func(o *order) {
		o.shown = o.values()
		send(frameOrderUpdate, "order", func(b []byte) []byte { return o.appendStreamed(b, w) })
	}
	for _, o := range w.stream.ended {
		sendOrder(o)
	}
	w.stream.ended = w.stream.ended[:0]
	for _, o := range w.orders {
		if o.shown != o.values() {
			sendOrder(o)
		}
	}
	for i := max(w.stream.records, w.dropped) - w.dropped; i < uint64(len(w.records)); i++ {
		if w.records[i].kind == kindTrade {
			send(frameFill, "trade", func(b []byte) []byte { return w.appendTrade(b, int(i)) })
		}
	}
	w.stream.records = w.dropped + uint64(len(w.records))
	for _, p := range w.stream.closed {
		send(framePositionUpdate, "position", p.append)
	}
	w.stream.closed = w.stream.closed[:0]
	for _, p := range w.positions {
		if now := p.values(); p.shown != now {
			p.shown = now
			send(framePositionUpdate, "position", p.append)
		}
	}
	if now := w.values(); w.stream.balance != now {
		w.stream.balance = now
		send(frameBalanceUpdate, "balance", w.appendBalance)
	}
}
