package cache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
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
	b := &market.Book{TokenID: name(78), Depth: depth, Spread: number(), Hash: name(40), Epoch: name(20)}
	b.Bids, b.Asks = market.NewSide(make([]market.Level, depth)), market.NewSide(make([]market.Level, depth))
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

func user(n int) userKey { return userKey{Address: market.Address(fmt.Sprintf("0x%040d", n))} }

func account(n int) messages.Topic {
	return messages.Topic{Channel: messages.ChannelUser, ID: fmt.Sprintf("0x%040d", n), Scope: fmt.Sprintf("%064d", n)}
}

// TestWeights checks, for each kind, that the counted bytes of the entries are the memory that the entries use, or up to three fifths
// more.
func TestWeights(t *testing.T) {
	token := func(n int) string { return fmt.Sprintf("%078d", n) }
	cfg := DefaultConfig()
	cfg.Memory = 1 << 32
	c := New(&testVenue{}, cfg)
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
		{"names", 5000, func(n int) {
			c.names.learn(&market.Market{MarketID: "m" + token(n), Outcomes: []market.Outcome{{TokenID: token(n)}}})
		}, func() Stats { _, bytes, _ := c.names.stats(); return Stats{Bytes: bytes} }},
		{"searches", 50, func(n int) {
			c.searches.accept(queries.SearchKey{Text: token(n)}, &queries.SearchPage{Markets: sampleMarkets(100)}, origin{})
		}, c.searches.stats},
		{"empty searches", 2000, func(n int) {
			c.searches.accept(queries.SearchKey{Text: "none" + token(n)}, &queries.SearchPage{}, origin{})
		}, c.searches.stats},
		{"events", 200, func(n int) {
			c.events.accept(market.EventRef{EventID: token(n)}, &market.Event{EventID: token(n), Markets: sampleMarkets(20)}, origin{})
		}, c.events.stats},
		{"event searches", 100, func(n int) {
			whole := sampleMarkets(20)
			c.eventSearches.accept(queries.SearchKey{Text: token(n)}, &queries.EventPage{Events: []queries.FoundEvent{
				{Event: &market.Event{EventID: token(n), Markets: whole}, Whole: true, Matches: whole[5:]}, {Event: &market.Event{EventID: token(n)}, Matches: sampleMarkets(2)},
			}}, origin{})
		}, c.eventSearches.stats},
		{"categories", 1, func(n int) {
			list := make([]queries.Category, 100)
			for i := range list {
				list[i].Name = name(44)
			}
			c.categories.accept("", &queries.Categories{List: list}, origin{})
		}, c.categories.stats},
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
		if ratio < 1 || ratio > 1.6 {
			t.Errorf("%s: got %d counted bytes, want %.0f to three fifths more", kind.name, counted, takes)
		}
	}
	runtime.KeepAlive(c)
}

// TestMemoryIsBounded checks that the cache stays within Config.Memory when it gets much more data, and that absences get an eighth.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, session, positions := open(t, &testVenue{}), &reads.Session{}, samplePositions(2000)
		for n := range 500 {
			c.StreamAccount(session, account(n), nil, *positions, nil, reads.Meta{})
			c.markets.accept(byID(fmt.Sprint("m", n)), &market.Market{MarketID: fmt.Sprint("m", n), Description: strings.Repeat("d", 100_000)}, origin{})
			for i := range 30 {
				c.prices.accept(fmt.Sprint(strings.Repeat("x", 200), i, n), nil, origin{})
			}
		}
		for p, most := range map[*pool]int{c.prices.entries.pool: DefaultMemory / 8 * 7, c.prices.absent.pool: DefaultMemory / 8} {
			if p.bytes > most || p.bytes < most*9/10 {
				t.Errorf("got %d bytes, want about %d", p.bytes, most)
			}
		}
		for _, s := range c.Stats() {
			if n := map[string]int{"positions": 500, "market": 500, "price": 15_000}[s.Kind]; s.Entries+int(s.Evictions) != n || n > 0 && s.Bytes < DefaultMemory/10 {
				t.Errorf("%s: got %d entries of %d bytes and %d evictions, want %d together", s.Kind, s.Entries, s.Bytes, s.Evictions, n)
			}
			_, _ = c.Flush(s.Kind, "")
		}
		if values, absences := c.prices.entries.pool.bytes, c.prices.absent.pool.bytes; values != 0 || absences != 0 {
			t.Errorf("empty cache: got %d and %d bytes, want 0", values, absences)
		}
	})
}

