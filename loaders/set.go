package loaders

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

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
	// Counted is told what was said of keys to a set that is FromMemory, once its response stands; nil where nobody counts.
	Counted func(k market.Kind, said market.Reads)
}

// Pages reads one page of a list that the venue pages. Under a context that has ended it answers from memory or fails at once.
type Pages interface {
	Search(ctx context.Context, q market.Search) (market.Read[*market.SearchPage], error)
	Trades(ctx context.Context, a market.Address, q market.TradeQuery) (market.Read[*market.TradePage], error)
	History(ctx context.Context, a market.Address, q market.HistoryQuery) (market.Read[*market.HistoryPage], error)
}

// Set is what one response reads with. It is safe for concurrent use, unless it is FromMemory.
type Set struct {
	Prices    Loader[string, market.Price]
	Spreads   Loader[string, market.Spread]
	Histories Loader[market.PriceHistoryQuery, market.PriceHistory]
	Markets   Loader[market.MarketRef, market.Market]
	Events    Loader[market.EventRef, market.Event]
	Balances  Loader[market.Address, market.Balance]
	Positions Loader[market.Address, []market.Position]
	Orders    Loader[market.Address, []market.Order]

	books Loader[market.BookQuery, market.Book]
	pages Pages
	response
	// found is what was found in memory; nil in a set that waits.
	found *found
	// counted is that of the sources.
	counted func(k market.Kind, said market.Reads)

	// mu protects all below.
	mu sync.Mutex
	// depths are the greatest depths asked for of each token's book.
	depths map[string]int
	// turned are the pages that were read, by query, each a *turned.
	turned map[string]any
	// followed are the events that something follows, which has been sent for when the channel is closed.
	followed map[market.EventRef]<-chan struct{}
	// failed are the panics of what followed.
	failed error
}

// New returns a set for reads outside of a response. They wait under ctx, are made with its credentials and recorded by its
// recorder. Stale values are refreshed as they are read.
func New(ctx context.Context, s Sources) *Set {
	set := &Set{}
	set.begin(ctx, s)
	set.refreshes = true
	return set
}

// Refresh starts the refresh of the stale values that the response was made from: all keys of a kind together. Call it once the
// response is made.
func (s *Set) Refresh() {
	s.Prices.refreshStale()
	s.Spreads.refreshStale()
	s.Histories.refreshStale()
	s.Markets.refreshStale()
	s.Events.refreshStale()
	s.Balances.refreshStale()
	s.Positions.refreshStale()
	s.Orders.refreshStale()
	s.books.refreshStale()
}

// begin makes the zero set that of a response.
func (s *Set) begin(ctx context.Context, of Sources) {
	s.response = response{ctx: ctx, recorder: market.RecorderFrom(ctx), journal: market.JournalFrom(ctx)}
	s.Prices.begin(&s.response, market.KindPrice, of.Prices, true)
	s.Spreads.begin(&s.response, market.KindSpread, of.Spreads, true)
	s.Histories.begin(&s.response, market.KindHistory, of.Histories, false)
	s.Markets.begin(&s.response, market.KindMarket, of.Markets, true)
	s.Events.begin(&s.response, market.KindEvent, of.Events, false)
	s.Balances.begin(&s.response, market.KindBalance, of.Balances, false)
	s.Positions.begin(&s.response, market.KindPositions, of.Positions, false)
	s.Orders.begin(&s.response, market.KindOrders, of.Orders, false)
	s.books.begin(&s.response, market.KindBook, of.Books, false)
	s.pages = of.Pages
}

// Failed tells of panics of what followed; they have cost the response nothing but time.
func (s *Set) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// FollowMarkets sends for markets and calls then with their results, aligned with the refs, when all of them are there: at
// once, or before anybody who waits for the last of them goes on. So what then sends for leaves in one batch, before others
// find out one by one that they need it. then must not wait.
// Where attempts are made the next one finds out what hangs on them.
func (s *Set) FollowMarkets(refs []market.MarketRef, then func([]market.Result[market.Read[*market.Market]])) {
	if s.Attempts() {
		s.Markets.Prefetch(refs)
		return
	}
	s.Markets.follow(refs, func(results []market.Result[market.Read[*market.Market]]) {
		defer s.catch()
		then(results)
	})
}

// FollowEvents is FollowMarkets for events, which arrive one by one: who shows one calls AwaitFollowed before it goes on.
func (s *Set) FollowEvents(refs []market.EventRef, then func([]market.Result[market.Read[*market.Event]])) {
	if s.InMemory() {
		return
	}
	done := make(chan struct{})
	s.mu.Lock()
	if s.followed == nil {
		s.followed = make(map[market.EventRef]<-chan struct{}, len(refs))
	}
	for _, ref := range refs {
		s.followed[ref] = done
	}
	s.mu.Unlock()
	for i := range refs {
		s.Events.Prefetch(refs[i : i+1]) // each is a call of its own, so none is to wait for another
	}
	s.Events.follow(refs, func(results []market.Result[market.Read[*market.Event]]) {
		defer close(done)
		defer s.catch()
		then(results)
	})
}

