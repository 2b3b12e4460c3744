package upstream

// Kind is a kind of data that is read.
type Kind uint8

// The kinds, in the order in which logs and metrics list them.
const (
	KindPrice Kind = iota
	KindSpread
	KindBook
	KindHistory
	KindMarket
	KindEvent
	KindSearch
	KindEventSearch
	KindCategories
	KindMarketTrades
	KindBalance
	KindPositions
	KindOrders
	KindTrades
	KindUserHistory
	// Kinds is the number of kinds.
	Kinds = iota
)

var kindNames = [Kinds]string{
	"price", "spread", "book", "history", "market", "event", "search", "event_search", "categories", "market_trades", "balance", "positions", "orders", "trades", "user_history",
}

// String returns the name that metrics show.
func (k Kind) String() string { return kindNames[k] }

// User reports whether data of this kind belongs to one account.
func (k Kind) User() bool { return k >= KindBalance }
