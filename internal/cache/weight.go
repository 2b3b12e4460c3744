package cache

import (
	"unsafe"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// DefaultMemory is the default of Config.Memory, in bytes.
const DefaultMemory = 64 << 20

// shares divides Config.Memory into 64 parts. Each kind of data gets the given number of parts, and Cache.refs gets the parts of
// the field names. Because these numbers are fixed, many entries of one kind cannot evict entries of another kind.
var shares = struct {
	price, spread, book, market, names, search, event, eventSearch, categories, marketTrades, history, balance, positions, orders, trades, userHistory int
}{
	price: 7, spread: 6, book: 12, market: 10, names: 3, search: 3, event: 3, eventSearch: 2, categories: 1, marketTrades: 1, history: 4,
	balance: 1, positions: 5, orders: 2, trades: 2, userHistory: 2,
}

// weight contains the share of a kind, in 64ths of Config.Memory, and a function that estimates the size of a value in bytes.
type weight[T any] struct {
	share int
	weigh func(*T) int
}

// share returns the size of part/64 of Memory in bytes.
func (cfg Config) share(part int) int { return cfg.Memory / 64 * part }

// The memory of each kind, divided by absenceDivisor, is reserved for the absences of the kind.
const absenceDivisor = 8

const (
	// tableSlot is the size of a hash-table slot without the key, in bytes.
	tableSlot = 16
	// header is the average overhead of an allocation in bytes.
	header = 8
	// leftOutRow is the size of the error that reports one unreadable row, in bytes.
	leftOutRow = 384
)

// overhead returns the bytes that an entry needs besides its value: the entry, its handle, and its list element and hash-table slot
// in a clockLRU.
func overhead[K comparable, T any]() int {
	var e entry[T]
	var k K
	var h market.Handle
	const links = 72 // an element of simplelru's list: three pointers, the pointer to the value, a time and a bucket
	return int(unsafe.Sizeof(e)+unsafe.Sizeof(h)+2*unsafe.Sizeof(k)) + int(unsafe.Sizeof(k))/2 + links + tableSlot + 3*header
}

// texts returns the size of strings in bytes.
func texts(all ...string) (bytes int) {
	for _, text := range all {
		if text != "" {
			bytes += len(text) + header
		}
	}
	return bytes
}

// decimals returns the size of numbers in bytes. It counts 0 for nil.
func decimals(all ...*market.Decimal) (bytes int) {
	for _, d := range all {
		if d != nil {
			bytes += int(unsafe.Sizeof(*d)) + header
		}
	}
	return bytes
}

// rows returns the size of a slice's array in bytes, without the memory that the elements point to.
func rows[T any](list []T) int {
	var element T
	return cap(list)*int(unsafe.Sizeof(element)) + header
}

func weighPrice(p *market.Price) int { return int(unsafe.Sizeof(*p)) + texts(p.TokenID) }

func weighSpread(s *market.Spread) int {
	return int(unsafe.Sizeof(*s)) + texts(s.TokenID) + decimals(s.BestBid, s.BestAsk, s.Spread)
}

// weighBook includes the memory of Rendered, which readers of the book fill later. It does not visit each level of the book,
// because streamed books are replaced often.
func weighBook(b *market.Book) int {
	bytes := int(unsafe.Sizeof(*b)) + texts(b.TokenID, b.Epoch, b.Hash) + decimals(b.Spread) + b.Bids.Bytes() + b.Asks.Bytes()
	if b.Rendered != nil {
		bytes += market.RenderedBytes(max(b.Bids.Len(), b.Asks.Len()))
	}
	return bytes
}

func weighHistory(h *market.PriceHistory) int {
	bytes := int(unsafe.Sizeof(*h)) + rows(h.Points) + leftOut(h.LeftOut)
	for i := range h.Points {
		bytes += decimals(h.Points[i].Volume)
	}
	return bytes
}

func weighMarket(m *market.Market) int {
	bytes := int(unsafe.Sizeof(*m)) + rows(m.Tags) + texts(m.Tags...) + rows(m.Outcomes) +
		texts(m.MarketID, m.Slug, m.Question, m.GroupItemTitle, m.Description, m.Image, m.Category, m.StatusRaw, m.EventID, m.EventSlug, m.EventTitle) +
		decimals(m.Volume, m.Volume24h, m.Liquidity, m.TickSize, m.MinOrderSize)
	for i := range m.Outcomes {
		o := &m.Outcomes[i]
		bytes += texts(o.TokenID, o.Label) + decimals(o.Price)
	}
	if r := m.Resolution; r != nil {
		bytes += int(unsafe.Sizeof(*r)) + texts(r.Outcome, r.Source)
	}
	return bytes
}

func weighMarkets(list []*market.Market) int {
	bytes := rows(list)
	for _, m := range list {
		bytes += weighMarket(m)
	}
	return bytes
}

func weighEvent(e *market.Event) int {
	return int(unsafe.Sizeof(*e)) + texts(e.EventID, e.Slug, e.Title, e.Image, e.Description, e.Category) + decimals(e.Volume, e.Volume24h) +
		weighMarkets(e.Markets) + leftOut(e.LeftOut)
}

func weighEvents(p *queries.EventPage) int {
	bytes := int(unsafe.Sizeof(*p)) + texts(p.Next) + rows(p.Events) + leftOut(p.LeftOut)
	for i := range p.Events {
		e := &p.Events[i]
		if bytes += weighEvent(e.Event) + rows(e.Matches); !e.Whole {
			bytes += weighMarkets(e.Matches)
		}
	}
	return bytes
}

func weighCategories(c *queries.Categories) int {
	bytes := int(unsafe.Sizeof(*c)) + rows(c.List)
	for i := range c.List {
		bytes += texts(c.List[i].Name)
	}
	return bytes
}

func weighSearch(p *queries.SearchPage) int {
	return int(unsafe.Sizeof(*p)) + texts(p.Next) + weighMarkets(p.Markets) + leftOut(p.LeftOut)
}

func weighBalance(b *market.Balance) int {
	return int(unsafe.Sizeof(*b)) + decimals(b.PortfolioValue, b.CashBalance, b.PositionsValue, b.TotalValue)
}

func weighPositions(list *[]market.Position) int {
	bytes := int(unsafe.Sizeof(*list)) + rows(*list)
	for i := range *list {
		p := &(*list)[i]
		bytes += texts(p.MarketID, p.TokenID, p.Outcome) + decimals(p.AvgPrice, p.CurrentPrice, p.UnrealizedPnl)
	}
	return bytes
}

func weighOrders(list *[]market.Order) int {
	bytes := int(unsafe.Sizeof(*list)) + rows(*list)
	for i := range *list {
		o := &(*list)[i]
		bytes += texts(o.OrderID, o.MarketID, o.TokenID, o.SideRaw, o.Outcome, o.StatusRaw)
	}
	return bytes
}

func weighTrades(p *queries.TradePage) int {
	bytes := int(unsafe.Sizeof(*p)) + rows(p.Trades) + texts(p.Next) + leftOut(p.LeftOut)
	for i := range p.Trades {
		t := &p.Trades[i]
		bytes += texts(t.TradeID, t.MarketID, t.TokenID, t.Outcome, t.SideRaw, t.TransactionHash) + decimals(t.Fee)
	}
	return bytes
}

func weighUserHistory(p *queries.HistoryPage) int {
	bytes := int(unsafe.Sizeof(*p)) + rows(p.Records) + texts(p.Next) + leftOut(p.LeftOut)
	for i := range p.Records {
		r := &p.Records[i]
		bytes += texts(r.ID, r.KindRaw, r.MarketID, r.TokenID, r.Outcome, r.TransactionHash) + decimals(r.Amount, r.Price, r.Size)
	}
	return bytes
}

func leftOut(rows market.LeftOut) int { return leftOutRow * len(rows) }

// keyTexts returns the size of the strings of a key in bytes. It also counts strings that the key shares with the value.
func keyTexts(key any) int {
	switch k := key.(type) {
	case string:
		return texts(k)
	case queries.Book:
		return texts(k.TokenID)
	case queries.PriceHistory:
		return texts(k.TokenID)
	case market.MarketRef:
		return texts(k.Value)
	case market.EventRef:
		return texts(k.EventID, k.EventSlug)
	case queries.SearchKey:
		return texts(k.Text, k.Status, k.Category, k.Tag, k.EventID, k.EventSlug, k.Page)
	case queries.MarketTrades:
		return texts(k.MarketID, k.TokenID, k.Page)
	case userKey:
		return texts(string(k.address))
	case tradesKey:
		return texts(string(k.address), k.query.MarketID, k.query.Page)
	case historyKey:
		return texts(string(k.address), k.key.Kinds, k.key.Page.Page)
	}
	return 0
}
