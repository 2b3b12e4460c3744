package httpapi

import (
	"crypto/sha256"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
)

// MaxCredentials bounds the credentials that are remembered, CredentialsBytes is the most that each takes.
const (
	MaxCredentials   = 1000
	CredentialsBytes = market.MaxCredentialsLength + 512
)

// parsedCredentials remembers the credentials that were sent lately by the SHA-256 of their header, since clients send the same
// with every request and reading them takes longer than many an answer. It knows nothing of whether they are good. It is safe
// for concurrent use.
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

// parse is parseCredentials.
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
