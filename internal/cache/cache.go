package cache

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// Config configures a Cache. If Changes, Memory or InFlight is 0 or negative, New uses the value of DefaultConfig instead. The times
// have no default. If both times of a TTL are 0, values of this kind from the venue's REST API are not cached.
// If NotFound is 0, absences are not cached. If Stretch is 0, the stale time is never extended.
type Config struct {
	// Venue is the name of the venue in descriptions of batches, in a process with several venues. Name is the name of a further venue
	// in ids; see market.Names.
	Venue, Name                                        string
	Price, Book, Spread, Market, Search, History, User TTL
	// NotFound is the time for which the cache remembers that the venue does not know a key.
	NotFound time.Duration
	// Changes bounds the number of markets whose last streamed changes the cache remembers. A response that is older than a remembered
	// change cannot undo the change. So Changes should be the number of markets that the stream can follow.
	Changes int
	// Memory bounds the size of all entries together, in bytes. Absences have an eighth of it, and values the rest; see pool.
	Memory int
	// InFlight bounds the concurrent calls to each endpoint that serves several keys in one call. For an endpoint with user data, the
	// bound is 16 times InFlight. For an endpoint with public data that serves one key in a call, the bound is 4 times InFlight.
	InFlight int
	// Stretch is the minimum stale time while calls fail or would have to wait for the rate limit. It does not apply to a kind whose stale time
	// is 0.
	Stretch time.Duration
	// Admission is the rate limit of calls. If it is nil, all calls are sent at once.
	Admission Admission
	// Observer is called for every batch of keys whose fetch made HTTP calls, even if the fetch failed. waited contains the logs of
	// the operations that waited for the batch. Observer may be nil.
	Observer func(b upstream.Batch, waited []*request.Log)
	// CredentialsKey is a secret that replicas share. Admission identifies the caller's credentials by a hash that is computed with
	// this key, so that all replicas compute the same hash. If CredentialsKey is empty, each process uses a random key. The keys of
	// entries never depend on CredentialsKey.
	CredentialsKey []byte
	// PublicAccounts reports that the venue needs no credentials for user data. If PublicAccounts is set, all callers share the
	// entries of user data, and the rate limit of public calls applies to user data.
	PublicAccounts bool
	// Shared is the cache of public data that several processes share. It may be nil.
	Shared Shared
	// Clock is the source of time. If it is nil, New uses the system clock.
	Clock market.Clock
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{
		Price:    TTL{time.Second, 30 * time.Second},
		Book:     TTL{500 * time.Millisecond, 10 * time.Second},
		Spread:   TTL{time.Second, 30 * time.Second},
		Market:   TTL{time.Minute, time.Hour},
		Search:   TTL{15 * time.Second, 5 * time.Minute},
		History:  TTL{time.Minute, time.Hour},
		User:     TTL{2 * time.Second, 0},
		NotFound: 5 * time.Second,
		Changes:  2000,
		Memory:   DefaultMemory,
		InFlight: 4,
		Stretch:  15 * time.Minute,
	}
}

// Cache caches reads from the venue. It is safe for concurrent use. Close ends the calls of the cache to the venue.
type Cache struct {
	*env
	prices        *store[string, market.Price]
	spreads       *store[string, market.Spread]
	books         *store[queries.Book, market.Book]
	histories     *store[queries.PriceHistory, market.PriceHistory]
	markets       *store[market.MarketRef, market.Market]
	events        *store[market.EventRef, market.Event]
	searches      *store[queries.SearchKey, queries.SearchPage]
	eventSearches *store[queries.SearchKey, queries.EventPage]
	categories    *store[string, queries.Categories]
	marketTrades  *store[queries.MarketTrades, queries.TradePage]
	balances      *store[userKey, market.Balance]
	positions     *store[userKey, []market.Position]
	orders        *store[userKey, []market.Order]
	trades        *store[tradesKey, queries.TradePage]
	userHistories *store[historyKey, queries.HistoryPage]
	names         *marketNames
}

// Absences get Config.Memory divided by absencesDivisor.
const absencesDivisor = 8

// New returns a cache in front of a venue.
func New(v venue.Reader, cfg Config) *Cache {
	defaults := DefaultConfig()
	cfg.InFlight = or(cfg.InFlight, defaults.InFlight)
	cfg.Changes = or(cfg.Changes, defaults.Changes)
	cfg.Memory = or(cfg.Memory, defaults.Memory)
	if cfg.Clock == nil {
		cfg.Clock = market.SystemClock{}
	}
	if cfg.Admission == nil {
		cfg.Admission = admitAll{}
	}
	absences := cfg.Memory / absencesDivisor
	c := &Cache{env: &env{
		cfg: cfg, clock: cfg.Clock, venue: v, tasks: newTasks(), scope: newScope(cfg.CredentialsKey, cfg.PublicAccounts),
		values: &pool{limit: cfg.Memory - absences, clock: cfg.Clock}, absences: &pool{limit: absences, clock: cfg.Clock},
	}}
	c.build()
	return c
}

