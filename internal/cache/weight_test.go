package cache

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

// number returns a decimal that shares its memory with no other decimal.
func number() *market.Decimal {
	d := market.NewDecimal(12345, -3)
	return &d
}

// name returns a string of n bytes that shares its memory with no other string.
func name(n int) string { return strings.Repeat("t", n-6) + fmt.Sprintf("%06d", n) }

func sampleMarket() *market.Market {
	m := &market.Market{
		MarketID: name(66), Slug: name(40), Question: name(60), Description: name(900), Image: name(80), EventID: name(10), EventSlug: name(40), EventTitle: name(50),
		Volume: number(), Volume24h: number(), Liquidity: number(), TickSize: number(), MinOrderSize: number(), Tags: []string{name(10), name(10)},
	}
	for range 2 {
		m.Outcomes = append(m.Outcomes, market.Outcome{TokenID: name(78), Label: name(7), Price: number()})
	}
	return m
}

func sampleMarkets(n int) (list []*market.Market) {
	for range n {
		list = append(list, sampleMarket())
	}
	return list
}

func sampleBook(depth int) *market.Book {
	b := &market.Book{TokenID: name(78), Depth: depth, Spread: number(), Hash: name(40), Epoch: name(20), Rendered: new(market.Rendered)}
	b.Bids, b.Asks = market.NewSide(make([]market.Level, depth)), market.NewSide(make([]market.Level, depth))
	b.Rendered.Last.Store(make([]byte, market.RenderedBytes(depth)))
	return b
}

func samplePositions(n int) *[]market.Position {
	list := make([]market.Position, n)
	for i := range list {
		list[i] = market.Position{MarketID: name(66), TokenID: name(78), Outcome: name(8), AvgPrice: number(), CurrentPrice: number(), UnrealizedPnl: number()}
	}
	return &list
}

func sampleOrders(n int) *[]market.Order {
	list := make([]market.Order, n)
	for i := range list {
		list[i] = market.Order{OrderID: name(66), MarketID: name(66), TokenID: name(78), Outcome: name(8)}
	}
	return &list
}

func sampleTrades() *queries.TradePage {
	p := &queries.TradePage{Trades: make([]market.Trade, 100), Next: name(40)}
	for i := range p.Trades {
		p.Trades[i] = market.Trade{TradeID: name(40), MarketID: name(66), TokenID: name(78), Outcome: name(8), Fee: number(), TransactionHash: name(66)}
	}
	return p
}

func sampleRecords() *queries.HistoryPage {
	p := &queries.HistoryPage{Records: make([]market.HistoryRecord, 100), Next: name(40)}
	for i := range p.Records {
		p.Records[i] = market.HistoryRecord{ID: name(40), MarketID: name(66), TokenID: name(78), Amount: number(), Price: number(), Size: number(), TransactionHash: name(66)}
	}
	return p
}

func samplePoints() *market.PriceHistory {
	h := &market.PriceHistory{TokenID: name(78), Points: make([]market.PricePoint, 300)}
	for i := range h.Points {
		h.Points[i].Volume = number()
	}
	return h
}

func user(n int) userKey { return userKey{address: market.Address(fmt.Sprintf("0x%040d", n))} }

func account(n int) messages.Topic {
	return messages.Topic{Channel: messages.ChannelUser, ID: fmt.Sprintf("0x%040d", n), Scope: fmt.Sprintf("%064d", n)}
}

