package cache

import (
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// TTL is the lifetime of an entry.
type TTL struct {
	// Fresh is the time for which an entry is served without a refresh. 0 means that the entry is never fresh.
	Fresh time.Duration
	// Stale is the time after Fresh for which an entry is served while it is refreshed.
	Stale time.Duration
}

// entry is a value or an absence. Only the atomic fields change once the entry is stored. The fields that every reader needs
// come first, so that they share a CPU cache line.
type entry[T any] struct {
	// used reports whether the entry was read since it was stored, or since an eviction last passed over it; see clockLRU.
	used atomic.Bool
	read market.Read[*T]
	// session is the session of a streamed value. cut is the time of the first gap in nanoseconds since 1970; 0 if there was none.
	// The stale time begins at the end of the session or at cut, whichever comes first.
	session    *market.Session
	cut        atomic.Int64
	freshUntil time.Time
	// polledAt is the time at which a read of the entry was last reported to the watcher, in nanoseconds since 1970.
	polledAt   atomic.Int64
	staleUntil time.Time
	// refreshAt is the earliest time of the next refresh, in nanoseconds since 1970.
	refreshAt atomic.Int64
	// failure is the cause of the last failed refresh, a market.StaleCause; 0 means that none has failed.
	failure atomic.Uint32
	// outdated reports that the value has changed at the venue. Such an entry is served only if the venue fails, or until
	// answersUntil.
	outdated bool
	// An outdated entry is served until answersUntil, because until then the venue's HTTP cache would return the same old value
	// again. If answersUntil is zero, there is no such time.
	answersUntil time.Time
	// bytes is the size of the entry with its key.
	bytes int
	// holdsUntil is the time until which older REST values do not replace a streamed value.
	holdsUntil time.Time
}

// times returns the ends of the entry's fresh and stale times. A streamed entry is fresh while its session is open.
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

// cause returns why the entry is stale.
func (e *entry[T]) cause() market.StaleCause {
	switch failure := market.StaleCause(e.failure.Load()); {
	case failure != 0:
		return failure
	case e.session != nil:
		return market.CauseStreamDown
	case e.outdated:
		return market.CauseChanged
	}
	return market.CauseExpired
}

// pollDue reports whether a read at the time at must be reported to the watcher. If so, it sets polledAt.
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

// live reports whether the entry is streamed, its session is open, and no gap has occurred.
func (e *entry[T]) live() bool {
	if e.session == nil || e.cut.Load() != 0 {
		return false
	}
	_, ended := e.session.Ended()
	return !ended
}