// TestCrawler checks that a client that reads many pages of searches evicts no positions, prices or balances that others read.
func TestCrawler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &testVenue{})
		fill(c, 1000, 0, 0)
		for n := range 1000 {
			c.searches.accept(queries.SearchKey{Text: "all", Page: fmt.Sprint(n)}, &queries.SearchPage{Markets: sampleMarkets(100)}, origin{})
		}
		wantCached(t, c.positions, 1000, user)
		if s := statsOf(c, "search"); s.Evictions == 0 {
			t.Errorf("got %+v, want evictions", s)
		}
	})
}

// TestWorkingSet checks that the cache of a machine of 512 MiB has room for the values that its clients read again.
func TestWorkingSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, &testVenue{}, func(cfg *Config) { cfg.Memory = 85 << 20 })
		fill(c, 1000, 2000, 10_000)
		wantCached(t, c.positions, 1000, user)
		wantCached(t, c.books, 2000, func(n int) queries.Book { return queries.Book{TokenID: fmt.Sprintf("%078d", n), Depth: 20} })
		wantCached(t, c.markets, 10_000, func(n int) market.MarketRef { return byToken(fmt.Sprintf("%078d", n)) })
		t.Logf("%d bytes", c.prices.entries.pool.bytes)
	})
}

// fill stores accounts with 50 positions, books of 20 levels, and markets with two tokens, of which the first has a number as its id.
func fill(c *Cache, accounts, books, markets int) {
	for n := range accounts {
		c.positions.accept(user(n), samplePositions(50), origin{})
	}
	for n := range books {
		c.books.accept(queries.Book{TokenID: fmt.Sprintf("%078d", n), Depth: 20}, sampleBook(20), origin{})
	}
	for n := range markets {
		m := sampleMarket()
		m.MarketID, m.Slug, m.Outcomes[0].TokenID, m.Outcomes[1].TokenID = fmt.Sprintf("%066d", n), fmt.Sprintf("%040d", n), fmt.Sprintf("%078d", n), fmt.Sprintf("no%076d", n)
		c.markets.accept(byID(m.MarketID), m, origin{})
	}
}

// wantCached checks that look-ups of n keys find fresh values.
func wantCached[K comparable, T any](t *testing.T, s *store[K, T], n int, key func(n int) K) {
	t.Helper()
	keys := make([]K, n)
	for i := range keys {
		keys[i] = key(i)
	}
	before := s.stats().Hits
	missing := s.Lookup(t.Context(), keys, make([]reads.Result[*T], n), nil)
	if hits := s.stats().Hits - before; len(missing) > 0 || hits != uint64(n) {
		t.Errorf("%s: got %d hits and %d missing, want %d hits", s.name, hits, len(missing), n)
	}
}

// TestWeighingDoesNotAllocate also checks the look-up of a large value.
func TestWeighingDoesNotAllocate(t *testing.T) {
	c := New(&testVenue{}, DefaultConfig())
	defer c.Close()
	c.StreamBook(&reads.Session{}, sampleBook(200), reads.Meta{ReceivedAt: time.Now()})
	keys, out, missing := []queries.Book{{TokenID: name(78), Depth: 20}}, make([]reads.Result[*market.Book], 1), make([]int, 0, 1)
	if n := testing.AllocsPerRun(100, func() { missing = c.Books().Lookup(t.Context(), keys, out, missing[:0]) }); n > 0 || len(missing) > 0 {
		t.Errorf("look-up: got %v allocations and %d missing, want 0 and 0", n, len(missing))
	}
	p, m, list, b, key := &market.Price{TokenID: name(78)}, sampleMarket(), samplePositions(50), sampleBook(20), user(1)
	if n := testing.AllocsPerRun(100, func() { weigh(p); weigh(m); weigh(list); bookKind{}.weight(b); overhead(&key, 8) }); n > 0 {
		t.Errorf("weighing: got %v allocations, want 0", n)
	}
}