func or(v, otherwise int) int {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Close cancels the cache's calls to the venue, and waits until they have ended. Reads that wait for the venue fail.
func (c *Cache) Close() { c.tasks.close() }

// Stats contains the counters of one kind of data since the start, and the present number and size of the kind's entries.
type Stats struct {
	Kind string
	// Hits, Stale, Misses and NotFound count keys by the result of the look-up. NotFound counts keys that the cache remembers as
	// unknown to the venue. Stale also counts the keys for which Fetch returned a cached value because the venue failed or the rate
	// limit refused the call.
	Hits, Stale, Misses, NotFound uint64
	// Coalesced counts keys that joined a queued or running call.
	Coalesced uint64
	// Shared contains the counters of the shared cache. It is nil if there is no shared cache, or if the shared cache does not
	// store this kind.
	Shared *SharedStats
	// Calls counts calls to the venue, and Keys counts the keys in these calls. Late counts responses that were older, or may have
	// been older, than a streamed value or change.
	Calls, Keys, Late uint64
	// Evictions counts entries that were removed to make room before they had expired, and entries that were too large for the cache.
	Evictions uint64
	// Entries includes the keys remembered as unknown. Bytes is the estimated size of all entries.
	Entries, Bytes int
}

// SharedStats counts keys of the shared cache.
type SharedStats struct {
	// Before Fetch queues a call, it looks up the keys of the call in the shared cache. Hits counts the keys that have a value there,
	// and Misses counts the other keys.
	Hits, Misses uint64
	// When the queued call may be sent, the cache looks up its keys a second time. Found counts the keys that have a value by then.
	// Only one process fetches each of the other keys. Ours counts the keys that this process must fetch, and Theirs counts the keys
	// that another process fetches.
	Found, Ours, Theirs uint64
	// Arrived and Overdue split the keys in Theirs. Arrived counts the keys whose values the other process stored in time. Overdue
	// counts the keys whose values did not arrive in time.
	Arrived, Overdue uint64
}

// counters are the counters of Stats.
type counters struct {
	hits, stale, misses, notFound, coalesced, calls, keys, late atomic.Uint64
	shared                                                      sharedCounters
}

// Stats returns the counters of every kind of data.
func (c *Cache) Stats() []Stats {
	all := make([]Stats, len(c.stores))
	for i, s := range c.stores {
		all[i] = s.stats()
	}
	return all
}

func (s *store[K, T]) stats() Stats {
	c := &s.counters
	entries, bytes, evictions := s.entries.stats()
	absent, absentBytes, absentEvictions := s.absent.stats()
	var shared *SharedStats
	if s.shared != nil {
		shared = c.shared.stats()
	}
	return Stats{
		Kind: s.name.String(), Hits: c.hits.Load(), Stale: c.stale.Load(), Misses: c.misses.Load(), NotFound: c.notFound.Load(),
		Coalesced: c.coalesced.Load(), Shared: shared, Calls: c.calls.Load(), Keys: c.keys.Load(), Late: c.late.Load(), Evictions: evictions + absentEvictions,
		Entries: entries + absent, Bytes: bytes + absentBytes,
	}
}

// admitAll is an Admission that admits every call at once. It also implements the Reservation of each call.
type admitAll struct{}

var decided = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (admitAll) Reserve(upstream.CallRequest) upstream.Reservation { return admitAll{} }
func (admitAll) Scarce(string, upstream.Endpoint) bool             { return false }
func (admitAll) Decided() <-chan struct{}                          { return decided }
func (admitAll) Err() error                                        { return nil }
func (admitAll) Late(time.Time) error                              { return nil }
func (admitAll) Join(upstream.CallRequest)                         {}
func (admitAll) Release(bool)                                      {}
func (admitAll) AdmitCall(context.Context) error                   { return nil }
func (admitAll) Answered(upstream.Answer)                          {}

// newScope returns a scope with a random key. shared is the HMAC key for scope.credentials. If shared is empty, scope.credentials
// uses the random key, too.
func newScope(shared []byte, public bool) (s scope) {
	s.public = public
	_, _ = rand.Read(s.key[:]) // never fails, see crypto/rand
	if s.shared = shared; len(shared) == 0 {
		s.shared = s.key[:]
	}
	return s
}
