package cache

import (
	"fmt"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
)

// flusher removes entries of one kind of data. flush removes the entries of key, or all entries if key is empty. It returns the
// number of removed entries.
type flusher struct {
	kind string
	// keyed reports whether flush can remove the entries of one key.
	keyed bool
	flush func(key string) int
}

// Flush removes all entries of a kind, including absences, and returns the number of removed entries. kind is a value of
// Stats.Kind. If key is not empty, Flush removes only the entries of this key: a token id, the id or slug of a market or event, or
// an account address. Calls in flight still store their results. Flush fails if the kind is unknown. It also fails if key is not
// empty and the kind cannot be flushed by key.
func (c *Cache) Flush(kind, key string) (entries int, err error) {
	all := c.flushers()
	i := slices.IndexFunc(all, func(f flusher) bool { return f.kind == kind })
	switch {
	case i < 0:
		kinds := make([]string, len(all))
		for i, f := range all {
			kinds[i] = f.kind
		}
		return 0, fmt.Errorf("kind is one of %s", strings.Join(kinds, ", "))
	case key != "" && !all[i].keyed:
		return 0, fmt.Errorf("entries of kind %s cannot be flushed by key; flush all of them", kind)
	}
	if c.shared != nil && !reqctx.Kind(i).User() {
		c.shared.Flush(kind, key)
	}
	return all[i].flush(key), nil
}

// FlushLocal is like Flush, but does not flush the shared cache. It does nothing where Flush would fail.
func (c *Cache) FlushLocal(kind, key string) {
	for _, f := range c.flushers() {
		if f.kind == kind && (key == "" || f.keyed) {
			f.flush(key)
		}
	}
}

// flushers returns a flusher for each kind, in the order of reqctx.Kind.
func (c *Cache) flushers() []flusher {
	return []flusher{
		{"price", true, func(key string) int { return c.prices.flush(key, func(k string) bool { return k == key }) }},
		{"spread", true, func(key string) int { return c.spreads.flush(key, func(k string) bool { return k == key }) }},
		{"book", true, func(key string) int {
			return c.books.flush(key, func(k queries.Book) bool { return k.TokenID == key })
		}},
		{"history", true, func(key string) int {
			return c.histories.flush(key, func(k queries.PriceHistory) bool { return k.TokenID == key })
		}},
		{"market", true, c.flushMarkets},
		{"event", true, func(key string) int {
			return c.events.flush(key, func(k market.EventRef) bool { return k.EventID == key || k.EventSlug == key })
		}},
		{"search", false, func(string) int { return c.searches.flush("", nil) }},
		{"event_search", false, func(string) int { return c.eventSearches.flush("", nil) }},
		{"categories", false, func(string) int { return c.categories.flush("", nil) }},
		{"market_trades", true, func(key string) int {
			return c.marketTrades.flush(key, func(k queries.MarketTrades) bool { return k.MarketID == key || k.TokenID == key })
		}},
		{"balance", true, func(key string) int { return c.balances.flush(key, func(k userKey) bool { return k.ownedBy(key) }) }},
		{"positions", true, func(key string) int { return c.positions.flush(key, func(k userKey) bool { return k.ownedBy(key) }) }},
		{"orders", true, func(key string) int { return c.orders.flush(key, func(k userKey) bool { return k.ownedBy(key) }) }},
		{"trades", true, func(key string) int {
			return c.trades.flush(key, func(k tradesKey) bool { return k.ownedBy(key) })
		}},
		{"user_history", true, func(key string) int {
			return c.userHistories.flush(key, func(k historyKey) bool { return k.ownedBy(key) })
		}},
	}
}

// flushMarkets removes the market whose id, slug or token is key, and removes key from c.refs. If key is empty, flushMarkets
// removes all markets and all of c.refs.
func (c *Cache) flushMarkets(key string) int {
	if key == "" {
		n := c.markets.flush("", nil)
		c.refs.removeAll(func(market.MarketRef) bool { return true })
		return n
	}
	var meant []market.MarketRef
	for _, by := range []market.MarketRefKind{market.ByMarketID, market.BySlug, market.ByToken} {
		ref := market.MarketRef{By: by, Value: key}
		meant = append(meant, ref, c.markets.canonicalOf(ref))
		c.refs.remove(ref)
	}
	return c.markets.flush(key, func(k market.MarketRef) bool { return slices.Contains(meant, k) })
}

// ownedBy reports whether a key belongs to the account with the given address.
func (k userKey) ownedBy(address string) bool { return strings.EqualFold(string(k.address), address) }

// flush removes the entries of all keys for which fits returns true, or all entries if key is empty. It returns the number of
// removed entries.
func (s *store[K, T]) flush(key string, fits func(K) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" {
		fits = func(K) bool { return true }
	}
	return s.entries.removeAll(fits) + s.absent.removeAll(fits)
}
