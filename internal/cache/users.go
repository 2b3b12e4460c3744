package cache

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// scope computes the part of a key that separates callers. With the random key of the process, nobody can test guesses of credentials
// against a dump of keys.
type scope struct {
	key [32]byte
	// shared is the HMAC key for the names of credentials in Admission.
	shared []byte
}

// userKey is the key of an account for one caller.
type userKey struct {
	address market.Address
	caller  [sha256.Size]byte
}

// of returns the key of an account for the caller in ctx, with the HMAC-SHA-256 of address and credentials.
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

// credentials returns the name of credentials for the rate limit: their HMAC-SHA-256 without the address, since the venue counts calls by
// credentials. It is empty without credentials.
func (s *scope) credentials(c *market.Credentials) string {
	if c == nil {
		return ""
	}
	mac := hmac.New(sha256.New, s.shared)
	mac.Write([]byte("budget\x00"))
	mac.Write([]byte(c.Wire()))
	return string(mac.Sum(nil))
}

// tradesKey is the key of a page of trades for one caller, historyKey that of a page of an account's history.
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

// userSource is the Source of one kind of user data, with keys P, for the caller in each context.
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

// Lookup implements Source.
func (u userSource[P, K, T]) Lookup(ctx context.Context, keys []P, out []market.Result[market.Read[*T]], missing []int) []int {
	return u.store.Lookup(ctx, u.keys(ctx, keys), out, missing)
}

// Fetch implements Source.
func (u userSource[P, K, T]) Fetch(ctx context.Context, keys []P) []market.Result[market.Read[*T]] {
	return u.store.Fetch(ctx, u.keys(ctx, keys))
}

// Refresh implements Source.
func (u userSource[P, K, T]) Refresh(ctx context.Context, keys []P) {
	u.store.Refresh(ctx, u.keys(ctx, keys))
}

// Calls returns the number of keys, since each is a call.
func (u userSource[P, K, T]) Calls(keys []P) int { return len(keys) }

// Balances returns the source of balances, for the caller in each context.
func (c *Cache) Balances() Source[market.Address, market.Balance] {
	return userSource[market.Address, userKey, market.Balance]{c.balances, c.scope.of}
}

// Positions returns the source of all positions of an account, for the caller in each context.
func (c *Cache) Positions() Source[market.Address, []market.Position] {
	return userSource[market.Address, userKey, []market.Position]{c.positions, c.scope.of}
}

// Orders returns the source of all active orders of an account, for the caller in each context.
func (c *Cache) Orders() Source[market.Address, []market.Order] {
	return userSource[market.Address, userKey, []market.Order]{c.orders, c.scope.of}
}

// Trades returns the source of pages of an account's trades, for the caller in each context.
func (c *Cache) Trades() Source[market.TradesKey, market.TradePage] {
	return freshSource[market.TradesKey, market.TradePage]{userSource[market.TradesKey, tradesKey, market.TradePage]{
		c.trades, func(ctx context.Context, key market.TradesKey) tradesKey {
			return tradesKey{c.scope.of(ctx, key.Address), key.Query}
		}}}
}

// Records returns the source of pages of an account's history, for the caller in each context.
func (c *Cache) Records() Source[market.HistoryKey, market.HistoryPage] {
	return freshSource[market.HistoryKey, market.HistoryPage]{userSource[market.HistoryKey, historyKey, market.HistoryPage]{
		c.records, func(ctx context.Context, key market.HistoryKey) historyKey {
			return historyKey{c.scope.of(ctx, key.Address), key}
		}}}
}

// freshSource answers nothing from memory for callers that need fresh data.
type freshSource[K comparable, T any] struct{ Source[K, T] }

// Lookup implements Source.
func (f freshSource[K, T]) Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int {
	if !reqctx.WantsFresh(ctx) {
		return f.Source.Lookup(ctx, keys, out, missing)
	}
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}
