package respcache

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reqctx"
)

// Response is the bytes that answer a request. It is shared: nothing in it may be changed. Its methods are safe for concurrent
// use.
type Response struct {
	// Body is the response as it is sent, not compressed.
	Body []byte
	// Note is whatever the caller wants to find beside the body. Beside is how many bytes it takes; both are set before Do returns.
	Note   any
	Beside int

	// handles and deadline are what the response rests on. rests is false where that is not known, as with a read that failed.
	handles  []*market.Handle
	deadline time.Time // zero where there is none
	personal bool
	rests    bool

	cache *Cache
	coded [len(codings)]coded

	// kept tells that the response can be found under key. size is what it takes, in bytes, and requests are those that lead
	// to it at once. The cache's lock protects them.
	kept     bool
	key      Key
	size     int64
	requests []requestKey
}

// NewResponse returns a response that rests on what was recorded, and takes over its body. The recorder must be nil for a response
// that may be different the next time, such as one with an error of the venue.
func NewResponse(body []byte, note any, recorder *reqctx.Dependencies) *Response {
	r := &Response{Body: body, Note: note}
	basis, ok := recorder.Snapshot()
	if !ok {
		return r
	}
	r.rests, r.handles, r.deadline, r.personal = true, basis.Handles, basis.Until, basis.Personal
	for _, h := range r.handles {
		if at, ok := h.FreshUntil(); ok {
			r.before(at)
		}
	}
	return r
}

// before moves the deadline to an instant that is earlier.
func (r *Response) before(at time.Time) {
	if r.deadline.IsZero() || at.Before(r.deadline) {
		r.deadline = at
	}
}

// stands reports whether an execution would give the same now.
func (r *Response) stands(now time.Time) bool {
	if !r.rests || !r.deadline.IsZero() && !now.Before(r.deadline) {
		return false
	}
	for _, h := range r.handles {
		if h.Version() != 0 {
			return false
		}
	}
	return true
}

// codings are the content codings that a response is kept in beside itself.
var codings = [...]string{"zstd", "br", "gzip"}

// coded is a body in one coding, made when it is first wanted.
type coded struct {
	once sync.Once
	body atomic.Pointer[[]byte]
}

// Encoded returns the body in a content coding, which must be zstd, br or gzip. It is made once.
func (r *Response) Encoded(coding string) []byte {
	c := &r.coded[slices.Index(codings[:], coding)]
	if body := c.body.Load(); body != nil {
		return *body
	}
	c.once.Do(func() {
		body := r.cache.encode(r.Body, coding)
		c.body.Store(&body)
		r.cache.grow(r, int64(cap(body)))
	})
	return *c.body.Load()
}
