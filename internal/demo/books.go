package demo

// Side is the direction of an order, and of a level in a book.
type Side string

// The two sides: bids are BUY levels, asks SELL levels.
const (
	Buy  Side = "BUY"
	Sell Side = "SELL"
)

func (s Side) opposite() Side {
	if s == Buy {
		return Sell
	}
	return Buy
}

// Level is a price in a book and the total size at this price.
type Level struct {
	Price Price
	Size  Size
}

// instrument is an order book and its price. The two tokens of a binary market share one instrument: the book of NO is the mirror
// image of the book of YES. A categorical market has one instrument per outcome.
//
// A level at tick i is a bid if i <= bid, and an ask if i >= ask. There are no levels in between, so the book cannot be crossed.
type instrument struct {
	tick  Price
	ticks int // the price 1.00 in ticks; while the market trades, the price is from 1 to ticks-1
	reach int // maximum distance of a level from the best price of its side, in ticks
	depth int // typical size of a level in whole shares

	sizes    []int32 // sizes[i] is the size at i ticks, in hundredths of a share
	bid, ask int     // best prices in ticks; bid is 0 if there are no bids, ask equals ticks if there are no asks
	price    int     // bid <= price <= ask

	bookSeq, priceSeq uint64 // sequence numbers from 1; priceSeq increases when the price or a best price changes
	bookAt, priceAt   millis // times of the last changes of the book and of the price

	step  uint64 // number of the last step in which the engine moved the instrument
	quiet bool   // the engine does not move the instrument by itself
}

// levelChange is the new total size of one level; a size of 0 removes the level.
type levelChange struct {
	side  Side
	price Price
	size  Size
}

// newInstrument returns an instrument whose book has levels around price. The book is empty if reach is 0.
func newInstrument(tick, price Price, reach, depth int, now millis, r *rng) *instrument {
	n := int(payout / tick)
	in := &instrument{
		tick: tick, ticks: n, reach: reach, depth: depth,
		ask: n, price: int(price / tick),
		bookSeq: 1, priceSeq: 1, bookAt: now, priceAt: now,
	}
	if reach > 0 {
		in.sizes = make([]int32, n+1)
		in.quote(in.price, r, nil)
	}
	return in
}

// quote sets the price in ticks, puts the levels around it, and appends the changed levels to changes. A level keeps its size if it
// stays on its side and lies within in.reach ticks of the best price of this side, both before and after the move. If the level at
// a new best price is empty, it gets a size.
func (in *instrument) quote(price int, r *rng, changes []levelChange) []levelChange {
	oldBid, oldAsk, fresh := in.bid, in.ask, in.bid == 0 && in.ask == in.ticks
	below, above := r.intn(2), r.intn(2)
	if in.reach > 100 { // a fine grid: the spread is a few ticks
		below, above = r.intn(4), r.intn(4)
	}
	if below+above == 0 {
		above = 1
	}
	newBid, newAsk := max(price-below, 0), min(price+above, in.ticks)
	in.price, in.bid, in.ask = price, newBid, newAsk

	first := max(min(oldBid, newBid)-in.reach, 1)
	last := min(max(oldAsk, newAsk)+in.reach, in.ticks-1)
	if fresh {
		first, last = 1, in.ticks-1
	}
	for i := first; i <= last; i++ {
		size := Size(in.sizes[i])
		wasBid, wasAsk := i <= oldBid && !fresh, i >= oldAsk && !fresh
		switch {
		case i <= newBid:
			switch {
			case newBid-i > in.reach:
				size = 0
			case i == newBid && size == 0, !wasBid, oldBid-i > in.reach:
				size = in.levelSize(newBid-i, r)
			}
		case i >= newAsk:
			switch {
			case i-newAsk > in.reach:
				size = 0
			case i == newAsk && size == 0, !wasAsk, i-oldAsk > in.reach:
				size = in.levelSize(i-newAsk, r)
			}
		default:
			size = 0
		}
		changes = in.replace(i, size, wasBid, wasAsk, changes)
	}
	return changes
}

// open fills an empty book with levels around the price. It uses reach and depth only if the book never had levels.
func (in *instrument) open(reach, depth int, r *rng) {
	if in.sizes == nil {
		in.reach, in.depth, in.sizes = reach, depth, make([]int32, in.ticks+1)
	}
	in.quote(min(max(in.price, 1), in.ticks-1), r, nil)
}

// regrid changes the tick size and replaces all levels by new levels around the price.
func (in *instrument) regrid(tick Price, reach, depth int, r *rng) {
	price := Price(in.price) * in.tick
	in.tick, in.ticks = tick, int(payout/tick)
	in.price = min(max(int((price+tick/2)/tick), 1), in.ticks-1)
	in.reach, in.depth, in.sizes = reach, depth, make([]int32, in.ticks+1)
	in.bid, in.ask = 0, in.ticks
	in.quote(in.price, r, nil)
}

