package demo

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
)

// kind is what a record of a wallet's history is about.
type kind uint8

const (
	kindTrade kind = iota
	kindDeposit
	kindWithdrawal
	kindSplit
	kindMerge
	kindRedeem
	kindFee
	kindReward
	kindTransfer
)

var kindNames = [...]string{"TRADE", "DEPOSIT", "WITHDRAWAL", "SPLIT", "MERGE", "REDEEM", "FEE", "REWARD", "TRANSFER"}

// record is one event of a wallet's history. A wallet's cash is the sum of its amounts.
type record struct {
	at     millis
	token  *token // nil for money that moves in or out
	price  Price
	size   Size
	fee    Money // of a trade; it has a FEE record of its own
	amount Money // what the event added to the cash
	kind   kind
	sell   bool
}

// side returns the direction of a trade.
func (r *record) side() Side {
	if r.sell {
		return Sell
	}
	return Buy
}

// position is a holding of one token.
type position struct {
	number uint64 // grows with each new position of the wallet; cursors name it
	token  *token
	size   Size
	usual  Size // around which the demo accounts trade
	cost   Money

	shown shownPosition // what its stream was told last
}

// avgPrice returns the mean entry price, rounded to what a price can say.
func (p *position) avgPrice() Price {
	if p.size == 0 { // closed
		return 0
	}
	return Price((int64(p.cost) + int64(p.size)/2) / int64(p.size))
}

// unrealizedPnl returns size × (price - avgPrice), exactly.
func (p *position) unrealizedPnl() Money { return notional(p.size, p.token.price()-p.avgPrice()) }

// order is an active limit order.
type order struct {
	number       uint64
	token        *token
	side         Side
	price        Price
	size, filled Size
	createdAt    millis
	ended        string // FILLED or CANCELLED; empty while it is active

	shown shownOrder // what its stream was told last
}

// wallet is the account of one address. It changes under the venue's lock. Wallets that are no demo account's trade only
// while somebody streams them, and lose their orders on markets that close.
type wallet struct {
	address   string
	seed      uint64
	positions []*position // in the order in which they were opened
	orders    []*order    // oldest first
	records   []record    // oldest first
	dropped   uint64      // records that stood before the first
	numbers   uint64      // given to positions and orders so far
	cash      Money
	changedAt millis
	usual     int // orders that a demo account has

	seq    uint64 // states that were streamed
	topic  *topic // nil while nobody listens
	stream walletStream

	pins int  // subscriptions to a derived wallet, guarded by the cache
	kept bool // a derived wallet that has traded: it can't be made again
}

// portfolioValue returns the sum of size × price over the positions, exactly.
func (w *wallet) portfolioValue() Money {
	sum := Money(0)
	for _, p := range w.positions {
		sum += notional(p.size, p.token.price())
	}
	return sum
}

// updatedAt returns when anything that the balance is made of changed last.
func (w *wallet) updatedAt() millis {
	at := w.changedAt
	for _, p := range w.positions {
		at = max(at, p.token.priceAt)
	}
	return at
}

// number returns the next number for a position or order.
func (w *wallet) number() uint64 {
	w.numbers++
	return w.numbers
}

// held returns the wallet's position in a token, or nil.
func (w *wallet) held(t *token) *position {
	for _, p := range w.positions {
		if p.token == t {
			return p
		}
	}
	return nil
}

// change applies a trade to a position.
func (p *position) change(sell bool, size Size, amount Money) {
	if sell {
		p.cost -= Money(int64(p.cost) * int64(size) / int64(p.size))
		p.size -= size
		return
	}
	p.cost -= amount
	p.size += size
}

// newTrade returns the record of a trade and, when there is a fee, the one of that.
func newTrade(at millis, t *token, sell bool, price Price, size Size, fee Money) []record {
	amount := -notional(size, price)
	if sell {
		amount = -amount
	}
	records := []record{{at: at, token: t, price: price, size: size, fee: fee, amount: amount, kind: kindTrade, sell: sell}}
	if fee > 0 {
		records = append(records, record{at: at, token: t, amount: -fee, kind: kindFee})
	}
	return records
}

// pools are the tokens that wallets choose from, by what had become of them when the venue opened.
type pools struct {
	open, named, closed, winners, losers []*token
}

