package cache

import (
	"context"
	"net/url"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// builder builds stores with a common configuration.
type builder struct {
	cfg      Config
	venue    Venue
	values   *pool
	absences *pool
	tasks    *tasks
	scope    *scope
	// stores contains the stores that newStore has built.
	stores [reqctx.Kinds]anyStore
}

// anyStore is the part of store that does not depend on the types K and T.
type anyStore interface {
	stats() Stats
	keyed() bool
	flush(id string) int
}

// build builds the stores of all kinds.
func (c *Cache) build(b *builder) {
	c.names = &marketNames{list: newList[market.MarketRef, named](b.values, nil)}
	c.prices = newStore(b, priceKind{})
	c.spreads = newStore(b, spreadKind{})
	c.books = newStore(b, bookKind{})
	c.histories = newStore(b, historyKind{})
	c.markets = newStore(b, marketKind{names: c.names})
	c.names.unknown = c.markets.absent
	c.events = newStore(b, eventKind{names: c.names})
	c.searches = newStore(b, searchKind{names: c.names})
	c.eventSearches = newStore(b, eventSearchKind{names: c.names})
	c.categories = newStore(b, categoriesKind{})
	c.marketTrades = newStore(b, marketTradesKind{})
	c.balances = newStore(b, balanceKind{})
	c.positions = newStore(b, positionsKind{})
	c.orders = newStore(b, ordersKind{})
	c.trades = newStore(b, tradesKind{})
	c.userHistories = newStore(b, userHistoryKind{})
	c.stores = b.stores
}

// newStore returns the store of a kind.
func newStore[K comparable, T any](b *builder, k kind[K, T]) *store[K, T] {
	about := k.about(&b.cfg)
	s := &store[K, T]{
		kind: k, name: about.kind, ttl: about.ttl, unkeyed: about.unkeyed, notFound: b.cfg.NotFound, clock: b.cfg.Clock, tasks: b.tasks,
		changed: newChanges[K](b.cfg.Changes),
	}
	s.aliased, _ = k.(aliased[K])
	s.nested, _ = k.(nested[K, T])
	s.watched, _ = k.(watched[K])
	if s.name.User() {
		s.notFound = min(s.notFound, s.ttl.Fresh)
	}
	if s.ttl.Stale > 0 {
		s.stretch = b.cfg.Stretch
	}
	s.entries, s.absent = newList[K](b.values, s.expired), newList[K](b.absences, s.expired)
	if b.cfg.Shared != nil && !s.name.User() {
		s.shared = &sharedCache[K, T]{Shared: b.cfg.Shared, store: s, kind: s.name.String()}
	}
	for _, r := range about.routes {
		s.routes = append(s.routes, newCoalescer(b, s, r))
	}
	b.stores[s.name] = s
	return s
}

// newCoalescer returns the coalescer of one route of a store.
func newCoalescer[K comparable, T any](b *builder, s *store[K, T], r route) *coalescer[K, T] {
	keys, calls := b.bounds(r.endpoint)
	c := &coalescer[K, T]{
		kind: s.name, observer: b.cfg.Observer, accept: s.accept, cached: s.fresh, admission: b.cfg.Admission, clock: b.cfg.Clock, maxKeys: keys, unsupported: b.venue.Can(r.endpoint),
		priority: r.priority, endpoint: r.endpoint, counters: &s.counters, tasks: b.tasks, shared: s.shared, slots: make(chan struct{}, calls),
		changes: &s.changes, flights: make(map[K]*flight[K, T]), cost: func(keys, bytes int) int { return b.venue.Cost(r.endpoint, keys, bytes) },
	}
	c.fetch = func(ctx context.Context, keys []K) ([]market.Result[*T], error) {
		return s.kind.fetch(ctx, b.venue, r.endpoint, keys)
	}
	if r.endpoint.User() && !b.scope.public {
		c.scope = b.scope.credentials
	}
	return c
}

// bounds returns the greatest number of keys in one call of an endpoint and the greatest number of concurrent calls; see
// Config.InFlight.
func (b *builder) bounds(e reqctx.Endpoint) (keys, calls int) {
	keys = max(b.venue.MaxKeys(e), 1)
	switch {
	case e.User():
		return keys, 16 * b.cfg.InFlight
	case keys == 1:
		return keys, 4 * b.cfg.InFlight
	}
	return keys, b.cfg.InFlight
}

// bytesOf returns the length of a key's id in a URL. It returns 0 if no URL contains several keys of this type.
func bytesOf(key any) int {
	switch k := key.(type) {
	case string:
		return len(url.QueryEscape(k))
	case market.MarketRef:
		return len(url.QueryEscape(k.Value))
	}
	return 0
}

// bytesOfAll returns the sum of bytesOf.
func bytesOfAll[K any](keys []K) (sum int) {
	for _, key := range keys {
		sum += bytesOf(key)
	}
	return sum
}