// TestWeights checks, for most kinds, that the counted bytes of the entries are close to the memory that the entries use.
func TestWeights(t *testing.T) {
	token := func(n int) string { return fmt.Sprintf("%078d", n) }
	cfg := DefaultConfig()
	cfg.Memory = 1 << 32
	c := New(&venue{}, cfg)
	defer c.Close()
	kinds := []struct {
		name  string
		n     int
		put   func(n int)
		stats func() Stats
	}{
		{"prices", 5000, func(n int) { c.prices.accept(token(n), &market.Price{TokenID: token(n)}, origin{}) }, c.prices.stats},
		{"spreads", 5000, func(n int) {
			c.spreads.accept(token(n), &market.Spread{TokenID: token(n), BestBid: number(), BestAsk: number(), Spread: number()}, origin{})
		}, c.spreads.stats},
		{"absent prices", 5000, func(n int) { c.prices.accept("none"+token(n), nil, origin{}) }, c.prices.stats},
		{"small books", 1000, func(n int) { c.books.accept(queries.Book{TokenID: token(n), Depth: 20}, sampleBook(20), origin{}) }, c.books.stats},
		{"deep books", 200, func(n int) {
			c.books.accept(queries.Book{TokenID: "deep" + token(n), Depth: 200}, sampleBook(200), origin{})
		}, c.books.stats},
		{"histories", 200, func(n int) { c.histories.accept(queries.PriceHistory{TokenID: token(n)}, samplePoints(), origin{}) }, c.histories.stats},
		{"markets", 2000, func(n int) {
			c.markets.accept(market.MarketRef{Value: token(n)}, sampleMarket(), origin{})
		}, c.markets.stats},
		{"searches", 50, func(n int) {
			c.searches.accept(queries.SearchKey{Text: token(n)}, &queries.SearchPage{Markets: sampleMarkets(100)}, origin{})
		}, c.searches.stats},
		{"events", 200, func(n int) {
			c.events.accept(market.EventRef{EventID: token(n)}, &market.Event{EventID: token(n), Markets: sampleMarkets(20)}, origin{})
		}, c.events.stats},
		{"balances", 5000, func(n int) {
			c.balances.accept(user(n), &market.Balance{PortfolioValue: number(), CashBalance: number(), PositionsValue: number(), TotalValue: number()}, origin{})
		}, c.balances.stats},
		{"positions", 20, func(n int) { c.positions.accept(user(n), samplePositions(2000), origin{}) }, c.positions.stats},
		{"orders", 100, func(n int) { c.orders.accept(user(n), sampleOrders(50), origin{}) }, c.orders.stats},
		{"trades", 100, func(n int) { c.trades.accept(tradesKey{userKey: user(n)}, sampleTrades(), origin{}) }, c.trades.stats},
		{"public trades", 100, func(n int) { c.marketTrades.accept(queries.MarketTrades{MarketID: token(n)}, sampleTrades(), origin{}) }, c.marketTrades.stats},
		{"records", 100, func(n int) { c.userHistories.accept(historyKey{userKey: user(n)}, sampleRecords(), origin{}) }, c.userHistories.stats},
	}
	for _, kind := range kinds {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC() // sync.Pool keeps unused values until the second collection
		runtime.ReadMemStats(&before)
		counted := -kind.stats().Bytes
		for n := range kind.n {
			kind.put(n)
		}
		counted += kind.stats().Bytes
		runtime.GC()
		runtime.ReadMemStats(&after)
		takes := float64(after.HeapAlloc) - float64(before.HeapAlloc)
		ratio := float64(counted) / takes
		t.Logf("%-14s an entry takes %8.0f bytes and counts as %8d bytes, ratio %.2f", kind.name, takes/float64(kind.n), counted/kind.n, ratio)
		if ratio < 0.6 || ratio > 1.4 {
			t.Errorf("%s: got %d counted bytes, want about %.0f", kind.name, counted, takes)
		}
	}
	runtime.KeepAlive(c)
}

// TestSumOfShares checks that the memory shares of all kinds add up to 64/64.
func TestSumOfShares(t *testing.T) {
	sum := 0
	for v, i := reflect.ValueOf(shares), 0; i < v.NumField(); i++ {
		sum += int(v.Field(i).Int())
	}
	if sum != 64 {
		t.Errorf("the shares add up to %d 64ths, want 64", sum)
	}
}

