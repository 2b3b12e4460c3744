package cache

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"strings"

	"oddsgraph/internal/market"
)

// scope makes the part of a key that separates callers. The random key of the process keeps what an attacker could read
// in a dump of keys from being tested against guesses.
type scope struct {
	key [32]byte
	off bool // by Defences
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
	if c := market.CredentialsFrom(ctx); c != nil && !s.off {
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
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write([]byte("budget\x00"))
	mac.Write([]byte(c.Wire()))
	return string(mac.Sum(nil))
}

// tradesKey names a page of trades, historyKey one of an account's history.
type (
	tradesKey struct {
		userKey
		query market.TradeQuery
	}
	historyKey struct {
		userKey
		kinds string
		page  market.TradeQuery // of a history query: what it shares with one of trades
	}
)

// query returns the query that the key was made of.
func (k historyKey) query() market.HistoryQuery {
	return market.HistoryQuery{Kinds: split[market.HistoryKind](k.kinds), From: k.page.From, To: k.page.To, Limit: k.page.Limit, Page: k.page.Page}
}

// userSource is the source of one kind of user data, as the caller of each context sees it.
type userSource[T any] struct {
	store *store[userKey, T]
	scope *scope
}

func (u userSource[T]) keys(ctx context.Context, addresses []market.Address) []userKey {
	keys := make([]userKey, len(addresses))
	for i, a := range addresses {
		keys[i] = u.scope.of(ctx, a)
	}
	return keys
}

// Lookup answers addresses from memory.
func (u userSource[T]) Lookup(ctx context.Context, addresses []market.Address, out []market.Result[market.Read[*T]], missing []int) []int {
	return u.store.Lookup(ctx, u.keys(ctx, addresses), out, missing)
}

// Fetch asks the venue for addresses.
func (u userSource[T]) Fetch(ctx context.Context, addresses []market.Address) []market.Result[market.Read[*T]] {
	return u.store.Fetch(ctx, u.keys(ctx, addresses))
}

// Refresh fetches the stale entries of addresses in the background.
func (u userSource[T]) Refresh(ctx context.Context, addresses []market.Address) {
	u.store.Refresh(ctx, u.keys(ctx, addresses))
}

// Balances returns the source of balances, as the caller of each context sees them.
func (c *Cache) Balances() Source[market.Address, market.Balance] {
	return userSource[market.Balance]{c.balances, &c.scope}
}

// Positions returns the source of all positions of an account, as the caller of each context sees them.
func (c *Cache) Positions() Source[market.Address, []market.Position] {
	return userSource[[]market.Position]{c.positions, &c.scope}
}

// Orders returns the source of all active orders of an account, as the caller of each context sees them.
func (c *Cache) Orders() Source[market.Address, []market.Order] {
	return userSource[[]market.Order]{c.orders, &c.scope}
}

// Trades returns one page of an account's trades.
func (c *Cache) Trades(ctx context.Context, a market.Address, q market.TradeQuery) (market.Read[*market.TradePage], error) {
	q.From, q.To = q.From.UTC(), q.To.UTC() // times are part of a key, which compares locations too
	return read(ctx, c.trades, tradesKey{c.scope.of(ctx, a), q})
}

// History returns one page of an account's history.
func (c *Cache) History(ctx context.Context, a market.Address, q market.HistoryQuery) (market.Read[*market.HistoryPage], error) {
	page := market.TradeQuery{From: q.From.UTC(), To: q.To.UTC(), Limit: q.Limit, Page: q.Page}
	return read(ctx, c.records, historyKey{c.scope.of(ctx, a), join(q.Kinds), page})
}

// read looks a key up and fetches it when it is not cached.
func read[K comparable, T any](ctx context.Context, s *store[K, T], key K) (market.Read[*T], error) {
	keys, out := []K{key}, make([]market.Result[market.Read[*T]], 1)
	journal := market.JournalFrom(ctx)
	if market.WantsFresh(ctx) || len(s.Lookup(ctx, keys, out, nil)) > 0 {
		journal.Looked(s.kind, market.Reads{Misses: 1})
		if out = s.Fetch(ctx, keys); out[0].Err == nil && out[0].Value.Stale {
			journal.Looked(s.kind, market.Reads{Excused: 1})
		}
		return out[0].Value, out[0].Err
	}
	switch read := &out[0].Value; {
	case read.Stale:
		s.Refresh(ctx, keys)
		journal.Looked(s.kind, market.Reads{Stale: 1})
	case read.Value == nil:
		journal.Looked(s.kind, market.Reads{Absent: 1})
	default:
		journal.Looked(s.kind, market.Reads{Hits: 1})
	}
	return out[0].Value, out[0].Err
}

// join and split make a list of words part of a key and back.
func join[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ",")
}

func split[T ~string](list string) []T {
	if list == "" {
		return nil
	}
	words := strings.Split(list, ",")
	out := make([]T, len(words))
	for i, w := range words {
		out[i] = T(w)
	}
	return out
}