// empty removes all levels and reports whether there were any. The price stays.
func (in *instrument) empty() bool {
	had := in.bid > 0 || in.ask < in.ticks
	clear(in.sizes)
	in.bid, in.ask = 0, in.ticks
	return had
}

// resize gives some levels near the best prices a new size and appends the changes. It never removes a best level.
func (in *instrument) resize(r *rng, changes []levelChange) []levelChange {
	for range r.between(1, 4) {
		distance := r.intn(min(in.reach, 12) + 1)
		i, best := in.bid-distance, in.bid
		if r.oneIn(2) {
			i, best = in.ask+distance, in.ask
		}
		if i < 1 || i >= in.ticks {
			continue
		}
		size := in.levelSize(distance, r)
		if i != best && r.oneIn(5) {
			size = 0
		}
		changes = in.set(i, size, changes)
	}
	return changes
}

// levelSize returns a random size for a level. distance is the number of ticks from the best level of the side. Sizes grow over the
// first levels and shrink far from the best level. Some levels are empty, but never the best level.
func (in *instrument) levelSize(distance int, r *rng) Size {
	if distance > 0 && r.oneIn(14) {
		return 0
	}
	hump := 4 + min(distance, 8) - 8*distance/max(in.reach, 1)
	shares := max(in.depth*max(hump, 1)*r.between(20, 100)/800, 1)
	size := Size(shares) * share
	if r.oneIn(3) { // most sizes are whole shares
		size += Size(r.intn(int(share)))
	}
	return size
}

func (in *instrument) set(i int, size Size, changes []levelChange) []levelChange {
	return in.replace(i, size, i <= in.bid, i >= in.ask, changes)
}

// replace sets the size at tick i of a book whose best prices may have moved. wasBid and wasAsk tell the side of tick i before the
// move. A level that changes sides causes two changes: one removes the level from the old side, and one adds the level to the new
// side.
func (in *instrument) replace(i int, size Size, wasBid, wasAsk bool, changes []levelChange) []levelChange {
	old := Size(in.sizes[i])
	in.sizes[i] = int32(size)
	price := Price(i) * in.tick
	isBid := size > 0 && i <= in.bid
	if old > 0 && (wasBid && !isBid || wasAsk && (isBid || size == 0)) {
		side := Sell
		if wasBid {
			side = Buy
		}
		changes = append(changes, levelChange{side, price, 0})
		old = 0
	}
	if size > 0 && size != old {
		side := Sell
		if isBid {
			side = Buy
		}
		changes = append(changes, levelChange{side, price, size})
	}
	return changes
}

// view gives the prices of an instrument for one of its tokens. The view of a NO token is mirrored.
type view struct {
	*instrument
	mirrored bool
}

func (w view) lastPrice() Price { return w.tickPrice(w.price) }

func (w view) tickPrice(i int) Price {
	p := Price(i) * w.tick
	if w.mirrored {
		return payout - p
	}
	return p
}

func (w view) bestBid() (Price, bool) {
	if w.mirrored {
		return payout - Price(w.ask)*w.tick, w.ask < w.ticks
	}
	return Price(w.bid) * w.tick, w.bid > 0
}

func (w view) bestAsk() (Price, bool) {
	if w.mirrored {
		return payout - Price(w.bid)*w.tick, w.bid > 0
	}
	return Price(w.ask) * w.tick, w.ask < w.ticks
}

// eachBid calls f with each bid, highest price first, until f returns false.
func (w view) eachBid(f func(Level) bool) {
	if w.mirrored {
		w.eachUp(f)
	} else {
		w.eachDown(f)
	}
}

// eachAsk calls f with each ask, lowest price first, until f returns false.
func (w view) eachAsk(f func(Level) bool) {
	if w.mirrored {
		w.eachDown(f)
	} else {
		w.eachUp(f)
	}
}

func (w view) eachDown(f func(Level) bool) {
	for i := w.bid; i > 0 && w.bid-i <= w.reach; i-- {
		if s := w.sizes[i]; s > 0 && !f(Level{w.tickPrice(i), Size(s)}) {
			return
		}
	}
}

func (w view) eachUp(f func(Level) bool) {
	for i := w.ask; i < w.ticks && i-w.ask <= w.reach; i++ {
		if s := w.sizes[i]; s > 0 && !f(Level{w.tickPrice(i), Size(s)}) {
			return
		}
	}
}

func (w view) spread() (Price, bool) {
	bid, hasBid := w.bestBid()
	ask, hasAsk := w.bestAsk()
	return ask - bid, hasBid && hasAsk
}