// TestMemoryIsBounded checks that the cache stays within Config.Memory when it gets much more data.
func TestMemoryIsBounded(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Clock = market.SystemClock{}
	c := New(&venue{}, cfg)
	defer c.Close()
	session := &market.Session{}
	positions, large := samplePositions(2000), strings.Repeat("d", 500_000)
	for n := range 5000 {
		c.StreamAccount(session, account(n), nil, *positions, nil, market.Meta{})
		c.StreamBook(session, &market.Book{TokenID: fmt.Sprintf("%078d", n), Bids: market.NewSide(make([]market.Level, 200)), Asks: market.NewSide(make([]market.Level, 200)), Rendered: new(market.Rendered)}, market.Meta{})
		m := &market.Market{MarketID: fmt.Sprint("m", n), Slug: fmt.Sprint(strings.Repeat("s", 2000), n), Description: large}
		c.markets.accept(market.MarketRef{Value: m.MarketID}, m, origin{})
		c.searches.accept(queries.SearchKey{Text: fmt.Sprint(n)}, &queries.SearchPage{Markets: []*market.Market{m}}, origin{})
		c.prices.accept(fmt.Sprint(strings.Repeat("x", 200), n), nil, origin{})
	}
	sum := c.refs.bytes
	for _, s := range c.Stats() {
		sum += s.Bytes
		part := reflect.ValueOf(shares).FieldByName(map[string]string{"user_history": "userHistory", "event_search": "eventSearch", "market_trades": "marketTrades"}[s.Kind])
		if !part.IsValid() {
			part = reflect.ValueOf(shares).FieldByName(s.Kind)
		}
		if s.Entries > 0 {
			t.Logf("%s: %d entries, %d bytes", s.Kind, s.Entries, s.Bytes)
		}
		if room := DefaultMemory / 64 * int(part.Int()); s.Bytes > room {
			t.Errorf("%s: got %d bytes, want at most %d", s.Kind, s.Bytes, room)
		}
		switch s.Kind {
		case "positions", "book", "market", "search":
			if s.Entries == 0 || s.Evictions+uint64(s.Entries) != 5000 {
				t.Errorf("%s: got %d entries and %d evictions, want 5000 together", s.Kind, s.Entries, s.Evictions)
			}
		}
	}
	if room := cfg.share(shares.names); c.refs.bytes > room || c.refs.bytes < room-5000 {
		t.Errorf("names: got %d bytes, want at most %d and at least 5000 less", c.refs.bytes, room)
	}
	if sum > DefaultMemory {
		t.Errorf("got %d bytes, want at most DefaultMemory", sum)
	}
	for c.refs.lru.Len() > 0 {
		c.refs.lru.RemoveOldest()
	}
	if c.Flush("positions", ""); c.positions.stats().Bytes != 0 || c.refs.bytes != 0 {
		t.Errorf("empty cache: got %d bytes, want 0", c.positions.stats().Bytes+c.refs.bytes)
	}
}

// TestClockLRUCountsBytes checks the counted bytes after entries grow, shrink, are removed, or are too large for the clockLRU.
func TestClockLRUCountsBytes(t *testing.T) {
	s := newClockLRU[string, string](100, 1000)
	put := func(key string, bytes, evicted, entries, sum int) *entry[string] {
		t.Helper()
		e := newEntry(key)
		e.bytes = bytes
		n := s.put(key, e)
		if got, bytes := s.stats(); n != evicted || got != entries || bytes != sum {
			t.Errorf("%s: got %d evicted, %d entries, %d bytes; want %d, %d and %d", key, n, got, bytes, evicted, entries, sum)
		}
		return e
	}
	a := put("a", 400, 0, 1, 400)
	put("b", 300, 0, 2, 700)
	a.markUsed()
	put("c", 300, 0, 3, 1000)
	put("d", 200, 1, 3, 900) // evicts b, because a is marked as used
	put("c", 350, 0, 3, 950) // replaces the old c
	put("c", 600, 1, 2, 800) // evicts a
	if s.get("a") != nil || s.get("d") == nil || s.get("c").bytes != 600 {
		t.Errorf("got keys %v, want d and a c of 600 bytes", s.keys())
	}
	if e := put("c", 1001, 1, 1, 200); s.get("c") != nil || e.read.Handle.Version() == 0 {
		t.Error("an entry that does not fit was cached, or its handle is unchanged")
	}
	put("e", 1000, 1, 1, 1000)
	if s.remove("e"); s.bytes != 0 {
		t.Errorf("empty: got %d bytes, want 0", s.bytes)
	}
	for i := range 100 {
		put(fmt.Sprint(i), 10, 0, i+1, 10*i+10)
		s.get(fmt.Sprint(i)).markUsed()
	}
	put("last", 990, 99, 2, 1000)
}

func TestHitsOfLargeValuesDoNotAllocate(t *testing.T) {
	c := New(&venue{}, DefaultConfig())
	defer c.Close()
	c.StreamBook(&market.Session{}, sampleBook(200), market.Meta{ReceivedAt: time.Now()})
	keys, out, missing := []queries.Book{{TokenID: name(78), Depth: 20}}, make([]market.Result[market.Read[*market.Book]], 1), make([]int, 0, 1)
	if n := testing.AllocsPerRun(100, func() { missing = c.Books().Lookup(t.Context(), keys, out, missing[:0]) }); n > 0 || len(missing) > 0 {
		t.Errorf("got %v allocations and %d missing, want 0 and 0", n, len(missing))
	}
}
