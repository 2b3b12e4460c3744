package auth

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

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
	// Check returns an error for credentials that the venue has not accepted if more than guessLimit credentials from the network were
	// refused within refusalWindow.
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
// clients behind the same address. Refusals also limits how many different credentials a network may try. It is safe for concurrent
// use.
type Refusals struct {
	clock market.Clock

	mu sync.Mutex
	// pairs contains, for each pair, the times of the last refusals, oldest first.
	pairs *simplelru.LRU[pair, *[refusalLimit]instant]
	// networks limits the refused credentials of each network. The credentials of a burst may be checked before the first of them is
	// refused. So a limiter may go into debt, for at most another refusalWindow.
	networks *simplelru.LRU[netip.Prefix, *rate.Limiter]
	// accepted contains, for each key, the account for which the venue has first accepted these credentials.
	accepted *simplelru.LRU[Key, market.Address]
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

func push(times []instant, now time.Time) {
	copy(times, times[1:])
	times[len(times)-1] = instant(now.UnixNano())
}

// NewRefusals returns a Refusals without entries.
func NewRefusals(clock market.Clock) *Refusals {
	return &Refusals{clock: clock, pairs: newLRU[pair, *[refusalLimit]instant](), networks: newLRU[netip.Prefix, *rate.Limiter](), accepted: newLRU[Key, market.Address]()}
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
	guesses, known := r.networks.Get(p.network)
	if !known {
		guesses = rate.NewLimiter(rate.Every(refusalWindow/guessLimit), guessLimit)
		r.networks.Add(p.network, guesses)
	}
	if guesses.TokensAt(now) > -guessLimit {
		guesses.ReserveN(now, 1)
	}
}

// Accepted records that the venue has accepted credentials for an account. Refused credentials of other clients do not affect them
// until the venue refuses them.
func (r *Refusals) Accepted(key Key, account market.Address) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.accepted.Get(key); !known {
		r.accepted.Add(key, account)
	}
}

// Account returns the account for which the venue has first accepted credentials. It returns "" if the venue has not accepted them,
// or has refused them since.
func (r *Refusals) Account(key Key) market.Address {
	r.mu.Lock()
	defer r.mu.Unlock()
	account, _ := r.accepted.Get(key)
	return account
}

// Check returns an error with CodeRateLimited and RetryAfter if too many requests with the key from the address were refused, or if
// too many other credentials from the address's network were refused and the venue has not accepted these.
func (r *Refusals) Check(addr netip.Addr, key Key) error {
	now, p := r.clock.Now(), pair{quota.Network(addr), key}
	r.mu.Lock()
	defer r.mu.Unlock()
	if times, known := r.pairs.Peek(p); known {
		if wait := times[0].left(now); wait > 0 {
			e := market.Errorf(market.CodeRateLimited, "these credentials were refused %d times within a minute; wait, then send valid ones", refusalLimit)
			e.RetryAfter = wait
			return e
		}
	}
	guesses, limited := r.networks.Peek(p.network)
	if key.token || !limited {
		return nil
	}
	missing := 1 - guesses.TokensAt(now)
	if _, accepted := r.accepted.Get(key); accepted || missing <= 0 {
		return nil
	}
	e := market.Errorf(market.CodeRateLimited, "too many credentials that the venue does not know were sent from this address within a minute; try again later")
	e.RetryAfter = time.Duration(missing*float64(refusalWindow/guessLimit)) + time.Millisecond // TokensAt rounds
	return e
}
