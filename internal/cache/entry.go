package cache

import (
	"sync/atomic"
	"time"

	"oddsgraph/internal/reads"
)

// TTL is the lifetime of an entry.
type TTL struct {
	// Fresh is the time for which an entry is served without a refresh. If Fresh is 0, the entry is never fresh.
	Fresh time.Duration
	// Stale is the time after Fresh for which an entry is served while it is refreshed.
	Stale time.Duration
}

// entry is a value, or an absence if read.Value is nil. Only the atomic fields change once the entry is stored. The fields that
// every reader needs come first, so that they share a CPU cache line.
type entry[T any] struct {
	read reads.Value[*T]
	// session is the stream session of a streamed entry; it is nil for an entry from a REST response. cut is the first time at
	// which the stream may have missed a message about the value, in nanoseconds since 1970, or 0. The fresh time of a streamed
	// value ends at cut or at the end of the session, whichever comes first.
	session    *reads.Session
	cut        atomic.Int64
	freshUntil time.Time
	// polledAt is the time at which a read of the entry was last reported to the watcher, in nanoseconds since 1970.
	polledAt   atomic.Int64
	staleUntil time.Time
	// refreshAt is the earliest time of the next refresh, in nanoseconds since 1970. While a refresh runs, refreshAt is the constant
	// never.
	refreshAt atomic.Int64
	// failure is the reads.StaleCause of the last failed refresh, or 0.
	failure atomic.Uint32
	// renewed reports that another entry has the handle, because a refresh returned an equal value.
	renewed atomic.Bool
	// outdated reports that the value has changed, or may have changed, at the venue. Such an entry is served only if the venue fails,
	// or until answersUntil.
	outdated bool
	// answersUntil is the time before which no new call is made, because the last response contradicted the stream. It is the zero time
	// if a new call may return a newer value at once.
	answersUntil time.Time
	// bytes is the size of the entry with its key.
	bytes int
	// holdsUntil is set if the entry has no session, but keeps a streamed value because the last REST value was older. Until
	// holdsUntil, older REST values do not replace the streamed value.
	holdsUntil time.Time
}

// times returns the ends of the entry's fresh and stale times. A streamed entry is fresh while its session is open and cut is 0.
// For such an entry, times returns a fresh time that ends a second after now.
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
func (e *entry[T]) cause() reads.StaleCause {
	switch failure := reads.StaleCause(e.failure.Load()); {
	case failure != 0:
		return failure
	case e.session != nil:
		return reads.CauseStreamDown
	case e.outdated:
		return reads.CauseChanged
	}
	return reads.CauseExpired
}

// pollDue reports whether a read at the given time must be reported to the Watcher. If so, it sets polledAt. The time is in
// nanoseconds since 1970.
func (e *entry[T]) pollDue(at int64) bool {
	before := e.polledAt.Load()
	return at-before >= pollInterval && e.polledAt.CompareAndSwap(before, at)
}

func (e *entry[T]) size() int { return e.bytes }

func (e *entry[T]) leave() {
	if !e.renewed.Load() {
		e.read.Handle.Invalidate()
	}
}

// live reports whether the entry is streamed, its session is open, and the stream has not missed a message about the value.
func (e *entry[T]) live() bool {
	if e.session == nil || e.cut.Load() != 0 {
		return false
	}
	_, ended := e.session.Ended()
	return !ended
}
