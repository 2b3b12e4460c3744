package cache

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// scope computes the part of a cache key that separates callers. It uses a random HMAC key. So a person who sees the cache keys
// cannot test guesses of credentials.
type scope struct {
	key [32]byte
	// shared is the HMAC key for the names of credentials in Admission; see Config.CredentialsKey.
	shared []byte
	// public reports that user data does not depend on the caller.
	public bool
}

// userKey is the key of an account for one caller.
type userKey struct {
	Address market.Address `id:"yes"`
	caller  [sha256.Size]byte
}

// keyFor returns the key of an account for the caller in ctx. The key contains the HMAC-SHA-256 of the address and the caller's
// credentials. If s.public is true or the caller has no credentials, the key contains the HMAC-SHA-256 of the address alone.
func (s *scope) keyFor(ctx context.Context, a market.Address) userKey {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write([]byte(a))
	if s.public {
		ctx = context.Background()
	}
	if c := request.CredentialsFrom(ctx); c != nil {
		mac.Write([]byte{0})
		mac.Write([]byte(c.Wire()))
	}
	key := userKey{Address: a}
	mac.Sum(key.caller[:0])
	return key
}

// credentials returns the name by which the rate limit identifies c: an HMAC-SHA-256 of c. The address of the account is not part
// of the name, because the venue counts calls by credentials. If c is nil, the name is empty.
func (s *scope) credentials(c *market.Credentials) string {
	if c == nil {
		return ""
	}
	mac := hmac.New(sha256.New, s.shared)
	mac.Write([]byte("budget\x00"))
	mac.Write([]byte(c.Wire()))
	return string(mac.Sum(nil))
}

func (k userKey) own() userKey {
	k.Address = market.Address(strings.Clone(string(k.Address)))
	return k
}

// ownedBy reports whether a key belongs to the account with the given address.
func (k userKey) ownedBy(address string) bool { return strings.EqualFold(string(k.Address), address) }

// shift returns a part of the key's HMAC, because an HMAC has evenly distributed bytes.
func (k userKey) shift() uint64 { return binary.BigEndian.Uint64(k.caller[:]) }

// ofUser answers for the kinds of user data. If Config.PublicAccounts is set, all callers share the entries. Otherwise callers with
// different credentials never share an entry, because the keys contain an HMAC of the caller's credentials.
type ofUser[K accountKey[K], T any] struct{ plain[K, T] }

// accountKey is a userKey, or a key that embeds it.
type accountKey[K any] interface {
	comparable
	own() K
	ownedBy(address string) bool
	shift() uint64
}

func (ofUser[K, T]) own(key K, _ *T) K  { return key.own() }
func (ofUser[K, T]) shift(key K) uint64 { return key.shift() }

func (ofUser[K, T]) forget(id string) func(K) bool {
	return func(key K) bool { return key.ownedBy(id) }
}

// userSource is a Source of one kind of user data. userSource.key turns a key of the Source into the store's key for the caller in
// ctx.
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
func (u userSource[P, K, T]) Lookup(ctx context.Context, keys []P, out []reads.Result[*T], missing []int) []int {
	return u.store.Lookup(ctx, u.keys(ctx, keys), out, missing)
}

// Fetch implements Source.
func (u userSource[P, K, T]) Fetch(ctx context.Context, keys []P) []reads.Result[*T] {
	return u.store.Fetch(ctx, u.keys(ctx, keys))
}

// Refresh implements Source.
func (u userSource[P, K, T]) Refresh(ctx context.Context, keys []P) {
	u.store.Refresh(ctx, u.keys(ctx, keys))
}

// Calls implements Source. It counts no ids in URLs, because each call is for one account.
func (u userSource[P, K, T]) Calls(keys []P) int { return u.store.routes[0].calls(len(keys), 0) }

// Batches implements reads.Source.
func (u userSource[P, K, T]) Batches(keys []P) [][]P {
	return slices.Collect(batchesOf(keys, u.store.routes[0].maxKeys))
}

// freshSource is a Source whose Lookup finds nothing for a request that needs fresh data.
type freshSource[K comparable, T any] struct{ reads.Source[K, T] }

// Lookup implements Source.
func (f freshSource[K, T]) Lookup(ctx context.Context, keys []K, out []reads.Result[*T], missing []int) []int {
	if !request.From(ctx).Fresh {
		return f.Source.Lookup(ctx, keys, out, missing)
	}
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}
