package jwt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"oddsgraph/internal/market"
)

const (
	fetchTimeout = 5 * time.Second
	maxKeySet    = 256 << 10
	maxKeys      = 64
	// minRSA is the smallest accepted size of an RSA key in bits.
	minRSA = 2048
	// A token with an unknown key causes a new read of the keys, but not before afterSuccess has passed since a successful read, or
	// afterFailure since a failed read.
	afterSuccess = 30 * time.Second
	afterFailure = 5 * time.Second
)

var errWithdrawn = market.Errorf(market.CodeUnauthenticated, "the issuer has withdrawn the key that the token was signed with; send a new token")

// key is a public key of the issuer. ctx ends when the issuer no longer publishes the key.
type key struct {
	jose.JSONWebKey
	ctx      context.Context
	withdraw context.CancelCauseFunc
}

// keys are the public keys of the issuer. They are safe for concurrent use.
type keys struct {
	url    string
	client *http.Client
	clock  market.Clock
	log    *slog.Logger

	mu    sync.Mutex
	known []*key
	// nextReadAt is the earliest time at which an unknown key causes another read. failed reports whether the last read failed.
	nextReadAt time.Time
	failed     bool
	// reading is closed when the running read ends. It is nil if no read is running.
	reading chan struct{}
}

func newKeys(url string, clock market.Clock, log *slog.Logger) *keys {
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       fetchTimeout,
	}
	return &keys{url: url, client: client, clock: clock, log: log}
}

// find returns the key with an id. RFC 7517 permits several keys of different types with the same id. Then find returns the first
// key that fits the algorithm, or the first key if none fits. The id is empty if the token names no key. In this case, find returns
// the only known key, if there is exactly one. If find does not find the key, it reads the keys again, except soon after the last
// read. If ctx ends while find waits for the read of another call, the error is the cause of ctx. Any other error is a
// market.Error.
func (k *keys) find(ctx context.Context, id, algorithm string) (*key, error) {
	if found := k.findKnown(id, algorithm); found != nil {
		return found, nil
	}
	if err := k.refresh(ctx, false); err != nil {
		return nil, err
	}
	if found := k.findKnown(id, algorithm); found != nil {
		return found, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) == 0 {
		return nil, market.Errorf(market.CodeUpstreamUnavailable, "the issuer's keys could not be read, so no token can be checked now")
	}
	if id == "" {
		return nil, market.Errorf(market.CodeUnauthenticated, "the token does not name its key in kid, and the issuer publishes several keys")
	}
	return nil, market.Errorf(market.CodeUnauthenticated, "the token is signed with a key that the issuer does not publish")
}

// findKnown is like find, but does not read the keys again. It returns nil if there is no such key.
func (k *keys) findKnown(id, algorithm string) (found *key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id == "" {
		if len(k.known) == 1 {
			return k.known[0]
		}
		return nil
	}
	for _, known := range k.known {
		if known.KeyID != id {
			continue
		}
		if known.fits(algorithm) {
			return known
		}
		if found == nil {
			found = known
		}
	}
	return found
}

// fits reports whether a token with this algorithm in its header can be signed with the key.
func (k *key) fits(algorithm string) bool {
	if k.Algorithm != "" {
		return k.Algorithm == algorithm
	}
	switch k.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		return strings.HasPrefix(algorithm, "ES")
	default: // ed25519.PublicKey
		return algorithm == string(jose.EdDSA)
	}
}

// refresh reads the keys, or waits for a read that is already running. If force is false, refresh does nothing soon after the
// last read. If the read fails, the known keys stay in use. If ctx ends while refresh waits for the read of another call, refresh
// returns the cause of ctx. In all other cases refresh returns nil.
func (k *keys) refresh(ctx context.Context, force bool) error {
	k.mu.Lock()
	if reading := k.reading; reading != nil {
		k.mu.Unlock()
		select {
		case <-reading:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if now := k.clock.Now(); !force && now.Before(k.nextReadAt) {
		k.mu.Unlock()
		return nil
	}
	k.reading = make(chan struct{})
	k.mu.Unlock()
	fetched, err := k.fetch(context.WithoutCancel(ctx)) // the read continues when ctx ends, because other calls may wait for it
	k.replace(fetched, err)
	return nil
}

// replace stores the keys that fetch has returned, and ends the sessions of all other known keys. If fetch has returned an error,
// the known keys stay in use.
func (k *keys) replace(fetched []jose.JSONWebKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.reading)
	k.reading = nil
	if err != nil {
		k.nextReadAt = k.clock.Now().Add(afterFailure)
		if !k.failed {
			k.log.Warn("the keys for JWTs could not be read; the known keys stay in use", "known", len(k.known), "error", err)
		}
		k.failed = true
		return
	}
	if k.failed {
		k.log.Info("the keys for JWTs can be read again")
	}
	k.nextReadAt, k.failed = k.clock.Now().Add(afterSuccess), false
	before := k.known
	k.known = nil
	for _, f := range fetched {
		i := slices.IndexFunc(before, func(old *key) bool {
			return old.KeyID == f.KeyID && old.Algorithm == f.Algorithm && equal(old.Key, f.Key)
		})
		if i >= 0 {
			k.known = append(k.known, before[i])
			continue
		}
		added := &key{JSONWebKey: f}
		added.ctx, added.withdraw = context.WithCancelCause(context.Background())
		k.known = append(k.known, added)
	}
	for _, old := range before {
		if !slices.Contains(k.known, old) {
			old.withdraw(errWithdrawn)
		}
	}
}

func equal(a, b any) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	if len(body) > maxKeySet {
		return nil, fmt.Errorf("the body is larger than %d bytes", maxKeySet)
	}
	return parseKeys(body)
}

// parseKeys parses a key set and returns the usable keys, but at most maxKeys. It ignores all other keys, as RFC 7517 recommends.
// If no key is usable, parseKeys returns an error.
func parseKeys(body []byte) (usable []jose.JSONWebKey, err error) {
	var set struct{ Keys []json.RawMessage }
	if json.Unmarshal(body, &set) != nil {
		return nil, errors.New("the body is no JSON Web Key Set")
	}
	for _, text := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(text) == nil && isUsable(&k) {
			usable = append(usable, k)
		}
		if len(usable) == maxKeys {
			break
		}
	}
	if len(usable) == 0 {
		return nil, errors.New("the set has no public key for signatures")
	}
	return usable, nil
}

func isUsable(k *jose.JSONWebKey) bool {
	if !k.IsPublic() || !k.Valid() || k.Use != "" && k.Use != "sig" {
		return false
	}
	switch public := k.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}
