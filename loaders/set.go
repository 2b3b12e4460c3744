package loaders

import (
	"context"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// Sources contains the sources of all kinds of data.
type Sources struct {
	// MaxCalls is the greatest number of upstream calls for one response. If MaxCalls is 0, there is no limit.
	MaxCalls int

	Prices        reads.Source[string, market.Price]
	Spreads       reads.Source[string, market.Spread]
	Books         reads.Source[queries.Book, market.Book]
	Histories     reads.Source[queries.PriceHistory, market.PriceHistory]
	Markets       reads.Source[market.MarketRef, market.Market]
	Events        reads.Source[market.EventRef, market.Event]
	Searches      reads.Source[queries.SearchKey, queries.SearchPage]
	EventSearches reads.Source[queries.SearchKey, queries.EventPage]
	// Categories has the names of the venues as keys. The name of the first venue is empty.
	Categories reads.Source[string, queries.Categories]
	// MarketTrades provides the public trades of markets.
	MarketTrades reads.Source[queries.MarketTrades, queries.TradePage]
	Balances     reads.Source[market.Address, market.Balance]
	Positions    reads.Source[market.Address, []market.Position]
	Orders       reads.Source[market.Address, []market.Order]
	Trades       reads.Source[queries.TradesKey, queries.TradePage]
	Records      reads.Source[queries.HistoryKey, queries.HistoryPage]
}

// Set contains the loaders of one response. It belongs to one goroutine.
type Set struct {
	Prices    Loader[string, market.Price]
	Spreads   Loader[string, market.Spread]
	Histories Loader[queries.PriceHistory, market.PriceHistory]
	Markets   Loader[market.MarketRef, market.Market]
	Events    Loader[market.EventRef, market.Event]
	Balances  Loader[market.Address, market.Balance]
	Positions Loader[market.Address, []market.Position]
	Orders    Loader[market.Address, []market.Order]

	books         Loader[queries.Book, market.Book]
	searches      Loader[queries.SearchKey, queries.SearchPage]
	eventSearches Loader[queries.SearchKey, queries.EventPage]
	categories    Loader[string, queries.Categories]
	marketTrades  Loader[queries.MarketTrades, queries.TradePage]
	trades        Loader[queries.TradesKey, queries.TradePage]
	userHistories Loader[queries.HistoryKey, queries.HistoryPage]
	response
	scope   *scope
	sources Sources
	// loaders contains all loaders.
	loaders [upstream.Kinds]loader
	// depths maps each token to the greatest requested depth of its book.
	depths map[string]int
}

// loader is the part of Loader that does not depend on the types K and T.
type loader interface {
	cost() (upstream.Kind, int)
	send()
	venues() (waits, partial uint32)
	fail(err error)
	refreshStale()
	reset()
}

// sets contains Sets for reuse, because their maps and slices are large.
var sets = sync.Pool{New: func() any {
	s := &Set{depths: make(map[string]int)}
	join(s, &s.Prices, upstream.KindPrice, &s.sources.Prices)
	join(s, &s.Spreads, upstream.KindSpread, &s.sources.Spreads)
	join(s, &s.books, upstream.KindBook, &s.sources.Books)
	join(s, &s.Histories, upstream.KindHistory, &s.sources.Histories)
	join(s, &s.Markets, upstream.KindMarket, &s.sources.Markets)
	join(s, &s.Events, upstream.KindEvent, &s.sources.Events)
	join(s, &s.searches, upstream.KindSearch, &s.sources.Searches)
	join(s, &s.eventSearches, upstream.KindEventSearch, &s.sources.EventSearches)
	join(s, &s.categories, upstream.KindCategories, &s.sources.Categories)
	join(s, &s.marketTrades, upstream.KindMarketTrades, &s.sources.MarketTrades)
	join(s, &s.Balances, upstream.KindBalance, &s.sources.Balances)
	join(s, &s.Positions, upstream.KindPositions, &s.sources.Positions)
	join(s, &s.Orders, upstream.KindOrders, &s.sources.Orders)
	join(s, &s.trades, upstream.KindTrades, &s.sources.Trades)
	join(s, &s.userHistories, upstream.KindUserHistory, &s.sources.Records)
	return s
}}

// join adds a loader to a Set.
func join[K comparable, T any](s *Set, l *Loader[K, T], kind upstream.Kind, source *reads.Source[K, T]) {
	l.response, l.kind, l.source, s.loaders[kind] = &s.response, kind, source, l
}

// scope is the context of a response, with its Set and its dependencies. It is Request.Loaders in this context.
type scope struct {
	request.Context
	dependencies request.Dependencies
	// set is nil after Set.Done, because the Set is then used for other responses.
	set *Set
}

// With returns a context for one response, and the new Set and dependencies that the context contains. Call Set.Done after the
// response.
func With(ctx context.Context, sources Sources) (context.Context, *Set, *request.Dependencies) {
	s := sets.Get().(*Set)
	c := &scope{set: s}
	c.Derive(ctx)
	c.Respond(&c.dependencies)
	c.Loaders = c
	s.scope = c
	s.ctx, s.dependencies, s.log, s.began, s.maxCalls = c, c.Dependencies, c.Log, time.Now(), sources.MaxCalls
	s.sources = sources
	return c, s, c.Dependencies
}

// From returns the Set of ctx. It panics if ctx is not derived from a context of With.
func From(ctx context.Context) *Set { return request.From(ctx).Loaders.(*scope).set }

// Done ends the response. It cancels the calls in flight and waits for them. It starts a refresh of the stale values in the
// background. Do not use the Set or its context afterwards.
func (s *Set) Done() {
	s.dependencies = nil // results that arrive now belong to no response
	if s.cancel != nil {
		s.cancel(nil)
	}
	s.awaitAll()
	for _, l := range s.loaders {
		l.refreshStale()
		l.reset()
	}
	s.scope.set = nil // the Set will be reused, so the old context must not return it
	s.scope = nil
	clear(s.depths)
	s.response, s.sources = response{}, Sources{}
	sets.Put(s)
}

// Book reads a token's book with at least depth levels on each side. If the venue has fewer levels, the book has all levels of the
// venue. All reads of a token in a response return the same book, which is as deep as the deepest read requires. If earlier reads
// got a book that is not deep enough, the read makes the pass pending.
func (s *Set) Book(tokenID string, depth int) (reads.Value[*market.Book], error) {
	depth = queries.BookDepthStep(depth)
	known := s.depths[tokenID]
	shallow, deep := queries.Book{TokenID: tokenID, Depth: known}, queries.Book{TokenID: tokenID, Depth: depth}
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

// Search reads one page of a search for markets at a venue. The name of the first venue is empty; see market.Names.
func (s *Set) Search(venue string, q queries.Search) (reads.Value[*queries.SearchPage], error) {
	key := q.Key()
	key.Venue = venue
	return s.searches.Get(key)
}

// SearchEvents is like Search, for events.
func (s *Set) SearchEvents(venue string, q queries.Search) (reads.Value[*queries.EventPage], error) {
	key := q.Key()
	key.Venue = venue
	return s.eventSearches.Get(key)
}

// Categories reads the categories of the open markets of a venue. The name of the first venue is empty.
func (s *Set) Categories(venue string) (reads.Value[*queries.Categories], error) {
	return s.categories.Get(venue)
}

// MarketTrades reads one page of the public trades of a market or a token.
func (s *Set) MarketTrades(q queries.MarketTrades) (reads.Value[*queries.TradePage], error) {
	return s.marketTrades.Get(q)
}

// Trades reads one page of an account's trades.
func (s *Set) Trades(a market.Address, q queries.Trades) (reads.Value[*queries.TradePage], error) {
	return s.trades.Get(q.Key(a))
}

// History reads one page of an account's history.
func (s *Set) History(a market.Address, q queries.History) (reads.Value[*queries.HistoryPage], error) {
	return s.userHistories.Get(q.Key(a))
}
