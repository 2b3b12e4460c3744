package respcache

import (
	"bytes"
	"context"
	"hash/maphash"
)

const maxRequests = 8

// requestKey identifies a request by the hash of its bytes. Different requests may have equal hashes.
type requestKey struct {
	hash     uint64
	identity Identity
}

// storedRequest is a request with its response. It is immutable.
type storedRequest struct {
	form string
	body []byte
	// current reports whether the request still means the same operation. It is nil for a request that always does.
	current  func() bool
	response *Response
}

// FindRequest returns a valid response to a stored request with the same form and body, or nil. The response was made for this
// identity or for everybody. form must contain everything that the response depends on, except the identity and the body.
func (c *Cache) FindRequest(ctx context.Context, identity Identity, form string, body []byte) *Response {
	key := requestKey{hash: maphash.Bytes(c.seed, body)}
	c.mu.Lock()
	q := c.requests[key]
	if q == nil {
		key.identity = identity
		q = c.requests[key]
	}
	if q == nil || q.form != form || !bytes.Equal(q.body, body) {
		c.mu.Unlock()
		return nil
	}
	_, _ = c.lru.Get(q.response.key) // makes the response the most recently used
	c.mu.Unlock()
	if q.current != nil && !q.current() || !c.use(ctx, q.response) {
		return nil
	}
	return q.response
}

// StoreRequest stores a request with its response for FindRequest. The response must come from Do. StoreRequest copies the body.
// FindRequest calls current, which must report whether the request still stands for the same operation. current must not wait; it is
// nil for a request that always stands for the same operation.
// StoreRequest stores nothing if the response has left the cache, already has maxRequests requests, or would become too large. It
// also stores nothing if a request with the same hash is already stored.
func (c *Cache) StoreRequest(r *Response, form string, body []byte, current func() bool) {
	hash := maphash.Bytes(c.seed, body)
	size := int64(perRequest + 2*len(body)) // twice, because current may also keep a copy of the body
	c.mu.Lock()
	defer c.mu.Unlock()
	key := requestKey{hash, r.key.Identity}
	if !r.stored || len(r.requests) == maxRequests || r.size+size > c.limit/maxShare || c.requests[key] != nil {
		return
	}
	c.requests[key] = &storedRequest{form, bytes.Clone(body), current, r}
	r.requests = append(r.requests, key)
	r.size += size
	c.addBytes(size)
}
