package jwt

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/httpapi/auth"
	"oddsgraph/internal/market"
)

const (
	// MaxSessions is the greatest number of verified tokens that a Verifier remembers. The Verifier verifies all other tokens
	// again for each request.
	MaxSessions = 4096
	// SessionBytes is an upper bound for the memory of one remembered token, in bytes.
	SessionBytes = 1 << 9

	// leeway is the accepted difference between Config.Clock and the issuer's clock.
	leeway = 30 * time.Second
	// refreshEvery is the time between a successful read of the keys and the next read by Run.
	refreshEvery = 10 * time.Minute
	// retryEvery is the time between a failed read of the keys and the next read by Run.
	retryEvery = 30 * time.Second
)

// algorithms are the accepted signature algorithms. None of them uses a shared secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// Config says which tokens are accepted. All fields are required.
type Config struct {
	// A token is refused if its claim iss is not Issuer, or if its claim aud does not contain Audience.
	Issuer, Audience string
	URL              string
	Claim            string
	// Account returns the account for a value of the claim. It returns false if there is no such account.
	Account func(subject string) (*auth.Account, bool)
	Clock   market.Clock
	Log     *slog.Logger
}

// Verifier finds the accounts of tokens. It is safe for concurrent use.
type Verifier struct {
	cfg  Config
	keys *keys

	mu       sync.Mutex
	sessions *simplelru.LRU[[sha256.Size]byte, session]
}

type session struct {
	account *auth.Account
	expiry  time.Time
}

// New returns a Verifier that has no keys yet. Run reads the keys. Account also reads the keys if a token has an unknown key.
func New(cfg Config) *Verifier {
	sessions, err := simplelru.NewLRU[[sha256.Size]byte, session](MaxSessions, nil)
	if err != nil {
		panic("jwt: " + err.Error()) // the size is a constant
	}
	return &Verifier{cfg: cfg, keys: newKeys(cfg.URL, cfg.Clock, cfg.Log), sessions: sessions}
}

// Run reads the keys periodically until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	defer v.keys.client.CloseIdleConnections()
	for {
		_ = v.keys.refresh(ctx, true) // refresh logs errors
		wait := refreshEvery
		v.keys.mu.Lock()
		if v.keys.failed {
			wait = retryEvery
		}
		v.keys.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// Account returns a session of the token's account. The session ends when the token has expired and leeway has passed, when the
// issuer withdraws the token's key, or when the account is revoked. If ctx ends while Account waits for the keys, the error may be
// the cause of ctx. Any other error is a market.Error that contains no part of the token.
func (v *Verifier) Account(ctx context.Context, token string) (*auth.Account, error) {
	hash := sha256.Sum256([]byte(token))
	v.mu.Lock()
	s, known := v.sessions.Get(hash)
	v.mu.Unlock()
	if known && s.account.Err() == nil && v.cfg.Clock.Now().Before(s.expiry) {
		return s.account, nil
	}
	s, err := v.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sessions.Add(hash, s)
	return s.account, nil
}

func refusal(format string, args ...any) error {
	return market.Errorf(market.CodeUnauthenticated, format, args...)
}

func (v *Verifier) verify(ctx context.Context, token string) (s session, err error) {
	parsed, err := josejwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return s, refusal("the bearer token is neither known nor a JWT that is signed with RS, PS, ES 256 to 512, or EdDSA")
	}
	header := parsed.Headers[0]
	k, err := v.keys.find(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return s, err
	}
	if k.Algorithm != "" && k.Algorithm != header.Algorithm {
		return s, refusal("the algorithm in the token's header does not match its key")
	}
	var claims josejwt.Claims
	var all map[string]json.RawMessage
	if err := parsed.Claims(k.Key, &claims, &all); err != nil {
		if errors.Is(err, jose.ErrCryptoFailure) || errors.Is(err, jose.ErrUnsupportedAlgorithm) {
			return s, refusal("the token's signature is wrong")
		}
		return s, refusal("the token's signature or claims can't be read")
	}
	now := v.cfg.Clock.Now()
	if err := v.checkClaims(&claims, now); err != nil {
		return s, err
	}
	var subject string
	if json.Unmarshal(all[v.cfg.Claim], &subject) != nil || subject == "" {
		return s, refusal("the token's claim %s is missing or is not a string", v.cfg.Claim)
	}
	account, ok := v.cfg.Account(subject)
	if !ok {
		return s, market.Errorf(market.CodeForbidden, "the token is valid, but its %s has no account here", v.cfg.Claim)
	}
	expiry := claims.Expiry.Time().Add(leeway)
	return session{account.Session(expiry.Sub(now), k.ctx), expiry}, nil
}

func (v *Verifier) checkClaims(claims *josejwt.Claims, now time.Time) error {
	if claims.Expiry == nil {
		return refusal("the token has no expiry")
	}
	switch err := claims.ValidateWithLeeway(josejwt.Expected{Issuer: v.cfg.Issuer, AnyAudience: josejwt.Audience{v.cfg.Audience}, Time: now}, leeway); {
	case err == nil:
		return nil
	case errors.Is(err, josejwt.ErrInvalidIssuer):
		return refusal("the token is from another issuer")
	case errors.Is(err, josejwt.ErrInvalidAudience):
		return refusal("the token is for another audience")
	case errors.Is(err, josejwt.ErrExpired):
		return refusal("the token has expired; send a new one")
	default:
		return refusal("the token is not valid yet")
	}
}
