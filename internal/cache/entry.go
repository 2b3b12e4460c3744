package cache

import (
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// TTL is the lifetime of an entry.
type TTL struct {
	// Fresh is how long an entry is served without a refresh; 0 means never.
	Fresh time.Duration
	// Stale is how long after Fresh an entry is served while it is refreshed.
	Stale time.Duration
}

// entry is a value or an absence. It does not change once it is stored, except for the atomic fields. The fields that every reader needs
// come first, for locality.
type entry[T any] struct {
	// used reports that the entry was read, see clockLRU.
	used atomic.Bool
	read market.Read[*T]
	// session is the session of a streamed value. Its stale time begins when the session ends, or at cut.
	session    *market.Session
	cut        atomic.Int64
	freshUntil time.Time
	// polledAt is the time of the last report to the watcher, in nanoseconds since 1970.
	polledAt   atomic.Int64
	staleUntil time.Time
	// refreshAt is the earliest time of the next refresh, in nanoseconds since 1970.
	refreshAt atomic.Int64
	// outdated reports that the value has changed since. The entry is served only if the venue fails.
	outdated bool
	// answersUntil is the time until which an outdated entry is served, because the venue still returns the same value; zero means never.
	answersUntil time.Time
	// bytes is the size of the entry with its key.
	bytes int
	// holdsUntil is the time until which a streamed value wins over older REST values.
	holdsUntil time.Time
}

// times returns the ends of the entry's fresh and stale times. A streamed entry is fresh while its session lives.
func (e *entry[T]) times(now time.Time, ttl TTL) (freshUntil, staleUntil time.Time) {
	if e.session == nil {
		return e.freshUntil, e.staleUntil
	}
	end, ended := e.session.Ended()
	if cut := e.cut.Load(); cut != 0 && (!ended || cut < end.UnixNano()) {
		end, ended = time.Unix(0, cut), true
	}
	if !ended {
		end = now.Add(time.Second)
	}
	return end, end.Add(ttl.Stale)
}

// fresh reports whether the entry is fresh.
func (e *entry[T]) fresh(now time.Time) bool {
	if e.session != nil {
		return e.live()
	}
	return now.Before(e.freshUntil)
}

// pollDue reports whether a read at a time must be reported to the watcher, and sets polledAt if so.
func (e *entry[T]) pollDue(at int64) bool {
	before := e.polledAt.Load()
	return at-before >= pollInterval && e.polledAt.CompareAndSwap(before, at)
}

// markUsed marks the entry as read.
func (e *entry[T]) markUsed() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// live reports whether the entry is streamed and its session lives.
func (e *entry[T]) live() bool {
	if e.session == nil || e.cut.Load() != 0 {
		return false
	}
	_, ended := e.session.Ended()
	return !ended
}
