package httpapi

import (
	"crypto/sha256"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

// MaxCredentials is the maximum number of cached credentials. CredentialsBytes is the maximum size of one of these cache entries in
// bytes.
const (
	MaxCredentials   = 1000
	CredentialsBytes = market.MaxCredentialsLength + 512
)

// parse is like parseCredentials, but caches the result by the SHA-256 of the header. Clients send the same header with every
// request. For many requests, parsing the header takes longer than all other work. The cached credentials may be invalid, because
// only the venue can check them.
func (i *identities) parse(value string) (*market.Credentials, error) {
	hash := sha256.Sum256([]byte(value))
	if known, ok := i.parsed.Get(hash); ok {
		return known, nil
	}
	c, err := parseCredentials(value)
	if err == nil {
		i.parsed.Add(hash, c)
	}
	return c, err
}

func newLRU[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic("httpapi: " + err.Error()) // all sizes are constants
	}
	return cache
}
