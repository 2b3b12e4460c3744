package loaders

import (
	"context"
	"sync"

	"oddsgraph/internal/market"
)

// Sources is all that can be read.
type Sources struct {
	Prices    Source[string, market.Price]
	Spreads   Source[string, market.Spread]
	Books     Source[market.BookQuery, market.Book]
	Histories Source[market.PriceHistoryQuery, market.PriceHistory]
	Markets   Source[market.MarketRef, market.Market]
	Events    Source[market.EventRef, market.Event]
	Balances  Source[market.Address, market.Balance]
	Positions Source[market.Address, []market.Position]
	Orders    Source[market.Address, []market.Order]
	Pages     Pages
}

// Pages reads one page of a list that the venue pages.
type Pages interface {
	Search(ctx context.Context, q market.Search) (market.Read[*market.SearchPage], error)
	Trades(ctx context.Context, a market.Address, q market.TradeQuery) (market.Read[*market.TradePage], error)
	History(ctx context.Context, a market.Address, q market.HistoryQuery) (market.Read[*market.HistoryPage], error)
}

// Set is what one response reads with. It is safe for concurrent use; Close it when the response is complete.
type Set struct {
	Prices    *Loader[string, market.Price]
	Spreads   *Loader[string, market.Spread]
	Histories *Loader[market.PriceHistoryQuery, market.PriceHistory]
	Markets   *Loader[market.MarketRef, market.Market]
	Events    *Loader[market.EventRef, market.Event]
	Balances  *Loader[market.Address, market.Balance]
	Positions *Loader[market.Address, []market.Position]
	Orders    *Loader[market.Address, []market.Order]

	books *Loader[market.BookQuery, market.Book]
	pages Pages
	ctx   context.Context
	ahead sync.WaitGroup

	// mu protects depths, the greatest depth asked for of each token's book.
	mu     sync.Mutex
	depths map[string]int
}

// New returns the set of a response. Reads wait under ctx, are made with its credentials and recorded by its recorder.
func New(ctx context.Context, s Sources) *Set {
	return &Set{
		Prices:    newLoader(ctx, s.Prices, true),
		Spreads:   newLoader(ctx, s.Spreads, true),
		Histories: newLoader(ctx, s.Histories, false),
		Markets:   newLoader(ctx, s.Markets, true),
		Events:    newLoader(ctx, s.Events, false),
		Balances:  newLoader(ctx, s.Balances, false),
		Positions: newLoader(ctx, s.Positions, false),
		Orders:    newLoader(ctx, s.Orders, false),
		books:     newLoader(ctx, s.Books, false),
		pages:     s.Pages,
		ctx:       ctx,
	}
}

// Close waits for what Ahead started.
func (s *Set) Close() { s.ahead.Wait() }

// Ahead runs f beside the response, to send for what becomes known only when something else has arrived. It must be
// called before the response is complete.
func (s *Set) Ahead(f func()) { s.ahead.Go(f) }

// Book reads a token's book, which has depth levels a side or more, where it holds so many.
func (s *Set) Book(tokenID string, depth int) (market.Read[*market.Book], error) {
	return s.books.Get(s.deepest(tokenID, depth))
}

// PrefetchBooks sends for the books of tokens and does not wait.
func (s *Set) PrefetchBooks(tokenIDs []string, depth int) {
	keys := make([]market.BookQuery, len(tokenIDs))
	for i, id := range tokenIDs {
		keys[i] = s.deepest(id, depth)
	}
	s.books.Prefetch(keys)
}

// deepest returns the query that answers for all depths of a token's book asked for so far.
func (s *Set) deepest(tokenID string, depth int) market.BookQuery {
	depth = market.BookDepthStep(depth)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.depths == nil {
		s.depths = make(map[string]int)
	}
	depth = max(depth, s.depths[tokenID])
	s.depths[tokenID] = depth
	return market.BookQuery{TokenID: tokenID, Depth: depth}
}

// Search reads one page of a market search.
func (s *Set) Search(q market.Search) (market.Read[*market.SearchPage], error) {
	read, err := s.pages.Search(s.ctx, q)
	market.RecorderFrom(s.ctx).Record(read.Handle)
	return read, err
}

// Trades reads one page of an account's trades.
func (s *Set) Trades(a market.Address, q market.TradeQuery) (market.Read[*market.TradePage], error) {
	read, err := s.pages.Trades(s.ctx, a, q)
	market.RecorderFrom(s.ctx).Record(read.Handle)
	return read, err
}

// History reads one page of an account's history.
func (s *Set) History(a market.Address, q market.HistoryQuery) (market.Read[*market.HistoryPage], error) {
	read, err := s.pages.History(s.ctx, a, q)
	market.RecorderFrom(s.ctx).Record(read.Handle)
	return read, err
}

type setKey struct{}

// With returns a context for one response, with a set and a recorder of its own.
func With(ctx context.Context, s Sources) (context.Context, *Set, *market.Recorder) {
	ctx, recorder := market.WithRecorder(ctx)
	set := New(ctx, s)
	return context.WithValue(ctx, setKey{}, set), set, recorder
}

// From returns the set of a response. It panics where there is none: every response is given one by With.
func From(ctx context.Context) *Set { return ctx.Value(setKey{}).(*Set) }
