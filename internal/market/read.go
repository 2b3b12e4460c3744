package market

import (
	"context"
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

// Handle reports whether a cache entry still has the value that was read, without a look-up in the cache. If a refresh returns an
// equal value, the new entry gets the handle of the old one. An entry also has a handle if it records that the venue does not have
// the value. A Handle is safe for concurrent use.
type Handle struct {
	changed atomic.Bool
	session *Session // nil for a REST value
	// The times are in nanoseconds since 1970. askAt is the earliest time at which Due returns true.
	freshUntil, staleUntil, askAt atomic.Int64

	refresher Refresher
	key       any
}

// Refresher refreshes values in the background.
type Refresher interface {
	// RefreshKeys begins to fetch the values of keys, which are keys of SetRefresher. It does not wait.
	RefreshKeys(ctx context.Context, keys []any)
}

// NewHandle returns the handle of a REST value that is fresh until freshUntil.
func NewHandle(freshUntil time.Time) *Handle {
	h := &Handle{}
	h.Renew(freshUntil, freshUntil)
	return h
}

// NewStreamHandle returns the handle of an entry that the stream updates during a session.
func NewStreamHandle(s *Session) *Handle { return &Handle{session: s} }

// SetRefresher makes by responsible for the refresh of the value. It must be called before other goroutines know the handle.
func (h *Handle) SetRefresher(by Refresher, key any) { h.refresher, h.key = by, key }

// Renew sets the ends of the fresh and of the stale time of a REST value.
func (h *Handle) Renew(freshUntil, staleUntil time.Time) {
	h.freshUntil.Store(freshUntil.UnixNano())
	h.staleUntil.Store(staleUntil.UnixNano())
}

// Valid reports whether the entry has neither been replaced by another value nor evicted, and its stream session has not ended.
func (h *Handle) Valid() bool {
	if h.changed.Load() {
		return false
	}
	if h.session == nil {
		return true
	}
	_, ended := h.session.Ended()
	return !ended
}

// FreshUntil returns the time in nanoseconds since 1970 until which the value is fresh. It returns 0 for an entry that the stream
// updates. Such an entry is fresh while it is valid.
func (h *Handle) FreshUntil() int64 { return h.freshUntil.Load() }

// Usable reports whether a valid entry is fresh, or is stale and may be served while it is refreshed.
func (h *Handle) Usable(now time.Time) bool {
	return h.session != nil || now.UnixNano() < h.staleUntil.Load()
}

// RefreshPause is the least time between a failed refresh of a value and the next refresh. Without the pause, every read would call a
// failing venue.
const RefreshPause = time.Second

// Due reports whether the value is stale and the calling function must pass the handle to Refresh. After Due has returned true, it
// returns false until RefreshPause has passed.
func (h *Handle) Due(now time.Time) bool {
	at := now.UnixNano()
	if h.refresher == nil || at < h.freshUntil.Load() {
		return false
	}
	due := h.askAt.Load()
	return at >= due && h.askAt.CompareAndSwap(due, at+int64(RefreshPause))
}

// Refresh begins to refresh the values of handles for which Due has returned true. It does not wait.
func Refresh(ctx context.Context, handles []*Handle) {
	keys := make(map[Refresher][]any)
	for _, h := range handles {
		keys[h.refresher] = append(keys[h.refresher], h.key)
	}
	for by, keys := range keys {
		by.RefreshKeys(ctx, keys)
	}
}

// Invalidate marks the entry as replaced, evicted or no longer live.
func (h *Handle) Invalidate() { h.changed.Store(true) }

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
