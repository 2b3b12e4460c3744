package loaders

import (
	"context"
	"sync"
	"time"

	"oddsgraph/internal/market"
)

// Sources is all that can be read.
type Sources struct {
	// MaxCalls bounds the upstream calls of one response; 0 means no bound.
	MaxCalls int

	Prices    Source[string, market.Price]
	Spreads   Source[string, market.Spread]
	Books     Source[market.BookQuery, market.Book]
	Histories Source[market.PriceHistoryQuery, market.PriceHistory]
	Markets   Source[market.MarketRef, market.Market]
	Events    Source[market.EventRef, market.Event]
	Searches  Source[market.SearchKey, market.SearchPage]
	Balances  Source[market.Address, market.Balance]
	Positions Source[market.Address, []market.Position]
	Orders    Source[market.Address, []market.Order]
	Trades    Source[market.TradesKey, market.TradePage]
	Records   Source[market.HistoryKey, market.HistoryPage]
}

// Set is what one response reads with. It belongs to one goroutine.
type Set struct {
	Prices    Loader[string, market.Price]
	Spreads   Loader[string, market.Spread]
	Histories Loader[market.PriceHistoryQuery, market.PriceHistory]
	Markets   Loader[market.MarketRef, market.Market]
	Events    Loader[market.EventRef, market.Event]
	Balances  Loader[market.Address, market.Balance]
	Positions Loader[market.Address, []market.Position]
	Orders    Loader[market.Address, []market.Order]

	books    Loader[market.BookQuery, market.Book]
	searches Loader[market.SearchKey, market.SearchPage]
	trades   Loader[market.TradesKey, market.TradePage]
	records  Loader[market.HistoryKey, market.HistoryPage]
	response
	// reading is the context that the set belongs to.
	reading *reading
	// depths are the greatest depths asked for of each token's book.
	depths map[string]int
}

// loader is what a Set does with all its loaders.
type loader interface {
	cost() (market.Kind, int)
	send()
	split() bool
	fail(err error)
	done()
	empty()
}

// loaders returns the loaders of all kinds.
func (s *Set) loaders() [market.Kinds]loader {
	return [...]loader{
		&s.Prices, &s.Spreads, &s.books, &s.Histories, &s.Markets, &s.Events, &s.searches, &s.Balances, &s.Positions, &s.Orders, &s.trades, &s.records,
	}
}

// sets are used again, since their tables are large.
var sets = sync.Pool{New: func() any {
	s := &Set{depths: make(map[string]int)}
	r := &s.response
	s.Prices = Loader[string, market.Price]{response: r, kind: market.KindPrice, gathers: true}
	s.Spreads = Loader[string, market.Spread]{response: r, kind: market.KindSpread, gathers: true}
	s.books = Loader[market.BookQuery, market.Book]{response: r, kind: market.KindBook}
	s.Histories = Loader[market.PriceHistoryQuery, market.PriceHistory]{response: r, kind: market.KindHistory}
	s.Markets = Loader[market.MarketRef, market.Market]{response: r, kind: market.KindMarket, gathers: true}
	s.Events = Loader[market.EventRef, market.Event]{response: r, kind: market.KindEvent}
	s.searches = Loader[market.SearchKey, market.SearchPage]{response: r, kind: market.KindSearch}
	s.Balances = Loader[market.Address, market.Balance]{response: r, kind: market.KindBalance}
	s.Positions = Loader[market.Address, []market.Position]{response: r, kind: market.KindPositions}
	s.Orders = Loader[market.Address, []market.Order]{response: r, kind: market.KindOrders}
	s.trades = Loader[market.TradesKey, market.TradePage]{response: r, kind: market.KindTrades}
	s.records = Loader[market.HistoryKey, market.HistoryPage]{response: r, kind: market.KindUserHistory}
	return s
}}

type setKey struct{}

// reading is the context of a response that has a set and a recorder of its own.
type reading struct {
	market.Recording
	set *Set
}

// Value implements context.Context.
func (r *reading) Value(key any) any {
	if key == (setKey{}) {
		return r.set
	}
	return r.Recording.Value(key)
}

// With returns a context for one response, with a set and a recorder of its own. Call Done when the response is made.
func With(ctx context.Context, of Sources) (context.Context, *Set, *market.Recorder) {
	s := sets.Get().(*Set)
	r := &reading{set: s}
	r.Begin(ctx)
	s.reading = r
	s.ctx, s.recorder, s.journal, s.began, s.maxCalls = r, &r.Recorder, market.JournalFrom(ctx), time.Now(), of.MaxCalls
	s.Prices.begin(of.Prices)
	s.Spreads.begin(of.Spreads)
	s.books.begin(of.Books)
	s.Histories.begin(of.Histories)
	s.Markets.begin(of.Markets)
	s.Events.begin(of.Events)
	s.searches.begin(of.Searches)
	s.Balances.begin(of.Balances)
	s.Positions.begin(of.Positions)
	s.Orders.begin(of.Orders)
	s.trades.begin(of.Trades)
	s.records.begin(of.Records)
	return r, s, &r.Recorder
}

// From returns the set of a response. It panics where there is none: every response is given one by With.
func From(ctx context.Context) *Set { return ctx.Value(setKey{}).(*Set) }

// Done ends the response: it starts the refresh of the stale values that were read, all of a kind together, cancels the calls
// that are under way and waits for them. The context has no set then.
func (s *Set) Done() {
	s.recorder = nil // what arrives from now on is in no response
	if s.cancel != nil {
		s.cancel()
	}
	s.land()
	for _, l := range s.loaders() {
		l.done()
		l.empty()
	}
	s.reading.set = nil // a holder of the context must not reach another response
	s.reading = nil
	clear(s.depths)
	s.response = response{}
	sets.Put(s)
}

// Book reads a token's book, which has depth levels a side or more, where it holds so many. All depths of a token that a
// response reads are answered by one book: when a deeper one is read than before, the pass is void and the next one reads it for
// all.
func (s *Set) Book(tokenID string, depth int) (market.Read[*market.Book], error) {
	depth = market.BookDepthStep(depth)
	known := s.depths[tokenID]
	shallow, deep := market.BookQuery{TokenID: tokenID, Depth: known}, market.BookQuery{TokenID: tokenID, Depth: depth}
	switch {
	case depth <= known:
		return s.books.Get(shallow)
	case known == 0:
		s.depths[tokenID] = depth
		return s.books.Get(deep)
	}
	if read, ok := s.books.Peek(shallow); ok && (read.Value == nil || read.Value.Covers(depth)) {
		return read, nil
	}
	if s.failed == nil {
		s.books.forget(shallow)
		s.depths[tokenID], s.pending = depth, true
	}
	return s.books.Get(deep)
}

// Search reads one page of a market search.
func (s *Set) Search(q market.Search) (market.Read[*market.SearchPage], error) {
	return s.searches.Get(q.Key())
}

// Trades reads one page of an account's trades.
func (s *Set) Trades(a market.Address, q market.TradeQuery) (market.Read[*market.TradePage], error) {
	return s.trades.Get(q.Key(a))
}

// History reads one page of an account's history.
func (s *Set) History(a market.Address, q market.HistoryQuery) (market.Read[*market.HistoryPage], error) {
	return s.records.Get(q.Key(a))
}
