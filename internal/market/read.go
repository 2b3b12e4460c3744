package market

import (
	"sync/atomic"
	"time"
)

// Meta describes where and when a value was read.
type Meta struct {
	// AsOf is the venue's timestamp of the value. It is zero if the venue sent no timestamp.
	AsOf time.Time
	// ReceivedAt is the time when this service received the value from the venue.
	ReceivedAt time.Time
	Source     Source
	// Stale reports whether the value was no longer fresh when it was read.
	Stale bool
	// Cause is why the value is stale. If Stale is false, Cause has no meaning.
	Cause StaleCause
	// Handle refers to the cache entry of the value. It is nil if the value has no cache entry.
	Handle *Handle
}

// MarkStale marks the value as stale.
func (m *Meta) MarkStale(cause StaleCause) { m.Stale, m.Cause = true, cause }

// StaleCause is why a value is stale.
type StaleCause uint8

// The causes, from the mildest to the most severe.
const (
	// CauseExpired means that a REST value is too old and is being refreshed.
	CauseExpired StaleCause = iota
	// CauseChanged means that the stream has announced a change that the REST API does not return yet.
	CauseChanged
	// CauseStreamDown means that the stream is disconnected, silent or resyncing.
	CauseStreamDown
	// CauseThrottled means that a rate limit of the venue or of this service prevents the refresh.
	CauseThrottled
	// CauseUpstreamDown means that the REST API does not answer, or answers with errors.
	CauseUpstreamDown
)

// CauseOf returns the StaleCause of a value whose refresh failed with err.
func CauseOf(err error) StaleCause {
	if CodeOf(err) == CodeRateLimited {
		return CauseThrottled
	}
	return CauseUpstreamDown
}

// Read is a value with its Meta. If the venue does not have the value, Value is the zero T, and Meta still describes the read.
type Read[T any] struct {
	Value T
	Meta
}

// Result is the result of a read for one of several keys: a value or an error.
type Result[T any] struct {
	Value T
	Err   error
}

// LeftOut contains the errors of the rows that are missing in a list because they could not be read. The message of an error says
// which row of the venue's response could not be read. After ten such errors, one last error says how many further rows could not
// be read.
type LeftOut []error

// Combine returns the Meta of a value that is computed from the values with the given Metas. The result has the oldest times of
// these Metas. If one of them is stale, the result is stale with the most severe cause. Combine ignores a Meta without ReceivedAt.
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

// Handle reports whether a cache entry is still valid, without a look-up in the cache. Each entry has one handle. An entry also has
// a handle if it records that the venue does not have the value.
type Handle struct {
	version    atomic.Uint64
	freshUntil time.Time
	session    *Session
}

// NewHandle returns the handle of an entry that is fresh until freshUntil.
func NewHandle(freshUntil time.Time) *Handle { return &Handle{freshUntil: freshUntil} }

// NewStreamHandle returns the handle of an entry that the stream updates during a session.
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

// FreshUntil returns the time until which the entry is fresh. ok is false for an entry that the stream updates. Such an entry is
// fresh while Version is 0.
func (h *Handle) FreshUntil() (at time.Time, ok bool) { return h.freshUntil, h.session == nil }

// Invalidate marks the entry as replaced, evicted or no longer live. It is safe for concurrent use.
func (h *Handle) Invalidate() { h.version.Add(1) }

// Session is the lifetime of one connection to the venue's stream. The handles of all values from the connection point to the
// Session, so that one call of End makes all these values stale. A Session is safe for concurrent use.
type Session struct{ ended atomic.Int64 }

// End records the end of the session. Only the first call has an effect.
func (s *Session) End(at time.Time) { s.ended.CompareAndSwap(0, at.UnixNano()) }

// Ended returns the time when the session ended. ok is false if the session has not ended.
func (s *Session) Ended() (at time.Time, ok bool) {
	if ns := s.ended.Load(); ns != 0 {
		return time.Unix(0, ns), true
	}
	return time.Time{}, false
}
