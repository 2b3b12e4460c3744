package respcache

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// Response is the response to a request. Callers share it and must not change it. It is safe for concurrent use.
type Response struct {
	// Body is the response without a content coding.
	Body []byte
	// Note is any data that the caller of Do wants to keep with the response. It is set before Do returns.
	Note any
	// NoteBytes is the size of Note in bytes. It is set before Do returns.
	NoteBytes int

	// handles and deadline determine how long the response is valid.
	handles  []*market.Handle
	deadline time.Time // zero if there is no deadline
	personal bool
	// stale reports that the response has stale values; see staleAge.
	stale bool
	// known is false if it is not known how long the response is valid, for example after a failed read.
	known bool

	cache *Cache
	coded [len(codings)]coded

	// stored reports whether the response is in the cache under key. The cache's lock guards this field and the following fields.
	stored   bool
	key      Key
	size     int64
	requests []requestKey
}

// NewResponse returns a response that is valid while the recorded values are valid. The caller must not use body afterwards.
// recorder contains the recorded values. It must be nil if another execution may return something else, for example after an error
// of the venue.
func NewResponse(body []byte, note any, recorder *reqctx.Dependencies) *Response {
	r := &Response{Body: body, Note: note}
	basis, ok := recorder.Snapshot()
	if !ok {
		return r
	}
	r.known, r.handles, r.deadline, r.stale, r.personal = true, basis.Handles, basis.Until, basis.Stale, basis.Personal
	return r
}

// limit sets r.deadline to deadline, unless r.deadline is earlier.
func (r *Response) limit(deadline time.Time) {
	if r.deadline.IsZero() || deadline.Before(r.deadline) {
		r.deadline = deadline
	}
}

func (r *Response) valid(now time.Time) bool {
	if !r.known || !r.deadline.IsZero() && !now.Before(r.deadline) {
		return false
	}
	for _, h := range r.handles {
		if h.Version() != 0 {
			return false
		}
	}
	return true
}

var codings = [...]string{"zstd", "br", "gzip"}

// coded is a body in one content coding. It is encoded on first use.
type coded struct {
	once sync.Once
	body atomic.Pointer[[]byte]
}

// Encoded returns the body in a content coding, which must be zstd, br or gzip. The body is encoded once for each coding.
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
