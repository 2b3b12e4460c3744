package respcache

import (
	"bytes"
	"hash/maphash"
)

// maxRequests bounds the requests that lead to one response at once. Those that ask the same in so many forms are few.
const maxRequests = 8

// requestKey finds a request by a hash of its bytes, which others may have too.
type requestKey struct {
	hash  uint64
	scope Scope
}

// request is one that led to a response, as it was sent. It does not change.
type request struct {
	form string
	body []byte
	// still reports whether the request, as it is, still asks what the response answers.
	still    func() bool
	response *Response
}

// Repeat returns the response to a request that is, byte for byte, one that Remember was told of on behalf of the same scope
// or of anybody, if it stands; else nil. form is what the meaning of the body depends on, and the response beside it.
func (c *Cache) Repeat(scope Scope, form string, body []byte) *Response {
	key := requestKey{hash: maphash.Bytes(c.seed, body)}
	c.mu.Lock()
	q := c.requests[key]
	if q == nil {
		key.scope = scope
		q = c.requests[key]
	}
	if q == nil || q.form != form || !bytes.Equal(q.body, body) {
		c.mu.Unlock()
		return nil
	}
	_, _ = c.lru.Get(q.response.key) // it was used
	c.mu.Unlock()
	if !q.still() || !c.checked(q.response) {
		return nil
	}
	return q.response
}

// Remember lets Repeat answer a request with a response that Do returned for it. The body is copied. still is asked each time
// whether the request would lead to the same question again, however often what it names has changed meanwhile; it must not
// wait.
func (c *Cache) Remember(r *Response, form string, body []byte, still func() bool) {
	hash := maphash.Bytes(c.seed, body)
	size := int64(perRequest + 2*len(body)) // what still knows of it, too
	c.mu.Lock()
	defer c.mu.Unlock()
	key := requestKey{hash, r.key.Scope}
	if !r.kept || len(r.requests) == maxRequests || r.size+size > c.limit/share || c.requests[key] != nil {
		return
	}
	c.requests[key] = &request{form, bytes.Clone(body), still, r}
	r.requests = append(r.requests, key)
	r.size += size
	c.charge(size)
}
