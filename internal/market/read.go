package market

import (
	"sync/atomic"
	"time"
)

// Meta describes where and when a value was read. All requests that return the value share its Meta.
type Meta struct {
	// AsOf is the venue's timestamp of the value; zero if the venue sent none.
	AsOf time.Time
	// ReceivedAt is the time at which this service received the value.
	ReceivedAt time.Time
	Source     Source
	// Stale reports whether the value was no longer fresh when it was read.
	Stale bool
	// Cause is why the value is stale. It has no meaning unless Stale is set.
	Cause StaleCause
	// Handle refers to the cache entry of the value; nil for a value that was never cached.
	Handle *Handle
}

// MarkStale marks the value as stale.
func (m *Meta) MarkStale(cause StaleCause) { m.Stale, m.Cause = true, cause }

// StaleCause is why a value is stale.
type StaleCause uint8

// The causes, from the mildest to the most severe.
const (
	// CauseExpired is the age of a REST value that is being refreshed.
	CauseExpired StaleCause = iota
	// CauseChanged is a change that the stream has announced and that REST does not return yet.
	CauseChanged
	// CauseStreamDown is a stream that is disconnected, silent or resyncing.
	CauseStreamDown
	// CauseThrottled is a rate limit, of the venue or of this service.
	CauseThrottled
	// CauseUpstreamDown is a REST API that does not answer, or answers with errors.
	CauseUpstreamDown
)

// CauseOf returns why a value is stale if its refresh failed with err.
func CauseOf(err error) StaleCause {
	if CodeOf(err) == CodeRateLimited {
		return CauseThrottled
	}
	return CauseUpstreamDown
}

// Read is a value with its Meta. An absent value is the zero T, such as nil, and has a Meta, too.
type Read[T any] struct {
	Value T
	Meta
}

// Result is the result of a read for one of several keys: a value or an error.
type Result[T any] struct {
	Value T
	Err   error
}

// LeftOut contains an error for each row that a list lacks because the row could not be read. Each message contains the number
// of the row in the venue's response. After ten rows, one last error contains the number of further rows.
type LeftOut []error

// Combine returns the Meta of a value that is computed from other values. It contains the oldest times of metas. If any of metas is
// stale, the result is stale with the most severe of their causes. A Meta without ReceivedAt is ignored.
func Combine(metas ...Meta) Meta {
	out := Meta{Source: SourceComputed}
	for _, m := range metas {
		if m.ReceivedAt.IsZero() {
			continue
		}
		if m.Stale {
			out.MarkStale(max(out.Cause, m.Cause))
		}
		if out.ReceivedAt.IsZero() || m.ReceivedAt.Before(out.ReceivedAt) {
			out.ReceivedAt = m.ReceivedAt
		}
		if !m.AsOf.IsZero() && (out.AsOf.IsZero() || m.AsOf.Before(out.AsOf)) {
			out.AsOf = m.AsOf
		}
	}
	return out
}

// Handle reports whether a cache entry is still valid, with one atomic load and no look-up. Each entry has one handle. Cached
// absences are entries, too.
type Handle struct {
	version    atomic.Uint64
	freshUntil time.Time
	session    *Session
	age        Age
}

// NewHandle returns the handle of an entry that is fresh until freshUntil.
func NewHandle(freshUntil time.Time) *Handle { return &Handle{freshUntil: freshUntil} }

// NewHandleOfAge is like NewHandle, for an entry whose response may have been old on arrival.
func NewHandleOfAge(freshUntil time.Time, age Age) *Handle {
	return &Handle{freshUntil: freshUntil, age: age}
}

// NewStreamHandle returns the handle of a streamed entry, which is fresh until its session ends.
func NewStreamHandle(s *Session) *Handle { return &Handle{session: s} }

// Version returns 0 while the entry is valid. The version increases when the entry is replaced or evicted, and when its stream
// session ends. Version is safe for concurrent use.
func (h *Handle) Version() uint64 {
	v := h.version.Load()
	if h.session != nil {
		if _, ended := h.session.Ended(); ended {
			v++
		}
	}
	return v
}

// FreshUntil returns the time until which the entry is fresh. ok is false for a streamed entry, which is fresh while Version is
// 0.
func (h *Handle) FreshUntil() (at time.Time, ok bool) { return h.freshUntil, h.session == nil }

// Age returns the age of the entry's response on arrival. It is zero for a nil Handle and for streamed entries.
func (h *Handle) Age() Age {
	if h == nil {
		return Age{}
	}
	return h.age
}

// Invalidate marks the entry as replaced, evicted or no longer live. It is safe for concurrent use.
func (h *Handle) Invalidate() { h.version.Add(1) }

// Age bounds the age that a response had on arrival. A response from an HTTP cache was made some time before its arrival. The zero
// Age means that the response had no headers of a cache.
type Age struct {
	// Known reports whether a header contains the age.
	Known bool
	// Least and Most bound the time between the creation of the response and its arrival.
	Least, Most time.Duration
	// Renewed is the wait after the arrival until another call can return a newer response; 0 means unknown.
	Renewed time.Duration
}

// With returns the age of a value that was read with two calls.
func (a Age) With(b Age) Age {
	return Age{Known: a.Known || b.Known, Least: min(a.Least, b.Least), Most: max(a.Most, b.Most), Renewed: max(a.Renewed, b.Renewed)}
}

// Session is the lifetime of one connection to the venue's stream. All values of the connection point to it, so that one write
// makes all of them stale. It is safe for concurrent use.
type Session struct{ ended atomic.Int64 }

// End makes all values of the session stale. Only the first call has an effect.
func (s *Session) End(at time.Time) { s.ended.CompareAndSwap(0, at.UnixNano()) }

// Ended returns the time at which the session ended. ok is false if the session has not ended.
func (s *Session) Ended() (at time.Time, ok bool) {
	if ns := s.ended.Load(); ns != 0 {
		return time.Unix(0, ns), true
	}
	return time.Time{}, false
}
