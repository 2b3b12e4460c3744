package httpapi

import (
	"crypto/sha256"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

// MaxCredentials is the maximum number of cached credentials. CredentialsBytes is the maximum size in bytes of one cache entry.
const (
	MaxCredentials   = 1000
	CredentialsBytes = market.MaxCredentialsLength + 512
)

// parsedCredentials caches parsed credentials by the SHA-256 of their header. Clients send the same header with every request. For
// many requests, parsing the header takes longer than all other work. The cached credentials may be invalid, because only the venue
// can check them. parsedCredentials is safe for concurrent use.
type parsedCredentials struct {
	cache *lru.Cache[[sha256.Size]byte, *market.Credentials]
}

func newParsedCredentials() *parsedCredentials {
	cache, err := lru.New[[sha256.Size]byte, *market.Credentials](MaxCredentials)
	if err != nil {
		panic("httpapi: " + err.Error()) // the size is a constant
	}
	return &parsedCredentials{cache}
}

// parse is like parseCredentials, but uses the cache.
func (p *parsedCredentials) parse(value string) (*market.Credentials, error) {
	hash := sha256.Sum256([]byte(value))
	if known, ok := p.cache.Get(hash); ok {
		return known, nil
	}
	c, err := parseCredentials(value)
	if err == nil {
		p.cache.Add(hash, c)
	}
	return c, err
}