// AwaitFollowed waits until what follows an event was sent for. One event that does not come costs the others no more than
// half of the time that is left.
func (s *Set) AwaitFollowed(ref market.EventRef) {
	s.mu.Lock()
	done := s.followed[ref]
	s.mu.Unlock()
	if done == nil {
		return
	}
	ctx := s.ctx
	if deadline, ok := ctx.Deadline(); ok {
		half, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
		ctx = half
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// catch, deferred, keeps a panic of what follows from whoever has brought what it follows.
func (s *Set) catch() {
	if p := recover(); p != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = errors.Join(s.failed, fmt.Errorf("reading ahead: panic: %v\n%s", p, debug.Stack()))
	}
}

// Book reads a token's book, which has depth levels a side or more, where it holds so many.
func (s *Set) Book(tokenID string, depth int) (market.Read[*market.Book], error) {
	switch {
	case s.found != nil:
		return s.recallBook(market.BookQuery{TokenID: tokenID, Depth: market.BookDepthStep(depth)})
	case s.Attempts():
		return s.gleanBook(tokenID, depth)
	}
	return s.books.Get(s.deepest(tokenID, depth))
}

// PrefetchBooks sends for the books of tokens and does not wait.
func (s *Set) PrefetchBooks(tokenIDs []string, depth int) {
	if s.found != nil {
		return
	}
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
	return page(s, func() (market.Read[*market.SearchPage], error) { return s.pages.Search(s.pageContext(), q) }, q)
}

// Trades reads one page of an account's trades.
func (s *Set) Trades(a market.Address, q market.TradeQuery) (market.Read[*market.TradePage], error) {
	return page(s, func() (market.Read[*market.TradePage], error) { return s.pages.Trades(s.pageContext(), a, q) }, a, q)
}

// History reads one page of an account's history.
func (s *Set) History(a market.Address, q market.HistoryQuery) (market.Read[*market.HistoryPage], error) {
	return page(s, func() (market.Read[*market.HistoryPage], error) { return s.pages.History(s.pageContext(), a, q) }, a, q)
}

// pageContext is the context that pages are read under.
func (s *Set) pageContext() context.Context {
	if s.found != nil {
		return ended{s.ctx}
	}
	return s.ctx
}

// turned is a page that was asked for.
type turned[T any] struct {
	// read waits for it.
	read func() (market.Read[*T], error)
	// arrived tells that it does not wait any more.
	arrived atomic.Bool
}

// page reads a page once for the response, whoever asks for it and however often.
func page[T any](s *Set, read func() (market.Read[*T], error), query ...any) (r market.Read[*T], err error) {
	key := fmt.Sprintf("%+q", query)
	s.mu.Lock()
	if s.turned == nil {
		s.turned = make(map[string]any)
	}
	t, known := s.turned[key].(*turned[T])
	if !known {
		t = &turned[T]{read: sync.OnceValues(read)}
		s.turned[key] = t
	}
	s.mu.Unlock()
	if s.Attempts() && !t.arrived.Load() {
		if !known {
			s.gathering.fetch(func() { bring(t) })
		}
		return r, s.gathering.lack()
	}
	r, err = t.read()
	if err != nil && s.found != nil {
		s.found.missed = true
	}
	s.recorder.Record(r.Handle)
	return r, err
}

// bring reads a page for an attempt to come. What it panics with is for whoever reads the page.
func bring[T any](t *turned[T]) {
	defer t.arrived.Store(true)
	defer func() { _ = recover() }()
	_, _ = t.read()
}

type setKey struct{}

// reading is the context of a response that has a set and a recorder of its own.
type reading struct {
	market.Recording
	set *Set
}

// reads has a zero set read for a response with a context of its own.
func reads(ctx context.Context, set *Set, s Sources) *reading {
	r := &reading{Recording: market.Recording{Context: ctx}, set: set}
	set.begin(r, s)
	return r
}

// Value implements context.Context.
func (r *reading) Value(key any) any {
	if key == (setKey{}) {
		return r.set
	}
	return r.Recording.Value(key)
}

// With returns a context for one response, with a set and a recorder of its own.
func With(ctx context.Context, s Sources) (context.Context, *Set, *market.Recorder) {
	r := reads(ctx, &Set{}, s)
	return r, r.set, &r.Recorder
}

// From returns the set of a response. It panics where there is none: every response is given one by With.
func From(ctx context.Context) *Set { return ctx.Value(setKey{}).(*Set) }
