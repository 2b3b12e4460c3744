package cache

import (
	"context"
	"strings"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// kind is a kind of data. It answers what a store asks about the keys and values of the kind. Most kinds embed plain for the answers
// that most kinds give. A kind may also be aliased, nested or watched.
type kind[K comparable, T any] interface {
	about(cfg *Config) about
	// fetch reads keys from one endpoint of the venue.
	fetch(ctx context.Context, call upstream.Call, v venue.Reader, e upstream.Endpoint, keys []K) ([]upstream.Result[*T], error)
	// route returns the index of a key's route in about.routes.
	route(key K) int

	// own returns a copy of a key that does not keep the request in memory, because the ids in a client's request are parts of one
	// large string. The copy may share strings with value, which may be nil.
	own(key K, value *T) K
	// alias reports whether a canonical key may be a second name of a value, such as a slug.
	alias(key K) bool
	// forget returns a function that reports whether a key belongs to an id that Flush removes. If the kind remembers anything about
	// the id itself, it forgets that. An empty id stands for all keys.
	forget(id string) (belongs func(K) bool)
	// shift returns a number that differs from user to user, or 0 for public data; see store.freshFor.
	shift(key K) uint64

	// asOf returns the venue's timestamp of a value.
	asOf(value *T) time.Time
	// older reports whether a is older than b. It is false for values without an order.
	older(a, b *T) bool
	// weight estimates the size of a value in bytes; see weigh.
	weight(value *T) int
	// sound reports whether a value is complete, and one that a driver can return for a key. The shared cache stores and returns only
	// such values, because other programs may write to it.
	sound(key K, value *T) bool
	// learn is called with every fetched value before the value is stored.
	learn(value *T)
	// amend applies streamed changes to a value; see announced.apply.
	amend(value *T, by *announced) (amended *T, contradicts bool)
}

// about says what does not depend on a key or a value.
type about struct {
	kind   upstream.Kind
	ttl    TTL
	routes []route
	// unkeyed reports that Flush cannot remove the entries of one id.
	unkeyed bool
}

// route is one way to fetch keys of a store: an endpoint with its priority.
type route struct {
	endpoint upstream.Endpoint
	priority upstream.Priority
}

// aliased is a kind in which several keys can mean one value.
type aliased[K comparable] interface {
	// canonical returns the canonical form of a key. The calling function holds the lock of the values' pool.
	canonical(key K) K
}

// nested is a kind in which the value of one key can contain the values of others.
type nested[K comparable, T any] interface {
	// slot returns the key under which the entry of a canonical key is stored.
	slot(key K) K
	// keysOf returns all canonical keys that share a slot.
	keysOf(slot K) []K
	// covers reports whether a value contains all data for a key.
	covers(key K, value *T) bool
	// widen returns the key that is fetched to refresh a stale value.
	widen(key K, value *T) K
	// keep reports whether an old value that is still fresh is better than the fetched value, and stays in the cache.
	keep(old, fetched *T) bool
}

// watched is a kind whose values the venue streams by token.
type watched[K comparable] interface {
	// topics returns the channel and the tokens of keys. The tokens may be keys itself.
	topics(keys []K) (messages.Channel, []string)
}

// plain has the answers that most kinds give. It has none that every kind must give itself.
type plain[K comparable, T any] struct{}

func (plain[K, T]) route(K) int                             { return 0 }
func (plain[K, T]) alias(K) bool                            { return false }
func (plain[K, T]) forget(string) func(K) bool              { return nil }
func (plain[K, T]) shift(K) uint64                          { return 0 }
func (plain[K, T]) asOf(*T) (unknown time.Time)             { return unknown }
func (plain[K, T]) older(_, _ *T) bool                      { return false }
func (plain[K, T]) weight(value *T) int                     { return weigh(value) }
func (plain[K, T]) sound(K, *T) bool                        { return false }
func (plain[K, T]) learn(*T)                                {}
func (plain[K, T]) amend(value *T, _ *announced) (*T, bool) { return value, false }

// ofToken answers for kinds whose key is a token, and whose values the venue streams with the prices.
type ofToken[T any] struct{ plain[string, T] }

func (ofToken[T]) forget(id string) func(string) bool {
	return func(token string) bool { return token == id }
}

func (ofToken[T]) topics(tokens []string) (messages.Channel, []string) {
	return messages.ChannelPrices, tokens
}

// ownID returns a string that equals id, for kind.own. If text(value) equals id, ownID returns text(value). Otherwise, or if value is
// nil, ownID returns a copy of id.
func ownID[T any](id string, value *T, text func(*T) string) string {
	if value != nil {
		if same := text(value); same == id {
			return same
		}
	}
	return strings.Clone(id)
}

// answer returns the result of a call for one key.
func answer[T any](value *T, err error) ([]upstream.Result[*T], error) {
	if err != nil {
		return nil, err
	}
	return []upstream.Result[*T]{{Value: value}}, nil
}

// rows is like answer, for a list.
func rows[T any](list []T, err error) ([]upstream.Result[*[]T], error) { return answer(&list, err) }
