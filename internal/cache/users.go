package cache

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// scope makes the part of a key that separates callers. The random key of the process keeps what an attacker could read
// in a dump of keys from being tested against guesses.
type scope struct {
	key [32]byte
	// shared is the key that names credentials to Admission.
	shared []byte
}

// userKey names user data as one caller sees it.
type userKey struct {
	address market.Address
	caller  [sha256.Size]byte
}

// of returns the key of an account as the caller of ctx sees it: an HMAC-SHA-256 of the address and the credentials.
func (s *scope) of(ctx context.Context, a market.Address) userKey {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write([]byte(a))
	if c := reqctx.CredentialsFrom(ctx); c != nil {
		mac.Write([]byte{0})
		mac.Write([]byte(c.Wire()))
	}
	key := userKey{address: a}
	mac.Sum(key.caller[:0])
	return key
}

// credentials names credentials for the venue's budget: an HMAC-SHA-256 of them alone, since the venue counts by key,
// whatever the address. It is empty where there are none.
func (s *scope) credentials(c *market.Credentials) string {
	if c == nil {
		return ""
	}
	mac := hmac.New(sha256.New, s.shared)
	mac.Write([]byte("budget\x00"))
	mac.Write([]byte(c.Wire()))
	return string(mac.Sum(nil))
}

// tradesKey names a page of trades as one caller sees it, historyKey one of an account's history.
type (
	tradesKey struct {
		userKey
		query market.TradeQuery
	}
	historyKey struct {
		userKey
		key market.HistoryKey
	}
)

// userSource is the source of one kind of user data, by keys P, as the caller of each context sees it.
type userSource[P, K comparable, T any] struct {
	store *store[K, T]
	key   func(ctx context.Context, key P) K
}

func (u userSource[P, K, T]) keys(ctx context.Context, public []P) []K {
	keys := make([]K, len(public))
	for i, key := range public {
		keys[i] = u.key(ctx, key)
	}
	return keys
}

// Lookup answers keys from memory.
func (u userSource[P, K, T]) Lookup(ctx context.Context, keys []P, out []market.Result[market.Read[*T]], missing []int) []int {
	return u.store.Lookup(ctx, u.keys(ctx, keys), out, missing)
}

// Fetch asks the venue for keys.
func (u userSource[P, K, T]) Fetch(ctx context.Context, keys []P) []market.Result[market.Read[*T]] {
	return u.store.Fetch(ctx, u.keys(ctx, keys))
}

// Refresh fetches the stale entries of keys in the background.
func (u userSource[P, K, T]) Refresh(ctx context.Context, keys []P) {
	u.store.Refresh(ctx, u.keys(ctx, keys))
}

// Calls returns the number of keys, since each is a call.
func (u userSource[P, K, T]) Calls(keys []P) int { return len(keys) }

// Balances returns the source of balances, as the caller of each context sees them.
func (c *Cache) Balances() Source[market.Address, market.Balance] {
	return userSource[market.Address, userKey, market.Balance]{c.balances, c.scope.of}
}

// Positions returns the source of all positions of an account, as the caller of each context sees them.
func (c *Cache) Positions() Source[market.Address, []market.Position] {
	return userSource[market.Address, userKey, []market.Position]{c.positions, c.scope.of}
}

// Orders returns the source of all active orders of an account, as the caller of each context sees them.
func (c *Cache) Orders() Source[market.Address, []market.Order] {
	return userSource[market.Address, userKey, []market.Order]{c.orders, c.scope.of}
}

// Trades returns the source of pages of an account's trades, as the caller of each context sees them.
func (c *Cache) Trades() Source[market.TradesKey, market.TradePage] {
	return freshSource[market.TradesKey, market.TradePage]{userSource[market.TradesKey, tradesKey, market.TradePage]{
		c.trades, func(ctx context.Context, key market.TradesKey) tradesKey {
			return tradesKey{c.scope.of(ctx, key.Address), key.Query}
		}}}
}

// Records returns the source of pages of an account's history, as the caller of each context sees them.
func (c *Cache) Records() Source[market.HistoryKey, market.HistoryPage] {
	return freshSource[market.HistoryKey, market.HistoryPage]{userSource[market.HistoryKey, historyKey, market.HistoryPage]{
		c.records, func(ctx context.Context, key market.HistoryKey) historyKey {
			return historyKey{c.scope.of(ctx, key.Address), key}
		}}}
}

// freshSource looks nothing up for callers that want what the venue says now.
type freshSource[K comparable, T any] struct{ Source[K, T] }

// Lookup answers keys from memory, or none.
func (f freshSource[K, T]) Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int {
	if !reqctx.WantsFresh(ctx) {
		return f.Source.Lookup(ctx, keys, out, missing)
	}
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}