func newPools(u *universe) *pools {
	p := &pools{}
	for _, t := range u.tokens {
		switch m := t.market; {
		case m.born.status == statusOpen && m.binary():
			p.open = append(p.open, t)
		case m.born.status == statusOpen:
			p.named = append(p.named, t)
		case m.born.status == statusResolved && m.born.winner == t.outcome:
			p.winners = append(p.winners, t)
		case m.born.status == statusResolved:
			p.losers = append(p.losers, t)
		case m.born.status != statusUpcoming:
			p.closed = append(p.closed, t)
		}
	}
	return p
}

// choose returns count different tokens: most of open binary markets, some of categorical ones and some of markets that
// ended either way. When a pool runs out the others fill in; there may be fewer tokens than asked for.
func (p *pools) choose(count int, taken map[*token]bool, r *rng) []*token {
	var chosen []*token
	take := func(pool []*token, quota int) {
		pool = slices.Clone(pool)
		for n := min(quota, count-len(chosen)); n > 0 && len(pool) > 0; {
			i, last := r.intn(len(pool)), len(pool)-1
			t := pool[i]
			pool[i], pool = pool[last], pool[:last]
			if !taken[t] {
				taken[t] = true
				chosen = append(chosen, t)
				n--
			}
		}
	}
	take(p.winners, min(count/12, len(p.winners)*3/4)) // the rest is left to be redeemed
	take(p.losers, count/12)
	take(p.closed, count/25)
	take(p.named, count/7)
	for _, pool := range [][]*token{p.open, p.named, p.losers, p.winners, p.closed} {
		take(pool, count)
	}
	for i := len(chosen) - 1; i > 0; i-- {
		j := r.intn(i + 1)
		chosen[i], chosen[j] = chosen[j], chosen[i]
	}
	return chosen
}

// How a wallet's past is laid out before the venue opened.
const (
	walletAge  = 180 * day
	quietTime  = day // before the opening: only orders are placed
	roundTrips = 60  // positions that were opened and closed again
)

// newWallet makes the wallet of an address with so many positions. It is a function of the seed, the address and the time
// the venue opened, and reads nothing that moves, except for a trader: its orders lie near the market, so that they fill.
// Those of others lie where no price comes.
func (v *Venue) newWallet(address string, count int, trader bool) *wallet {
	w := &wallet{address: address, seed: hashString(v.config.Seed, address), changedAt: v.opened}
	b := walletBuilder{w: w, r: rng(w.seed), opened: v.opened}
	taken := make(map[*token]bool, count)
	tokens := v.pools.choose(count, taken, &b.r)
	perPosition := 6
	if count > 500 {
		perPosition = 4
	}
	for _, t := range tokens {
		b.open(t, perPosition)
	}
	for _, t := range v.pools.choose(roundTrips, taken, &b.r) {
		b.roundTrip(t)
	}
	b.placeOrders(min(max(count/5, 2), 60), trader)
	b.moveMoney()
	return w
}

// walletBuilder writes a wallet's past.
type walletBuilder struct {
	w      *wallet
	r      rng
	opened millis
}

// lot draws the size of a trade.
func (b *walletBuilder) lot() Size {
	size := Size(b.r.between(8, 80)*5) * share
	if b.r.oneIn(4) {
		size += Size(b.r.between(1, 3)) * 25
	}
	return size
}

// times draws count instants at which the token was traded, in order.
func (b *walletBuilder) times(t *token, count int) []millis {
	from, until := max(t.market.startAt, b.opened-walletAge), b.opened-quietTime
	if closedAt := t.market.born.closedAt; closedAt > 0 {
		until = min(until, closedAt)
	}
	from = min(from, until-hour)
	times := make([]millis, count)
	for i := range times {
		times[i] = from + millis(b.r.next()%uint64(until-from))
	}
	slices.Sort(times)
	return times
}

// record adds a trade, with a fee now and then.
func (b *walletBuilder) record(at millis, t *token, sell bool, price Price, size Size) Money {
	fee := Money(0)
	if sell && b.r.oneIn(3) {
		fee = notional(size, price) / 1000
	}
	records := newTrade(at, t, sell, price, size, fee)
	b.w.records = append(b.w.records, records...)
	return records[0].amount
}

