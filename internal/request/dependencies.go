package request

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// Dependencies collects everything on which one response depends: the handles of all cache entries that were read, the client, and
// the time. Dependencies is safe for concurrent use. A nil Dependencies records nothing.
type Dependencies struct {
	// mu guards the fields up to stale. grow and record are called with it held.
	mu sync.Mutex
	// handles may contain duplicates. Up to 8 handles are stored in first, which saves an allocation.
	handles []*reads.Handle
	first   [8]*reads.Handle
	until   time.Time
	// freshUntil is the earliest end of the fresh times of all values that were fresh when they were read, in nanoseconds since 1970.
	// renewals is the sum of the ends of all fresh times.
	freshUntil, renewals int64
	// unknown reports that a nil handle was recorded, and stale that a stale value was read.
	unknown, stale bool

	// personal reports that the response may depend on the client.
	personal atomic.Bool
	// answered is the account whose data the venue has sent, or nil.
	answered atomic.Pointer[market.Address]
}

// Record adds the handle of a cache entry that was read. h is nil if the read failed or the value has no cache entry. The result of
// such a read may change at any time, so all later calls of Snapshot return ok = false.
func (d *Dependencies) Record(h *reads.Handle) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grow(1)
	d.record(&reads.Meta{Handle: h})
}

// RecordAll adds the handles of all results under one lock, and notes stale values.
func RecordAll[T any](d *Dependencies, results []reads.Result[T]) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grow(len(results))
	for i := range results {
		d.record(&results[i].Value.Meta)
	}
}

func (d *Dependencies) grow(n int) {
	if d.handles == nil {
		d.handles = d.first[:0]
	}
	d.handles = slices.Grow(d.handles, n)
}

// record adds a handle without allocating. It is called after grow.
func (d *Dependencies) record(m *reads.Meta) {
	if m.Handle == nil {
		d.unknown = true
		return
	}
	d.handles = append(d.handles, m.Handle)
	at := m.Handle.FreshUntil()
	d.renewals += at
	if m.Stale {
		d.stale = true
	} else if at != 0 && (d.freshUntil == 0 || at < d.freshUntil) {
		d.freshUntil = at
	}
}

// Until records that the response changes at the given time even if no cache entry is replaced. The earliest of all recorded times
// counts.
func (d *Dependencies) Until(at time.Time) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until.IsZero() || at.Before(d.until) {
		d.until = at
	}
}

// AnswerAccount records that the venue has sent data of an account and thus accepts the client's credentials.
func (d *Dependencies) AnswerAccount(a market.Address) {
	if d != nil {
		d.answered.Store(&a)
	}
}

// AnsweredAccount returns the account of the last AnswerAccount. ok is false if there was none.
func (d *Dependencies) AnsweredAccount() (a market.Address, ok bool) {
	if d == nil {
		return "", false
	}
	answered := d.answered.Load()
	if answered == nil {
		return "", false
	}
	return *answered, true
}

func (d *Dependencies) markPersonal() {
	if d != nil {
		d.personal.Store(true)
	}
}

// Snapshot lists what a response depends on. The same request of the same client gets an equal response while all Handles are valid
// and usable and the time Until has not passed. A response that shows when its values were read also changes with each refresh.
type Snapshot struct {
	// Handles contains a handle twice only if a loader has read a value again, such as a deeper order book.
	Handles []*reads.Handle
	// Until is the time when the response changes even if no value changes, such as the end of the day. It is zero if there is no such
	// time. FreshUntil is the time when the first value that was fresh is no longer fresh, or zero.
	Until, FreshUntil time.Time
	// Renewals is the sum of FreshUntil of all handles. Each refresh changes it.
	Renewals int64
	// Stale reports that a stale value was read.
	Stale bool
	// Personal reports that the response may depend on the client's credentials or their absence.
	Personal bool
}

// Snapshot returns the dependencies that were recorded so far. ok is false if a nil handle was recorded, or if d is nil.
func (d *Dependencies) Snapshot() (s Snapshot, ok bool) {
	if d == nil {
		return s, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s = Snapshot{Handles: slices.Clone(d.handles), Until: d.until, Renewals: d.renewals, Stale: d.stale, Personal: d.personal.Load()}
	if d.freshUntil != 0 {
		s.FreshUntil = time.Unix(0, d.freshUntil)
	}
	return s, !d.unknown
}
