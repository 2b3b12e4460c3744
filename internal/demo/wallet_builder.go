package demo

import (
	"cmp"
	"slices"
)

// pools are the tokens from which wallets choose, grouped by the states of their markets when the venue opened.
type pools struct {
	open, categorical       []*token // of open binary markets, and of open categorical markets
	closed, winners, losers []*token
}

func newPools(u *universe) *pools {
	p := &pools{}
	for _, t := range u.tokens {
		switch m := t.market; {
		case m.born.status == statusOpen && m.binary():
			p.open = append(p.open, t)
		case m.born.status == statusOpen:
			p.categorical = append(p.categorical, t)
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

// choose returns different tokens: most from open binary markets, some from categorical markets and some from ended markets. If a
// pool is too small, the other pools supply the rest. The result has count tokens, or fewer if all pools together are too small.
// choose skips the tokens in taken, and adds the chosen tokens to taken.
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
	take(p.winners, min(count/12, len(p.winners)*3/4)) // leave some winning tokens for roundTrip, which redeems them
	take(p.losers, count/12)
	take(p.closed, count/25)
	take(p.categorical, count/7)
	for _, pool := range [][]*token{p.open, p.categorical, p.losers, p.winners, p.closed} {
		take(pool, count)
	}
	for i := len(chosen) - 1; i > 0; i-- {
		j := r.intn(i + 1)
		chosen[i], chosen[j] = chosen[j], chosen[i]
	}
	return chosen
}

// Parameters of a wallet's history before the venue opened.
const (
	walletAge  = 180 * day
	quietTime  = day // time before the opening of the venue in which a wallet opens and closes no positions
	roundTrips = 60  // number of positions that the wallet has closed
)

// newWallet makes the wallet of an address. The wallet has count positions, or fewer if there are too few tokens. If trader is
// true, the prices of its orders are near the present prices, so that the orders fill. If trader is false, Step never moves a
// market to the prices of the wallet's orders. Such a wallet depends only on the address and on the state of the venue when the
// venue opened.
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

type walletBuilder struct {
	w      *wallet
	r      rng
	opened millis
}

func (b *walletBuilder) lot() Size {
	size := Size(b.r.between(8, 80)*5) * share
	if b.r.oneIn(4) {
		size += Size(b.r.between(1, 3)) * 25
	}
	return size
}

// times returns random instants when the token could be traded, oldest first. count is their number.
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

// record adds a trade, sometimes with a fee, and returns the change of the cash without the fee.
func (b *walletBuilder) record(at millis, t *token, sell bool, price Price, size Size) Money {
	fee := Money(0)
	if sell && b.r.oneIn(3) {
		fee = notional(size, price) / 1000
	}
	records := newTrade(at, t, sell, price, size, fee)
	b.w.records = append(b.w.records, records...)
	return records[0].amount
}

// open adds a position that results from 1 to maxTrades trades. The number of trades is random.
func (b *walletBuilder) open(t *token, maxTrades int) {
	p := &position{number: b.w.nextNumber(), token: t}
	for i, at := range b.times(t, b.r.between(1, maxTrades)) {
		size, price := b.lot(), t.market.priceAt(t.outcome, at)
		sell := i > 0 && b.r.oneIn(4)
		if sell {
			size = min(size, p.size/3)
		}
		p.change(sell, size, b.record(at, t, sell, price, size))
	}
	b.w.positions = append(b.w.positions, p)
}

// roundTrip buys a token and later sells it. If the token won more than an hour before the venue opened, roundTrip redeems the
// token instead of selling it.
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

// placeOrders adds orders for different held tokens of open markets, alternately to buy and to sell. It adds at most count orders.
// Some of them are partly filled.
func (b *walletBuilder) placeOrders(count int, trader bool) {
	for _, p := range b.w.positions {
		p.usualSize = p.size
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
		o.number = b.w.nextNumber()
		b.w.orders = append(b.w.orders, o)
	}
	slices.SortStableFunc(b.w.orders, func(a, c *order) int { return cmp.Compare(a.createdAt, c.createdAt) })
	for i, o := range b.w.orders {
		o.number = b.w.lastNumber - uint64(len(b.w.orders)-1-i)
	}
}

// newOrder returns an order without a price. Its size is a quarter of the position's usual size, but at least the market's minimum.
func newOrder(p *position, sell bool) *order {
	side := Buy
	if sell {
		side = Sell
	}
	return &order{token: p.token, side: side, size: max(p.usualSize/4/share*share, p.token.market.minOrder)}
}

// priceNear sets a price that is 0 to 3 ticks worse than the best price of the order's side.
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

// moveAway sets a price that the market never reaches in Step. It reports whether there is such a price.
func (o *order) moveAway() bool {
	low, high := o.token.market.band(o.token.outcome)
	tick := o.token.market.born.tick // unlike market.tick, it never changes, so a wallet that is made again has the same orders
	margin := 4 * tick               // nextPrice moves the live price out of the band by less than the margin
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

// moveMoney adds rewards, deposits and withdrawals. It also adds a first deposit that is large enough for all later records.
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
