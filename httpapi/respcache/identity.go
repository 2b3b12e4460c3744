package respcache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"sync"

	"oddsgraph/internal/market"
)

// Identity identifies the clients that may get a response. Clients with the same Identity have the same credentials. An Identity is
// an HMAC with a random key of the process, and reveals nothing about the client. The zero value means everybody.
type Identity [sha256.Size]byte

// identities computes identities with a random key. It is safe for concurrent use.
type identities struct {
	anonymous Identity
	macs      sync.Pool // of *mac
}

// mac is a reusable HMAC with a buffer for its input.
type mac struct {
	hash.Hash
	text []byte
}

func newIdentities() *identities {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // Read never fails
	s := &identities{}
	s.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, secret[:])} }
	s.anonymous = s.of("anonymous")
	return s
}

// of returns the identity that is computed from a list of texts.
func (s *identities) of(parts ...string) (identity Identity) {
	m, _ := s.macs.Get().(*mac)
	m.text = m.text[:0]
	for _, p := range parts {
		n := len(p)
		m.text = append(append(m.text, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), p...)
	}
	m.Reset()
	_, _ = m.Write(m.text)
	m.text = m.Sum(m.text[:0])
	copy(identity[:], m.text)
	s.macs.Put(m)
	return identity
}

// Identity returns the identity of a client with these credentials. If credentials is nil, the client is anonymous.
func (c *Cache) Identity(credentials *market.Credentials) Identity {
	if credentials == nil {
		return c.identities.anonymous
	}
	address, _ := credentials.Address()
	return c.identities.of("account", string(address), credentials.Wire())
}
