package venue

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

const (
	// leastBackoff and mostBackoff are the bounds that the wait after a failure is drawn below: the first doubles with each
	// failure in a row up to the second.
	leastBackoff = 250 * time.Millisecond
	mostBackoff  = 30 * time.Second
	// maxBackoffs bounds how many keys are remembered; the one that failed longest ago is forgotten first.
	maxBackoffs = 10_000
)

// backoffWaits are the waits after failures in a row, of a key and of a call that is tried again.
var backoffWaits = wire.Backoff{Min: leastBackoff, Max: mostBackoff}

// backoffs remembers the keys whose last answer was a failure of the venue's, so that none of them is asked for again
// before its wait has ended. It is safe for concurrent use.
type backoffs struct {
	clock market.Clock
	rand  func() float64
	// secret is the random key of the process under which accounts are hashed.
	secret [32]byte

	mu   sync.Mutex
	keys *simplelru.LRU[backoffKey, backoff]
}

// backoffKey is what is not asked for again: a token, a market, a search or a branch of an account.
type backoffKey struct {
	endpoint reqctx.Endpoint
	key      string
}

type backoff struct {
	// failures counts those in a row.
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

// account returns the key of an account as the caller of ctx sees it: a keyed hash, so that a stranger who makes the venue
// fail with credentials of his own costs the owner nothing.
func (b *backoffs) account(ctx context.Context, a market.Address) string {
	if c := reqctx.CredentialsFrom(ctx); c != nil {
		return b.digest(string(a), c.Wire())
	}
	return b.digest(string(a))
}

// digest returns a short key for long or secret texts.
func (b *backoffs) digest(texts ...string) string {
	mac := hmac.New(sha256.New, b.secret[:])
	for _, s := range texts {
		mac.Write([]byte(s))
		mac.Write([]byte{0})
	}
	return string(mac.Sum(nil))
}

// refusal returns the remembered error of a key whose wait has not ended, with what is left of the wait, or nil.
func (b *backoffs) refusal(e reqctx.Endpoint, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.keys.Peek(backoffKey{e, key})
	if !ok {
		return nil
	}
	if left := known.until.Sub(b.clock.Now()); left > 0 {
		return after(known.err, left)
	}
	return nil
}

// settle takes the outcome of a read of keys, which had it in common, and returns it: a failure of the venue's with the
// time that the keys will not be asked for. Any other answer clears them; what ended for the caller's reasons, or was not
// sent, says nothing.
func (b *backoffs) settle(e reqctx.Endpoint, err error, keys ...string) error {
	failure, sent := blames(err)
	if !sent {
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
		// What was left alone for longer than the longest wait starts anew.
		if known, ok := b.keys.Peek(backoffKey{e, key}); ok && now.Sub(known.until) <= mostBackoff {
			failures = max(failures, known.failures+1)
		}
	}
	wait := failure.RetryAfter
	if wait <= 0 {
		wait = backoffWaits.Wait(failures, b.rand())
	}
	for _, key := range keys {
		b.keys.Add(backoffKey{e, key}, backoff{failures, now.Add(wait), failure})
	}
	return after(failure, wait)
}

// blames returns err where it is a failure of the venue's that passes: its rate limit, an error of its own, no answer. sent
// is false when nothing was sent, or nobody waited for the answer.
func blames(err error) (failure *market.Error, sent bool) {
	if err == nil {
		return nil, true
	}
	if !errors.As(err, &failure) {
		return nil, false
	}
	var why *cause
	if !errors.As(err, &why) {
		return nil, failure.Code == market.CodeUpstreamBadResponse // an element of an answer
	}
	switch {
	case why.kind == causeCaller, why.kind == causeOpen:
		return nil, false
	case failure.Code == market.CodeRateLimited, failure.Code == market.CodeUpstreamUnavailable, failure.Code == market.CodeUpstreamTimeout:
		return failure, true
	}
	return nil, true
}

// after returns a copy of err that tells when to ask again, in whole milliseconds of at least one.
func after(err *market.Error, wait time.Duration) *market.Error {
	c := *err
	c.RetryAfter = max((wait + time.Millisecond - 1).Truncate(time.Millisecond), time.Millisecond)
	return &c
}

// guarded makes a read of one key, unless it is to be left alone.
func guarded[T any](c *Client, e reqctx.Endpoint, key string, read func() (T, error)) (T, error) {
	if err := c.backoffs.refusal(e, key); err != nil {
		var none T
		return none, err
	}
	value, err := read()
	return value, c.backoffs.settle(e, err, key)
}
