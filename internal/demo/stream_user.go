package demo

// A wallet's stream is what has become different since it was told last: whoever changes a wallet, or a price, need not
// know who listens.

// walletStream is what the stream of a wallet has to remember beside what its positions and orders do.
type walletStream struct {
	records uint64      // those that were looked at, of all that the wallet ever had
	ended   []*order    // since
	closed  []*position // since
	balance shownBalance
}

// shownPosition, shownOrder and shownBalance are what the stream said last.
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

func (p *position) show() shownPosition { return shownPosition{p.size, p.cost, p.token.price()} }
func (o *order) show() shownOrder       { return shownOrder{true, o.filled} }
func (w *wallet) show() shownBalance    { return shownBalance{w.portfolioValue(), w.cash, w.updatedAt()} }

// watch takes the present state for what was told. It is a new one, since nobody counted while nobody listened.
func (w *wallet) watch() {
	w.seq++
	w.stream = walletStream{records: w.dropped + uint64(len(w.records)), balance: w.show()}
	for _, p := range w.positions {
		p.shown = p.show()
	}
	for _, o := range w.orders {
		o.shown = o.show()
	}
}

// publishAccount streams all that is different in a wallet: orders, then fills, positions and the balance.
func (v *Venue) publishAccount(t *topic) {
	w := t.wallet
	say := func(kind frameKind, name string, add func([]byte) []byte) {
		previous := w.seq + v.skippedTopic(t)
		w.seq = previous + 1
		b := addNumber(beginUser(kind, w, 512), "prevSeq", previous)
		t.groups[0].publish(v, finished(kind, add(addName(b, name))))
	}
	tell := func(o *order) {
		o.shown = o.show()
		say(frameOrderUpdate, "order", func(b []byte) []byte { return o.appendStreamed(b, w) })
	}
	for _, o := range w.stream.ended {
		tell(o)
	}
	w.stream.ended = w.stream.ended[:0]
	for _, o := range w.orders {
		if o.shown != o.show() {
			tell(o)
		}
	}
	for i := max(w.stream.records, w.dropped) - w.dropped; i < uint64(len(w.records)); i++ {
		if w.records[i].kind == kindTrade {
			say(frameFill, "trade", func(b []byte) []byte { return w.appendTrade(b, int(i)) })
		}
	}
	w.stream.records = w.dropped + uint64(len(w.records))
	for _, p := range w.stream.closed {
		say(framePositionUpdate, "position", p.append)
	}
	w.stream.closed = w.stream.closed[:0]
	for _, p := range w.positions {
		if now := p.show(); p.shown != now {
			p.shown = now
			say(framePositionUpdate, "position", p.append)
		}
	}
	if now := w.show(); w.stream.balance != now {
		w.stream.balance = now
		say(frameBalanceUpdate, "balance", w.appendBalance)
	}
}
