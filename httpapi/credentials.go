package httpapi

import (
	"crypto/sha256"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
)

// MaxCredentials bounds the cached credentials, CredentialsBytes the size of each.
const (
	MaxCredentials   = 1000
	CredentialsBytes = market.MaxCredentialsLength + 512
)

// parsedCredentials caches parsed credentials by the SHA-256 of their header. Clients send the same header with every request, and
// parsing it takes longer than answering many requests. The credentials may be invalid. It is safe for concurrent use.
type parsedCredentials struct {
	mu  sync.Mutex
	lru *simplelru.LRU[[sha256.Size]byte, *market.Credentials]
}

func newParsedCredentials() *parsedCredentials {
	lru, err := simplelru.NewLRU[[sha256.Size]byte, *market.Credentials](MaxCredentials, nil)
	if err != nil {
		panic("httpapi: " + err.Error()) // the size is a constant
	}
	return &parsedCredentials{lru: lru}
}

// parse is parseCredentials with the cache.
func (p *parsedCredentials) parse(value string) (*market.Credentials, error) {
	hash := sha256.Sum256([]byte(value))
	p.mu.Lock()
	known, ok := p.lru.Get(hash)
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	c, err := parseCredentials(value)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lru.Add(hash, c)
	return c, nil
}
