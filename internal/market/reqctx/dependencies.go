package reqctx

import (
	"context"
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market"
)

// Dependencies collects what one response was built from: the handles of all cache entries that it read, and everything else
// that can change the answer to the same request. It is safe for concurrent use. A nil Dependencies ignores everything.
type Dependencies struct {
	mu sync.Mutex
	// handles may contain duplicates. It starts in first, which is enough for a small response.
	handles []*market.Handle
	first   [8]*market.Handle
	until   time.Time
	// personal is set if the response may depend on the caller, unknown if something was read without a handle.
	personal, unknown bool
	// account is set if account data are read, answered if the venue has sent some.
	account, answered bool
}

// Record adds the handle of a cache entry that was read. A nil handle is for a failed read or a value without an entry. The
// result of such a read may change at any time, so Snapshot fails from then on.
func (d *Dependencies) Record(h *market.Handle) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grow(1)
	d.record(h)
}

// RecordAll adds the handles of all results under one lock.
func RecordAll[T any](d *Dependencies, results []market.Result[market.Read[T]]) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grow(len(results))
	for i := range results {
		d.record(results[i].Value.Handle)
	}
}

// grow makes room for n more handles. The caller holds the lock.
func (d *Dependencies) grow(n int) {
	if d.handles == nil {
		d.handles = d.first[:0]
	}
	d.handles = slices.Grow(d.handles, n)
}

// record adds a handle without allocating. The caller holds the lock and has called grow.
func (d *Dependencies) record(h *market.Handle) {
	if h == nil {
		d.unknown = true
		return
	}
	d.handles = append(d.handles, h)
}

// Until notes that the response changes at an instant even if nothing is replaced. The earliest instant wins.
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

// ReadAccount notes that account data are read with the caller's credentials.
func (d *Dependencies) ReadAccount() {
	if d != nil {
		d.set(&d.account)
	}
}

// ReadsAccount reports whether ReadAccount was called.
func (d *Dependencies) ReadsAccount() bool { return d != nil && d.isSet(&d.account) }

// AnswerAccount notes that the venue has sent account data, so it accepts the caller's credentials.
func (d *Dependencies) AnswerAccount() {
	if d != nil {
		d.set(&d.answered)
	}
}

// AnsweredAccount reports whether AnswerAccount was called.
func (d *Dependencies) AnsweredAccount() bool { return d != nil && d.isSet(&d.answered) }

// markPersonal notes that the caller's identity was read.
func (d *Dependencies) markPersonal() {
	if d != nil {
		d.set(&d.personal)
	}
}

func (d *Dependencies) set(flag *bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*flag = true
}

func (d *Dependencies) isSet(flag *bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *flag
}

// Handles returns the distinct handles so far, in no order.
func (d *Dependencies) Handles() []*market.Handle {
	s, _ := d.Snapshot()
	return s.Handles
}

// Snapshot is what a response depends on. The same request of the same caller has the same answer while all handles are
// valid and fresh and Until has not passed.
type Snapshot struct {
	// Handles are distinct and in no order.
	Handles []*market.Handle
	// Until is when the response changes by time alone; zero if it does not.
	Until time.Time
	// Personal reports that the response may depend on the caller's credentials or their absence.
	Personal bool
}

// Snapshot returns the dependencies so far. ok is false if something was read without a handle, and for a nil Dependencies.
func (d *Dependencies) Snapshot() (s Snapshot, ok bool) {
	if d == nil {
		return s, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s = Snapshot{Handles: make([]*market.Handle, 0, len(d.handles)), Until: d.until, Personal: d.personal}
	known := make(map[*market.Handle]bool, len(d.handles))
	for _, h := range d.handles {
		if !known[h] {
			known[h] = true
			s.Handles = append(s.Handles, h)
		}
	}
	return s, !d.unknown
}

// ResponseContext is the context of one response and the response's dependencies, in one allocation. All its reads are one
// poll, however many values of a token they read. Init must be called first.
type ResponseContext struct {
	valuesContext
	Dependencies Dependencies
}

// Init derives the context from ctx.
func (r *ResponseContext) Init(ctx context.Context) {
	r.valuesContext = derive(ctx)
	r.dependencies, r.poll = &r.Dependencies, polls.Add(1)
}

// WithDependencies returns a context whose reads are recorded, and the dependencies that they are recorded in.
func WithDependencies(ctx context.Context) (context.Context, *Dependencies) {
	r := &ResponseContext{}
	r.Init(ctx)
	return r, &r.Dependencies
}
