package cache

import (
	"net/url"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// env is what all stores of a Cache use.
type env struct {
	cfg              Config
	clock            market.Clock
	venue            venue.Reader
	values, absences *pool
	tasks            *tasks
	scope            scope
	// stores contains the stores of all kinds.
	stores [upstream.Kinds]anyStore
}

// anyStore is the part of store that does not depend on the types K and T.
type anyStore interface {
	stats() Stats
	keyed() bool
	flush(id string) int
}

// build builds the stores of all kinds.
func (c *Cache) build() {
	e := c.env
	c.names = &marketNames{list: newList[market.MarketRef, named](e.values, nil)}
	c.prices = newStore(e, priceKind{})
	c.spreads = newStore(e, spreadKind{})
	c.books = newStore(e, bookKind{})
	c.histories = newStore(e, historyKind{})
	c.markets = newStore(e, marketKind{names: c.names})
	c.names.unknown = c.markets.absent
	c.events = newStore(e, eventKind{names: c.names})
	c.searches = newStore(e, searchKind{names: c.names})
	c.eventSearches = newStore(e, eventSearchKind{names: c.names})
	c.categories = newStore(e, categoriesKind{})
	c.marketTrades = newStore(e, marketTradesKind{})
	c.balances = newStore(e, balanceKind{})
	c.positions = newStore(e, positionsKind{})
	c.orders = newStore(e, ordersKind{})
	c.trades = newStore(e, tradesKind{})
	c.userHistories = newStore(e, userHistoryKind{})
}

// newStore returns the store of a kind.
func newStore[K comparable, T any](e *env, k kind[K, T]) *store[K, T] {
	about := k.about(&e.cfg)
	s := &store[K, T]{
		env: e, kind: k, name: about.kind, ttl: about.ttl, unkeyed: about.unkeyed, notFound: e.cfg.NotFound, changed: newChanges[K](e.cfg.Changes),
	}
	s.aliased, _ = k.(aliased[K])
	s.nested, _ = k.(nested[K, T])
	s.watched, _ = k.(watched[K])
	if s.name.User() {
		s.notFound = min(s.notFound, s.ttl.Fresh)
	}
	if s.ttl.Stale > 0 {
		s.stretch = e.cfg.Stretch
	}
	s.entries, s.absent = newList[K](e.values, s.expired), newList[K](e.absences, s.expired)
	if e.cfg.Shared != nil && !s.name.User() {
		s.shared = &sharedCache[K, T]{Shared: e.cfg.Shared, store: s, kind: s.name.String()}
	}
	for _, r := range about.routes {
		keys, calls := e.bounds(r.endpoint)
		s.routes = append(s.routes, &coalescer[K, T]{
			store: s, route: r, unsupported: e.venue.Can(r.endpoint), private: r.endpoint.User() && !e.scope.public,
			maxKeys: keys, slots: make(chan struct{}, calls), flights: make(map[K]*flight[K, T]),
		})
	}
	e.stores[s.name] = s
	return s
}

// bounds returns the greatest number of keys in one call of an endpoint and the greatest number of concurrent calls; see
// Config.InFlight.
func (e *env) bounds(endpoint upstream.Endpoint) (keys, calls int) {
	keys = max(e.venue.MaxKeys(endpoint), 1)
	switch {
	case endpoint.User():
		return keys, 16 * e.cfg.InFlight
	case keys == 1:
		return keys, 4 * e.cfg.InFlight
	}
	return keys, e.cfg.InFlight
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
