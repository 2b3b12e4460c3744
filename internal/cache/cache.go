package cache

import (
	"context"
	"crypto/rand"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Venue is what the cache reads through. Answers for lists are aligned with the keys; a nil value means that the venue
// does not know the key.
type Venue interface {
	Prices(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Price], error)
	Spreads(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Spread], error)
	Book(ctx context.Context, tokenID string, depth int) (*market.Book, error)
	PriceHistory(ctx context.Context, tokenID string, from, to market.Date) (*market.PriceHistory, error)
	Search(ctx context.Context, q market.Search) (*market.SearchPage, error)
	MarketsByID(ctx context.Context, marketIDs []string) ([]market.Result[*market.Market], error)
	MarketsByToken(ctx context.Context, tokenIDs []string) ([]market.Result[*market.Market], error)
	MarketBySlug(ctx context.Context, slug string) (*market.Market, error)
	Balance(ctx context.Context, a market.Address) (*market.Balance, error)
	Positions(ctx context.Context, a market.Address) ([]market.Position, error)
	Orders(ctx context.Context, a market.Address) ([]market.Order, error)
	Trades(ctx context.Context, a market.Address, q market.TradeQuery) (*market.TradePage, error)
	History(ctx context.Context, a market.Address, q market.HistoryQuery) (*market.HistoryPage, error)
}

// Kind is how long one kind of data is kept, and how much of it.
type Kind struct {
	TTL
	// Size is the greatest number of entries.
	Size int
}

// Config is how the cache behaves. The zero value of a field takes the default of DefaultConfig, except in Kinds,
// NotFound and Stretch: a time of 0 means that nothing is believed.
type Config struct {
	Price, Book, Spread, Market, Search, History, User Kind
	// NotFound is how long an absence is believed.
	NotFound time.Duration
	// NotFoundSize is the greatest number of absences that are remembered for each kind of data.
	NotFoundSize int
	// Memory bounds the bytes of the entries of all kinds together. Each kind has a fixed share.
	Memory int
	// Batch is the greatest number of ids in one upstream call.
	Batch int
	// InFlight is the greatest number of calls for lists of ids in flight at once, for each kind of data. Calls that
	// carry one key cannot gather, so there may be 4 times as many of them, and 16 times as many for user data.
	InFlight int
	// Stretch is how long past its fresh time public data is served while the budget is short: while less than a quarter of
	// it is left, or the venue wants no calls. It never shortens the stale time of a kind, and one without any has none.
	Stretch time.Duration
	// Admission decides when upstream calls may leave; nil admits all of them at once.
	Admission Admission
	// Cost returns the number of HTTP requests that asking an endpoint for so many keys takes at present, whose ids have so many
	// bytes in a URL; nil means 1.
	Cost func(endpoint reqctx.Endpoint, keys, bytes int) int
	// Observer is told of every batch that has ended and of those who have waited for it; nil where nobody wants to know.
	Observer func(b reqctx.Batch, waited []*reqctx.Log)
	// CredentialsKey is a secret of all replicas, so that they name credentials to Admission in the same way. Without it each
	// process uses a random one. Keys of entries never depend on it.
	CredentialsKey []byte
	// Clock tells the time; nil means the wall clock.
	Clock market.Clock
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	kind := func(fresh, stale time.Duration, size int) Kind { return Kind{TTL{fresh, stale}, size} }
	return Config{
		Price:        kind(time.Second, 30*time.Second, 50_000),
		Book:         kind(500*time.Millisecond, 10*time.Second, 5_000),
		Spread:       kind(time.Second, 30*time.Second, 50_000),
		Market:       kind(time.Minute, time.Hour, 20_000),
		Search:       kind(15*time.Second, 5*time.Minute, 2_000),
		History:      kind(time.Minute, time.Hour, 2_000),
		User:         kind(2*time.Second, 0, 10_000),
		NotFound:     5 * time.Second,
		NotFoundSize: 10_000,
		Memory:       DefaultMemory,
		Batch:        40,
		InFlight:     4,
		Stretch:      5 * time.Minute,
	}
}

// Cache holds what the venue said. It is safe for concurrent use. Close it to stop its upstream calls.
type Cache struct {
	venue Venue
	tasks *tasks
	scope scope

	prices    *store[string, market.Price]
	spreads   *store[string, market.Spread]
	books     *store[market.BookQuery, market.Book]
	histories *store[market.PriceHistoryQuery, market.PriceHistory]
	markets   *store[market.MarketRef, market.Market]
	events    *store[market.EventRef, market.Event]
	searches  *store[market.SearchKey, market.SearchPage]
	balances  *store[userKey, market.Balance]
	positions *store[userKey, []market.Position]
	orders    *store[userKey, []market.Order]
	trades    *store[tradesKey, market.TradePage]
	records   *store[historyKey, market.HistoryPage]

	// refs maps slugs and tokens to the markets that they are known to belong to.
	refs *nameIndex
}