// open builds a position in up to so many trades.
func (b *walletBuilder) open(t *token, trades int) {
	p := &position{number: b.w.number(), token: t}
	for i, at := range b.times(t, b.r.between(1, trades)) {
		size, price := b.lot(), t.market.priceAt(t.outcome, at)
		sell := i > 0 && b.r.oneIn(4)
		if sell {
			size = min(size, p.size/3)
		}
		p.change(sell, size, b.record(at, t, sell, price, size))
	}
	b.w.positions = append(b.w.positions, p)
}

// roundTrip buys a token and later sells it or, when it won, redeems it.
func (b *walletBuilder) roundTrip(t *token) {
	at, size := b.times(t, 2), b.lot()
	b.record(at[0], t, false, t.market.priceAt(t.outcome, at[0]), size)
	if m := &t.market.born; m.winner == t.outcome && m.resolvedAt+hour < b.opened {
		b.w.records = append(b.w.records, record{
			at: m.resolvedAt + hour, token: t, price: payout, size: size, amount: notional(size, payout), kind: kindRedeem,
		})
		return
	}
	b.record(at[1], t, true, t.market.priceAt(t.outcome, at[1]), size)
}

// placeOrders places orders on tokens that the wallet holds, one a token, buying and selling in turn. Some are partly
// filled already.
func (b *walletBuilder) placeOrders(count int, trader bool) {
	for _, p := range b.w.positions {
		p.usual = p.size
		if len(b.w.orders) >= count || p.token.market.born.status != statusOpen {
			continue
		}
		o := newOrder(p, len(b.w.orders)%2 == 1)
		if trader {
			o.priceNear(&b.r)
		} else if !o.moveAway() {
			continue
		}
		o.createdAt = b.opened - quietTime + millis(b.r.next()%uint64(quietTime-2*hour))
		if b.r.oneIn(4) && o.size >= 2*share {
			o.filled = o.size / 2 / share * share
			amount := b.record(o.createdAt+hour, p.token, o.side == Sell, o.price, o.filled)
			p.change(o.side == Sell, o.filled, amount)
		}
		o.number = b.w.number()
		b.w.orders = append(b.w.orders, o)
	}
	slices.SortStableFunc(b.w.orders, func(a, c *order) int { return cmp.Compare(a.createdAt, c.createdAt) })
	for i, o := range b.w.orders {
		o.number = b.w.numbers - uint64(len(b.w.orders)-1-i)
	}
}

// newOrder returns an order on a quarter of a position, which has no price yet.
func newOrder(p *position, sell bool) *order {
	side := Buy
	if sell {
		side = Sell
	}
	return &order{token: p.token, side: side, size: max(p.usual/4/share*share, p.token.market.minOrder)}
}

// priceNear prices the order a few ticks behind the best price on its side.
func (o *order) priceNear(r *rng) {
	t := o.token
	distance := Price(r.intn(4)) * t.tick
	if o.side == Buy {
		bid, _ := t.bestBid()
		o.price = max(bid-distance, t.tick)
		return
	}
	ask, ok := t.bestAsk()
	if !ok {
		ask = payout - t.tick
	}
	o.price = min(ask+distance, payout-t.tick)
}

// moveAway prices the order so that the market never reaches it, and reports whether there is such a price.
func (o *order) moveAway() bool {
	low, high := o.token.market.band(o.token.outcome)
	tick := o.token.market.born.tick // so that a wallet that is made anew has the same orders
	margin := 4 * tick               // more than the live price strays from the band, see Step
	if tick < 100 {
		margin = 20 * tick
	}
	if o.side == Buy {
		o.price = (low - margin) / tick * tick
	} else {
		o.price = (high + margin + tick - 1) / tick * tick
	}
	return o.price >= tick && o.price <= payout-tick
}

// reserved returns what the open buy orders would cost.
func (w *wallet) reserved() Money {
	sum := Money(0)
	for _, o := range w.orders {
		if o.side == Buy {
			sum += notional(o.size-o.filled, o.price)
		}
	}
	return sum
}

