package httpapi

import (
	"crypto/sha256"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

// MaxCredentials bounds the number of cached credentials. CredentialsBytes bounds the size of each in bytes.
const (
	MaxCredentials   = 1000
	CredentialsBytes = market.MaxCredentialsLength + 512
)

// parsedCredentials caches parsed credentials by the SHA-256 of their header. Clients send the same header with every request,
// and parsing the header takes longer than the rest of many requests. The venue has not checked these credentials.
// parsedCredentials is safe for concurrent use.
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

// parse returns the cached result of parseCredentials. If there is none, parse calls parseCredentials.
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