// New returns a cache in front of a venue.
func New(venue Venue, cfg Config) *Cache {
	defaults := DefaultConfig()
	cfg.Batch = or(cfg.Batch, defaults.Batch)
	cfg.InFlight = or(cfg.InFlight, defaults.InFlight)
	cfg.NotFoundSize = or(cfg.NotFoundSize, defaults.NotFoundSize)
	cfg.Memory = or(cfg.Memory, defaults.Memory)
	if cfg.Clock == nil {
		cfg.Clock = market.SystemClock{}
	}
	if cfg.Cost == nil {
		cfg.Cost = func(reqctx.Endpoint, int, int) int { return 1 }
	}
	if cfg.Admission == nil {
		cfg.Admission = admitAll{}
	}
	c := &Cache{venue: venue, tasks: newTasks(), scope: newScope(cfg.CredentialsKey)}
	c.refs = newNameIndex(4*cfg.Market.Size, cfg.share(shares.names))
	b := &builder{cfg: cfg, notFound: cfg.NotFound, tasks: c.tasks, scope: &c.scope}
	c.build(b)
	return c
}

func or(v, otherwise int) int {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Close ends the cache's upstream calls and refreshes, and waits for them. Reads that wait for the venue fail.
func (c *Cache) Close() { c.tasks.close() }

// Prices returns the source of token prices, by token.
func (c *Cache) Prices() Source[string, market.Price] { return c.prices }

// Spreads returns the source of spreads, by token.
func (c *Cache) Spreads() Source[string, market.Spread] { return c.spreads }

// Books returns the source of order books. A book may be deeper than it was asked for.
func (c *Cache) Books() Source[market.BookQuery, market.Book] { return c.books }

// Histories returns the source of price histories.
func (c *Cache) Histories() Source[market.PriceHistoryQuery, market.PriceHistory] { return c.histories }

// Markets returns the source of markets with all their details.
func (c *Cache) Markets() Source[market.MarketRef, market.Market] { return c.markets }

// Events returns the source of events with their markets.
func (c *Cache) Events() Source[market.EventRef, market.Event] { return c.events }

// Source is a keyed read.
type Source[K comparable, T any] interface {
	// Lookup answers keys from memory, into out, and returns the indexes of the others appended to missing. It never
	// asks the venue.
	Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int
	// Refresh fetches the stale entries of keys in the background.
	Refresh(ctx context.Context, keys []K)
	// Calls returns the number of upstream calls that fetching keys takes at present.
	Calls(keys []K) int
	// Fetch asks the venue for keys and waits under ctx. The results are aligned with the keys.
	Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]]
}

// Stats are the counters of one kind of data since the start, and the entries that are kept now.
type Stats struct {
	Kind string
	// Hits, Stale, Misses and NotFound count keys by what a look-up gave; NotFound are absences that were remembered.
	Hits, Stale, Misses, NotFound uint64
	// Coalesced counts keys that joined a call that was queued or in flight already.
	Coalesced uint64
	// Calls and Keys count upstream calls and the keys that they carried. Late counts answers that were behind the stream, or may
	// have been.
	Calls, Keys, Late uint64
	Evictions         uint64
	// Entries includes absences, Bytes is about what the entries take.
	Entries, Bytes int
}

// Stats returns the counters of every kind of data.
func (c *Cache) Stats() []Stats {
	return []Stats{
		c.prices.stats(), c.spreads.stats(), c.books.stats(), c.histories.stats(), c.markets.stats(), c.events.stats(),
		c.searches.stats(), c.balances.stats(), c.positions.stats(), c.orders.stats(), c.trades.stats(), c.records.stats(),
	}
}

func (s *store[K, T]) stats() Stats {
	c := &s.counters
	entries, bytes := s.entries.taken()
	absent, more := s.absent.taken()
	return Stats{
		Kind: s.kind.String(), Hits: c.hits.Load(), Stale: c.stale.Load(), Misses: c.misses.Load(), NotFound: c.notFound.Load(),
		Coalesced: c.coalesced.Load(), Calls: c.calls.Load(), Keys: c.keys.Load(), Late: c.late.Load(), Evictions: c.evictions.Load(),
		Entries: entries + absent, Bytes: bytes + more,
	}
}

// admitAll is the Admission without limits, and the ticket that it gives to everybody.
type admitAll struct{}

var decided = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (admitAll) Reserve(reqctx.CallRequest) reqctx.Reservation { return admitAll{} }
func (admitAll) Left() float64                                 { return 1 }
func (admitAll) Decided() <-chan struct{}                      { return decided }
func (admitAll) Err() error                                    { return nil }
func (admitAll) ReadyAt() time.Time                            { return time.Time{} }
func (admitAll) Join(reqctx.CallRequest)                       {}
func (admitAll) Release(bool)                                  {}
func (admitAll) AdmitCall(context.Context) error               { return nil }
func (admitAll) Observe(int, int, time.Time)                   {}
func (admitAll) Throttled(time.Time)                           {}

// newScope returns a scope under a random key of its own. It names credentials under a shared key, if there is one.
func newScope(shared []byte) (s scope) {
	_, _ = rand.Read(s.key[:]) // never fails, see crypto/rand
	if s.shared = shared; len(shared) == 0 {
		s.shared = s.key[:]
	}
	return s
}
