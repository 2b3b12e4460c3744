package respcache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"sync"

	"oddsgraph/internal/market"
)

// Scope is on whose behalf a response was made: a keyed hash, of which nothing can be told without the process's random key.
// Requests of one scope have the same rights. The zero value is nobody's in particular.
type Scope [sha256.Size]byte

// scopes makes scopes under a random key. It is safe for concurrent use.
type scopes struct {
	anonymous Scope
	macs      sync.Pool // of *mac
}

// mac is an HMAC that can be used again, with room for what goes through it.
type mac struct {
	hash.Hash
	text []byte
}

func newScopes() *scopes {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	s := &scopes{}
	s.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, secret[:])} }
	s.anonymous = s.of("anonymous")
	return s
}

// of returns the scope with a name. It allocates nothing.
func (s *scopes) of(parts ...string) (scope Scope) {
	m, _ := s.macs.Get().(*mac)
	m.text = m.text[:0]
	for _, p := range parts {
		n := len(p)
		m.text = append(append(m.text, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), p...)
	}
	m.Reset()
	_, _ = m.Write(m.text)
	m.text = m.Sum(m.text[:0])
	copy(scope[:], m.text)
	s.macs.Put(m)
	return scope
}

// Scope returns the scope of a caller with these credentials, which are nil for one without.
func (c *Cache) Scope(credentials *market.Credentials) Scope {
	if credentials == nil {
		return c.scopes.anonymous
	}
	address, _ := credentials.Address()
	return c.scopes.of("account", string(address), credentials.Wire())
}
