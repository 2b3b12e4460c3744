package reads

import (
	"context"
	"sync/atomic"
	"time"
)

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
