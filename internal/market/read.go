package market

import (
	"sync/atomic"
	"time"
)

// Meta says where and when a value was read. It belongs to the value, not to the request that shows it.
type Meta struct {
	// AsOf is the venue's time of the value; zero when the venue gave none.
	AsOf time.Time
	// ReceivedAt is when this service got the value.
	ReceivedAt time.Time
	Source     Source
	// Stale tells that the value was past its fresh time when it was read.
	Stale bool
	// Handle stands for the cache entry that the value was read from; nil for values that were never cached.
	Handle *Handle
}

// Read is a value with its Meta. An absent value is the zero T (nil where T is a pointer) and has a Meta too.
type Read[T any] struct {
	Value T
	Meta
}

// Result is one element of an answer for several keys: a value or the error that it cost.
type Result[T any] struct {
	Value T
	Err   error
}

// LeftOut holds an Error for each row that the venue sent in a list and that could not be read, so that the list is without
// it; the message says which row of the venue's answer it was. It is empty where the list is all that the venue sent, and
// belongs to the value, not to the request that shows it.
type LeftOut []error

// Combine returns the Meta of a value computed from values with the given ones: the oldest times, stale when one is.
func Combine(metas ...Meta) Meta {
	out := Meta{Source: SourceComputed}
	for _, m := range metas {
		if m.ReceivedAt.IsZero() {
			continue
		}
		out.Stale = out.Stale || m.Stale
		if out.ReceivedAt.IsZero() || m.ReceivedAt.Before(out.ReceivedAt) {
			out.ReceivedAt = m.ReceivedAt
		}
		if !m.AsOf.IsZero() && (out.AsOf.IsZero() || m.AsOf.Before(out.AsOf)) {
			out.AsOf = m.AsOf
		}
	}
	return out
}

// Handle lets whoever used a cache entry find out later, with one atomic load and no look-up, whether the entry still
// stands. An entry has one handle from its creation to its end, and an absent value has an entry too.
type Handle struct {
	version    atomic.Uint64
	freshUntil time.Time
	session    *Session
	age        Age
}

// NewHandle returns the handle of an entry that is fresh until the given instant.
func NewHandle(freshUntil time.Time) *Handle { return &Handle{freshUntil: freshUntil} }

// NewHandleOfAge is NewHandle for the entry of an answer whose age is known.
func NewHandleOfAge(freshUntil time.Time, age Age) *Handle {
	return &Handle{freshUntil: freshUntil, age: age}
}

// NewStreamHandle returns the handle of an entry that is fresh as long as the session that it was streamed in lasts.
func NewStreamHandle(s *Session) *Handle { return &Handle{session: s} }

// Version is 0 while the entry stands and grows when it is replaced, evicted or no longer live. It is safe for concurrent
// use.
func (h *Handle) Version() uint64 {
	v := h.version.Load()
	if h.session != nil {
		if _, ended := h.session.Ended(); ended {
			v++
		}
	}
	return v
}

// FreshUntil returns the instant until which the entry is fresh; ok is false where that is no matter of time, because the
// entry is streamed and Version tells.
func (h *Handle) FreshUntil() (at time.Time, ok bool) { return h.freshUntil, h.session == nil }

// Age returns how old the entry's answer may have been when it came. It is zero for a nil Handle and for streamed entries.
func (h *Handle) Age() Age {
	if h == nil {
		return Age{}
	}
	return h.age
}

// Invalidate notes that the entry was replaced, evicted or is no longer live. It is safe for concurrent use.
func (h *Handle) Invalidate() { h.version.Add(1) }

// Age is how old an answer of the venue may be, since caches lie between. The zero Age is of an answer that does not say.
type Age struct {
	// Known reports that the answer's header says how old it is.
	Known bool
	// Least and Most bound the time from when the venue made the answer to when the answer came.
	Least, Most time.Duration
	// Renewed is the time from then until a further call brings a newer answer; 0 where that is not known.
	Renewed time.Duration
}

// With returns the age of what was read by two calls.
func (a Age) With(b Age) Age {
	return Age{Known: a.Known || b.Known, Least: min(a.Least, b.Least), Most: max(a.Most, b.Most), Renewed: max(a.Renewed, b.Renewed)}
}

// Session is one unbroken time of the venue's stream. Values that were streamed in it point to it, so that the end of a
// connection makes all of them stale by one write. It is safe for concurrent use.
type Session struct{ ended atomic.Int64 }

// End makes everything that was streamed in the session stale, for good. Only the first end counts.
func (s *Session) End(at time.Time) { s.ended.CompareAndSwap(0, at.UnixNano()) }

// Ended returns when the session ended; ok is false while it lasts.
func (s *Session) Ended() (at time.Time, ok bool) {
	if ns := s.ended.Load(); ns != 0 {
		return time.Unix(0, ns), true
	}
	return time.Time{}, false
}
