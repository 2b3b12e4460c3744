package rest

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

const (
	// MinBackoff and MaxBackoff bound the wait before a failed call is repeated; see market.Backoff. MaxBackoff is also how late the
	// service may notice that an outage is over.
	MinBackoff = 250 * time.Millisecond
	MaxBackoff = 10 * time.Second
	// maxBackoffs bounds the number of remembered keys. If more keys fail, backoffs forgets the key whose last failure is the
	// oldest.
	maxBackoffs = 10_000
)

// retryBackoff is the backoff of failed keys and of calls that are retried.
var retryBackoff = market.Backoff{Min: MinBackoff, Max: MaxBackoff}

// backoffs remembers the keys whose last read failed at the venue. A key is not read again before its wait has ended. backoffs
// is safe for concurrent use.
type backoffs struct {
	clock market.Clock
	rand  func() float64
	// secret is a random key of this process. Accounts and credentials are hashed with it.
	secret [32]byte

	mu   sync.Mutex
	keys *simplelru.LRU[backoffKey, backoff]
}

// backoffKey identifies a token, a market, a search or a list of an account.
type backoffKey struct {
	endpoint upstream.Endpoint
	id       string
}

type backoff struct {
	// failures is the number of failures in a row.
	failures int
	until    time.Time
	err      *market.Error
}

func newBackoffs(clock market.Clock, random func() float64) *backoffs {
	b := &backoffs{clock: clock, rand: random}
	_, _ = rand.Read(b.secret[:])                                       // never fails
	b.keys, _ = simplelru.NewLRU[backoffKey, backoff](maxBackoffs, nil) // fails for sizes below 1
	return b
}

// AccountKey returns the key of an account for the credentials of call. The key is a keyed hash of the account and of the
// credentials, if call has any, so the key reveals neither. It depends on the credentials, so that failures with someone else's
// credentials do not delay the account's owner.
func (b *backoffs) AccountKey(call upstream.Call, a market.Address) string {
	if c := call.Credentials; c != nil {
		return b.Digest(string(a), c.Wire())
	}
	return b.Digest(string(a))
}

// Digest returns a keyed hash of texts, which may be long or secret.
func (b *backoffs) Digest(texts ...string) string {
	mac := hmac.New(sha256.New, b.secret[:])
	for _, s := range texts {
		mac.Write([]byte(s))
		mac.Write([]byte{0})
	}
	return string(mac.Sum(nil))
}

// Refusal returns nil if a key may be read. If the wait of the key has not ended, Refusal returns the error of the last read.
// RetryAfter of this error is the remaining wait.
func (b *backoffs) Refusal(e upstream.Endpoint, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.keys.Peek(backoffKey{e, key})
	if !ok {
		return nil
	}
	if left := known.until.Sub(b.clock.Now()); left > 0 {
		return withRetryAfter(known.err, left)
	}
	return nil
}

// Record records the result of a read of several keys. After a temporary failure of the venue, Record starts the wait of the keys
// and returns err with this wait as RetryAfter. After a success, or an error of the venue that is not temporary, Record forgets the
// keys and returns err unchanged. If the read made no call, or its context ended during the call, Record only returns err.
func (b *backoffs) Record(e upstream.Endpoint, err error, keys ...string) error {
	failure, conclusive := venueFailure(err)
	if !conclusive {
		return err
	}
	now := b.clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if failure == nil {
		for _, key := range keys {
			b.keys.Remove(backoffKey{e, key})
		}
		return err
	}
	failures := 1
	for _, key := range keys {
		// If the wait of a key ended more than MaxBackoff ago, the earlier failures of the key do not count.
		if known, ok := b.keys.Peek(backoffKey{e, key}); ok && now.Sub(known.until) <= MaxBackoff {
			failures = max(failures, known.failures+1)
		}
	}
	wait := cmp.Or(failure.RetryAfter, retryBackoff.Wait(failures, b.rand()))
	for _, key := range keys {
		b.keys.Add(backoffKey{e, key}, backoff{failures, now.Add(wait), failure})
	}
	return withRetryAfter(failure, wait)
}

// venueFailure returns the market.Error in err if it is a temporary failure of the venue: the rate limit, an internal error, or
// no response. If the client sent no call, or the context of the call ended before the response, conclusive is false.
func venueFailure(err error) (failure *market.Error, conclusive bool) {
	if err == nil {
		return nil, true
	}
	if !errors.As(err, &failure) {
		return nil, false
	}
	why, ok := errors.AsType[*CallFailure](err)
	if !ok {
		return nil, failure.Code == market.CodeUpstreamBadResponse // the venue has responded, but with a bad element
	}
	switch {
	case why.Kind == KindCaller, why.Kind == KindCircuitOpen:
		return nil, false
	case failure.Code == market.CodeRateLimited, failure.Code == market.CodeUpstreamUnavailable, failure.Code == market.CodeUpstreamTimeout:
		return failure, true
	}
	return nil, true
}

// withRetryAfter returns a copy of err. RetryAfter of the copy is the given wait, rounded up to whole milliseconds, and at least
// one millisecond.
func withRetryAfter(err *market.Error, wait time.Duration) *market.Error {
	c := *err
	c.RetryAfter = max((wait + time.Millisecond - 1).Truncate(time.Millisecond), time.Millisecond)
	return &c
}

// WithBackoff calls read and records its result. If the wait of the key has not ended, WithBackoff does not call read and returns
// the error of the last read.
func WithBackoff[T any](c *Client, e upstream.Endpoint, key string, read func() (T, error)) (T, error) {
	if err := c.Refusal(e, key); err != nil {
		var none T
		return none, err
	}
	value, err := read()
	return value, c.Record(e, err, key)
}
