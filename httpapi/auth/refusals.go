package auth

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

const (
	// MaxRefusals is the maximum number of entries in each of the three LRU caches of Refusals.
	MaxRefusals = 1 << 12
	// RefusalBytes is the approximate total size in bytes of three entries, one from each cache.
	RefusalBytes = 1 << 10

	// Check returns an error for an address and a key if refusalLimit requests with this key from this address were refused within
	// refusalWindow.
	refusalLimit  = 5
	refusalWindow = time.Minute
	// guessLimit is the greatest number of guesses of an address; see Refusals. It applies to running guesses and guesses that were
	// refused within refusalWindow, together.
	guessLimit = 20
)

// Key identifies a bearer token or credentials by a hash.
type Key struct {
	hash  [sha256.Size]byte
	token bool
}

// TokenKey returns the key of a bearer token.
func TokenKey(token string) Key { return Key{sha256.Sum256([]byte(token)), true} }

// CredentialsKey returns the key of credentials.
func CredentialsKey(c *market.Credentials) Key { return Key{sha256.Sum256([]byte(c.Wire())), false} }

// pair is a key that was sent from an address. network is the quota.Network of the address.
type pair struct {
	network netip.Prefix
	key     Key
}

// Refusals counts refused tokens and credentials by client address and key. So one client's bad key does not lock out other
// clients behind the same address. Refusals also limits the guesses of an address. A guess is a read of user data with
// credentials that the venue has not accepted yet. Refusals is safe for concurrent use.
type Refusals struct {
	clock market.Clock

	mu sync.Mutex
	// pairs contains, for each pair, the times of the last refusals, oldest first.
	pairs   *simplelru.LRU[pair, *[refusalLimit]instant]
	guesses *simplelru.LRU[netip.Prefix, *guesses]
	// accepted are the credentials that the venue has accepted.
	accepted *simplelru.LRU[Key, struct{}]
}

// instant is a time in nanoseconds since 1970. 0 means that there was no such time.
type instant int64

// left returns the remaining time of the refusalWindow that began at i. If i is 0, or if the window has ended, the result is 0 or
// less. now is the present time.
func (i instant) left(now time.Time) time.Duration {
	if i == 0 {
		return 0
	}
	return refusalWindow - time.Duration(now.UnixNano()-int64(i))
}

// push removes the first element of times, which is the oldest, and appends the present time.
func push(times []instant, now time.Time) {
	copy(times, times[1:])
	times[len(times)-1] = instant(now.UnixNano())
}

// guesses are the guesses of a network. refused contains the times of the last refused guesses, oldest first. underWay contains the
// number of running reads for each key. All running reads of a key count as one guess.
type guesses struct {
	refused  [guessLimit]instant
	underWay map[Key]int
}

// NewRefusals returns a Refusals without entries.
func NewRefusals(clock market.Clock) *Refusals {
	return &Refusals{clock: clock, pairs: newLRU[pair, *[refusalLimit]instant](), guesses: newLRU[netip.Prefix, *guesses](), accepted: newLRU[Key, struct{}]()}
}

func newLRU[K comparable, V any]() *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU[K, V](MaxRefusals, nil)
	if err != nil {
		panic("auth: " + err.Error()) // the size is a constant
	}
	return lru
}

// Refused counts a request with a refused key: the bearer token is invalid, or the venue answered 401 to the credentials. Call
// Refused at most once for a request. Do not call Refused for a request that Check has refused, because every retry would then
// prolong the refusal.
func (r *Refusals) Refused(addr netip.Addr, key Key) {
	now, p := r.clock.Now(), pair{quota.Network(addr), key}
	r.mu.Lock()
	defer r.mu.Unlock()
	times, known := r.pairs.Get(p)
	if !known {
		times = new([refusalLimit]instant)
		r.pairs.Add(p, times)
	}
	again := times[refusalLimit-1].left(now) > 0
	push(times[:], now)
	if key.token {
		return // an invalid token causes no call to the venue
	}
	r.accepted.Remove(key)
	if again {
		return // all refusals of a key within refusalWindow are one guess
	}
	push(r.guessesOf(p.network).refused[:], now)
}

// guessesOf returns the guesses of a network. The calling function holds the lock. If a network is evicted from the cache, its
// count starts at 0 again, even if guesses of the network are running. To cause an eviction, a client needs more than MaxRefusals
// networks. Each of these networks may make guessLimit guesses anyway.
func (r *Refusals) guessesOf(network netip.Prefix) *guesses {
	g, known := r.guesses.Get(network)
	if !known {
		g = &guesses{}
		r.guesses.Add(network, g)
	}
	return g
}

// Check returns an error with CodeRateLimited and RetryAfter if too many requests with the key from the address were refused.
func (r *Refusals) Check(addr netip.Addr, key Key) error {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	times, known := r.pairs.Peek(pair{quota.Network(addr), key})
	if !known {
		return nil
	}
	wait := times[0].left(now)
	if wait <= 0 {
		return nil
	}
	e := market.Errorf(market.CodeRateLimited, "these credentials were refused %d times within a minute; wait, then send valid ones", refusalLimit)
	e.RetryAfter = wait
	return e
}

// Guess counts a read with credentials that the venue has not accepted yet. A running guess counts like a refused guess. Concurrent
// reads with the same credentials are one guess. When the read is over, the calling function must call end once. The parameter
// accepted reports whether the venue accepted the credentials. If the limit of guesses is reached, the error has CodeRateLimited
// and RetryAfter, and end is nil.
func (r *Refusals) Guess(addr netip.Addr, key Key) (end func(accepted bool), err error) {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.accepted.Get(key); ok {
		return func(bool) {}, nil
	}
	g := r.guessesOf(quota.Network(addr))
	if g.underWay[key] == 0 {
		if wait, full := g.full(now); full {
			e := market.Errorf(market.CodeRateLimited, "too many credentials that the venue does not know were sent from this address within a minute; try again later")
			e.RetryAfter = wait
			return nil, e
		}
	}
	if g.underWay == nil {
		g.underWay = make(map[Key]int)
	}
	g.underWay[key]++
	return func(accepted bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if g.underWay[key]--; g.underWay[key] == 0 {
			delete(g.underWay, key)
		}
		if len(g.underWay) == 0 {
			g.underWay = nil
		}
		if accepted {
			r.accepted.Add(key, struct{}{})
		}
	}, nil
}

// full reports whether the limit of guesses is reached. wait is the time after which the client should try again: one second while
// guesses are running, otherwise the time until the oldest refusal is older than refusalWindow. now is the present time.
func (g *guesses) full(now time.Time) (wait time.Duration, full bool) {
	taken, wait := len(g.underWay), time.Second
	if taken == 0 {
		wait = g.refused[0].left(now) // without running guesses, the limit is reached only if all entries of refused are recent
	}
	for _, at := range g.refused {
		if at.left(now) > 0 {
			taken++
		}
	}
	return wait, taken >= guessLimit
}
