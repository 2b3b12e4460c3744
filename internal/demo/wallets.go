package demo

// kind is the kind of a record in a wallet's history.
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

// record is one event of a wallet's history. A wallet's cash is the sum of the amounts of its records.
type record struct {
	at     millis
	token  *token // nil for deposits, withdrawals, rewards and transfers
	price  Price
	size   Size
	fee    Money // fee of a trade; a separate FEE record subtracts the fee from the cash
	amount Money // change of the cash
	kind   kind
	sell   bool
}

func (r *record) side() Side {
	if r.sell {
		return Sell
	}
	return Buy
}

type position struct {
	number    uint64 // increases with each new position of the wallet; used in cursors
	token     *token
	size      Size
	usualSize Size // size around which the wallet trades
	cost      Money

	shown shownPosition // last state sent on the stream
}

// avgPrice returns the mean entry price, rounded to the precision of a price.
func (p *position) avgPrice() Price {
	if p.size == 0 { // closed
		return 0
	}
	return Price((int64(p.cost) + int64(p.size)/2) / int64(p.size))
}

// unrealizedPnl returns size × (price - avgPrice), exactly.
func (p *position) unrealizedPnl() Money { return notional(p.size, p.token.price()-p.avgPrice()) }

// order is a limit order.
type order struct {
	number       uint64
	token        *token
	side         Side
	price        Price
	size, filled Size
	createdAt    millis
	ended        string // FILLED or CANCELLED; empty while the order is active

	shown shownOrder // last state sent on the stream
}

// wallet is the account of one address, guarded by the venue's lock. A wallet that belongs to no demo account is a derived
// wallet: its contents are derived from the address. A derived wallet trades only while a client is subscribed to it, and loses
// its orders on markets that close.
type wallet struct {
	address     string
	seed        uint64
	positions   []*position // in the order in which they were opened
	orders      []*order    // oldest first
	records     []record    // oldest first
	dropped     uint64      // index of records[0] among all records that the wallet ever had; wallet.fold increases it
	lastNumber  uint64      // number of the newest position or order
	cash        Money
	changedAt   millis
	usualOrders int // number of orders that a demo account tries to keep

	seq    uint64 // sequence number of the last streamed state
	topic  *topic // nil without subscribers
	stream walletStream
	traded bool // a derived wallet has traded, so it cannot be derived again
}

// portfolioValue returns the sum of size × price over the positions, exactly.
func (w *wallet) portfolioValue() Money {
	sum := Money(0)
	for _, p := range w.positions {
		sum += notional(p.size, p.token.price())
	}
	return sum
}

// updatedAt returns the time of the last change of the wallet or of the price of a held token.
func (w *wallet) updatedAt() millis {
	at := w.changedAt
	for _, p := range w.positions {
		at = max(at, p.token.priceAt)
	}
	return at
}

func (w *wallet) nextNumber() uint64 {
	w.lastNumber++
	return w.lastNumber
}

func (w *wallet) positionIn(t *token) *position {
	for _, p := range w.positions {
		if p.token == t {
			return p
		}
	}
	return nil
}

func (p *position) change(sell bool, size Size, amount Money) {
	if sell {
		p.cost -= Money(int64(p.cost) * int64(size) / int64(p.size))
		p.size -= size
		return
	}
	p.cost -= amount
	p.size += size
}

// newTrade returns the record of a trade and, if the fee is not 0, the record of the fee.
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

func (w *wallet) reserved() Money {
	sum := Money(0)
	for _, o := range w.orders {
		if o.side == Buy {
			sum += notional(o.size-o.filled, o.price)
		}
	}
	return sum
}
