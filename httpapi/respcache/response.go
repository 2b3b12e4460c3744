package respcache

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// Response is the response to a request. Callers share it and must not change it. It is safe for concurrent use.
type Response struct {
	// Body is the response without a content coding.
	Body []byte
	// Note is any data that the caller of Do wants to keep with the response. It is set before Do returns.
	Note any
	// NoteBytes is the size of Note in bytes. It is set before Do returns.
	NoteBytes int

	// handles, deadline and renewals determine how long the response is valid. dated reports that the response shows when its values
	// were read. So it is valid only while none of them is refreshed, which would change the sum renewals.
	handles  []*reads.Handle
	deadline time.Time // zero if there is no deadline
	renewals int64
	dated    bool
	personal bool
	// stale reports that the response has stale values. late reports that one of them is too old to be served while it is refreshed,
	// and is served because the venue fails or a call would have to wait; see staleAge.
	stale, late bool
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
// of the venue. dated reports that the response shows when its values were read, or whether they are stale.
func NewResponse(body []byte, note any, recorder *request.Dependencies, dated bool) *Response {
	r := &Response{Body: body, Note: note}
	basis, ok := recorder.Snapshot()
	if !ok {
		return r
	}
	r.known, r.handles, r.deadline, r.renewals, r.stale, r.personal = true, basis.Handles, basis.Until, basis.Renewals, basis.Stale, basis.Personal
	if r.dated = dated; dated && !basis.FreshUntil.IsZero() {
		r.limit(basis.FreshUntil)
	}
	return r
}

// begin sets how long a response may be valid from now on.
func (r *Response) begin(now time.Time) {
	age := maxAge
	if r.late = r.stale && !r.usable(now); r.late || r.stale && r.dated {
		age = staleAge
	}
	r.limit(now.Add(age))
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
	renewals, anyAge := int64(0), r.dated || r.late
	for _, h := range r.handles {
		if !h.Valid() || !anyAge && !h.Usable(now) {
			return false
		}
		renewals += h.FreshUntil()
	}
	return !r.dated || renewals == r.renewals
}

// usable reports whether all values are fresh, or stale and may be served while they are refreshed.
func (r *Response) usable(now time.Time) bool {
	for _, h := range r.handles {
		if !h.Usable(now) {
			return false
		}
	}
	return true
}

// refresh begins to refresh the stale values of a valid response, as an execution would.
func (r *Response) refresh(ctx context.Context, now time.Time) {
	var due []*reads.Handle
	for _, h := range r.handles {
		if h.Due(now) {
			due = append(due, h)
		}
	}
	if due != nil {
		reads.Refresh(r.cache.reading(ctx), due)
	}
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