// moveMoney adds what explains the cash: rewards, deposits, withdrawals and a first deposit that is large enough for all
// that came after it.
func (b *walletBuilder) moveMoney() {
	w := b.w
	first := b.opened - walletAge - day
	for _, r := range w.records {
		first = min(first, r.at-hour)
	}
	span := uint64(b.opened - quietTime - first)
	add := func(k kind, amount Money) {
		at := first + hour + millis(b.r.next()%(span-uint64(hour)))
		w.records = append(w.records, record{at: at, kind: k, amount: amount})
	}
	for range 3 {
		add(kindDeposit, Money(b.r.between(1, 20))*100*dollar)
	}
	for range 2 {
		add(kindWithdrawal, -Money(b.r.between(1, 8))*50*dollar)
	}
	for range 8 {
		add(kindReward, Money(b.r.between(5, 1500))*dollar/100)
	}
	slices.SortStableFunc(w.records, func(a, c record) int { return cmp.Compare(a.at, c.at) })
	sum, lowest := Money(0), Money(0)
	for _, r := range w.records {
		sum += r.amount
		lowest = min(lowest, sum)
	}
	need := w.reserved() - lowest + Money(b.r.between(200, 5000))*dollar
	deposit := (need/(50*dollar) + 1) * 50 * dollar
	w.records = slices.Insert(w.records, 0, record{at: first, kind: kindDeposit, amount: deposit})
	w.cash = deposit + sum
}

// derivedPositions is how many positions the wallet of an address has that is no demo account.
const derivedPositions = 50

// maxDerived bounds how many derived wallets are kept; the others are made again when they are asked for. maxGuests bounds
// how many of them trade, since those that did can't be made again.
const (
	maxDerived = 1024
	maxGuests  = 256
)

// walletCache keeps the derived wallets that were asked for last, and those that are streamed or have traded.
type walletCache struct {
	making sync.Mutex // makes finding and adding one
	mu     sync.Mutex
	recent list.List // of *wallet, the last one asked for first
	byAddr map[string]*list.Element
	kept   int
}

// find returns a kept wallet, or nil, and pins it when asked to.
func (c *walletCache) find(address string, pin bool) *wallet {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byAddr[address]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	w := e.Value.(*wallet)
	if pin {
		w.pins++
	}
	return w
}

// add keeps a wallet. Past the bound the one goes that was not asked for the longest and can be made again.
func (c *walletCache) add(w *wallet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byAddr == nil {
		c.byAddr = make(map[string]*list.Element)
	}
	c.byAddr[w.address] = c.recent.PushFront(w)
	for e := c.recent.Back(); e != nil && c.recent.Len() > maxDerived; {
		previous := e.Prev()
		if old := e.Value.(*wallet); old.pins == 0 && !old.kept && old != w {
			delete(c.byAddr, c.recent.Remove(e).(*wallet).address)
		}
		e = previous
	}
}

// unpin ends a pin.
func (c *walletCache) unpin(w *wallet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.pins--
}

// keep holds a wallet for good, and reports whether there was room.
func (c *walletCache) keep(w *wallet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !w.kept && c.kept < maxGuests {
		w.kept = true
		c.kept++
	}
	return w.kept
}

// each calls f with every wallet that is kept.
func (c *walletCache) each(f func(*wallet)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.recent.Front(); e != nil; e = e.Next() {
		f(e.Value.(*wallet))
	}
}

// walletOf returns the wallet of an address in lower case. The venue's lock must not be held.
func (v *Venue) walletOf(address string) *wallet { return v.walletAt(address, false) }

// walletAt returns the wallet of an address in lower case, pinned when it is derived and pin is set.
func (v *Venue) walletAt(address string, pin bool) *wallet {
	if w := v.accounts[address]; w != nil {
		return w
	}
	if w := v.derived.find(address, pin); w != nil {
		return w
	}
	made := v.newWallet(address, derivedPositions, false)

	v.mu.RLock() // no market closes meanwhile
	defer v.mu.RUnlock()
	v.derived.making.Lock()
	defer v.derived.making.Unlock()
	if w := v.derived.find(address, pin); w != nil {
		return w // somebody else was first
	}
	made.orders = slices.DeleteFunc(made.orders, func(o *order) bool { return o.token.market.halted })
	if pin {
		made.pins = 1
	}
	v.derived.add(made)
	return made
}
