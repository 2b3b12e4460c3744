package ratelimit

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// The defaults of Config.
const (
	DefaultPublic = 100
	DefaultKey    = 300
	DefaultQueue  = 512
	DefaultScopes = 10_000
)

// margin is the fraction of each limit that is left unused, but at least one call. It is for other programs behind the same address,
// such as a developer's curl, and for calls that the venue counts earlier or later than this process does.
const margin = 0.05

// Usable returns the number of calls that this service makes under the venue's limit: the limit without its margin, but at least 1.
func Usable(limit int) int { return max(limit-max(int(float64(limit)*margin), 1), 1) }

// Config configures a Budget. If a number is 0, New uses its default.
type Config struct {
	// Public is the number of calls without credentials that the venue accepts from one IP address in any 60 seconds. Key is the
	// number of calls that the venue accepts with one set of credentials in any 60 seconds. The budget uses only the part of each
	// number that Usable returns.
	Public, Key int
	// Families are separate limits for some endpoints. Calls to these endpoints do not count against Public.
	Families []Family
	// Queue bounds the number of reservations that wait in one window.
	Queue int
	// Scopes bounds the number of windows for credentials. If all windows are in use, calls with further credentials count in the
	// public window or in the window of a family.
	Scopes int
	// Fresh is true if the venue started with this process, so that no other process has called it.
	Fresh bool
	// Sharing divides the limits among several processes. If Sharing.Ledger is nil, this process uses the limits alone.
	Sharing Sharing
	// Clock is the source of time. If it is nil, New uses the system clock. Rand returns a random number in [0,1). If it is nil, New
	// uses the package math/rand/v2.
	Clock market.Clock
	Rand  func() float64
}

// Budget admits calls to the venue. It is safe for concurrent use. Close stops its timers.
type Budget struct {
	cfg    Config
	clock  market.Clock
	opened time.Time
	timers sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// answered reports that the venue has answered a call of this process.
	answered bool
	// public is the window of the public calls. families contains the windows of families by endpoint.
	public   *window
	families map[reqctx.Endpoint]*window
	// keys contains the windows of accepted credentials by scope, a hash of the credentials. held contains scopes without a window
	// whose calls the venue refuses, with the time at which it accepts them again.
	keys *simplelru.LRU[string, *window]
	held *simplelru.LRU[string, time.Time]
	// admitted counts the calls made in all windows since the start, and refused counts the refused reservations.
	admitted, refused uint64
}

// maxHeld bounds the size of Budget.held. An entry applies for at most five minutes (patience). Under usual limits, a process makes
// fewer than maxHeld calls in five minutes.
const maxHeld = 1024

// New returns a budget without calls of this process.
func New(cfg Config) *Budget {
	cfg.Public, cfg.Key = cmp.Or(cfg.Public, DefaultPublic), cmp.Or(cfg.Key, DefaultKey)
	cfg.Queue, cfg.Scopes = cmp.Or(cfg.Queue, DefaultQueue), cmp.Or(cfg.Scopes, DefaultScopes)
	if cfg.Clock == nil {
		cfg.Clock = market.SystemClock{}
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	s := cfg.Sharing
	if s.Ledger != nil && !s.SameScopes {
		cfg.Key = max(cfg.Key/s.Replicas, 1)
	}
	b := &Budget{cfg: cfg, clock: cfg.Clock, opened: cfg.Clock.Now(), families: make(map[reqctx.Endpoint]*window)}
	b.keys, _ = simplelru.NewLRU[string, *window](cfg.Scopes, nil) // fails for sizes below 1
	b.held, _ = simplelru.NewLRU[string, time.Time](maxHeld, nil)
	b.public = b.open("", cfg.Public)
	for _, f := range cfg.Families {
		if s.Ledger != nil { // the ledger does not count calls to families
			f.Limit = max(f.Limit/s.Replicas, 1) // package app rejects a configuration with more replicas than calls
		}
		w := newWindow(b, "", f.Limit, f.Span+skew)
		for _, e := range f.Endpoints {
			b.families[e] = w
		}
	}
	return b
}

// open returns the window of the public calls or of a scope.
func (b *Budget) open(scope string, limit int) *window {
	w := newWindow(b, scope, limit, span)
	if s := b.cfg.Sharing; s.Ledger != nil && (scope == "" || s.SameScopes) && limit < unlimited {
		w.pool, w.others = &pool{Sharing: s, left: Usable(limit)}, others{}
	}
	return w
}

// windows returns all windows, the public window first.
func (b *Budget) windows() []*window {
	all := []*window{b.public}
	for _, w := range b.families {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return append(all, b.keys.Values()...)
}

// Close refuses all waiting and later reservations. It returns when no timer runs any more.
func (b *Budget) Close() {
	b.mu.Lock()
	b.closed = true
	for _, w := range b.windows() {
		w.close()
	}
	b.mu.Unlock()
	b.timers.Wait()
}

var errClosed error = market.Errorf(market.CodeUpstreamUnavailable, "the service is shutting down")

// Reserve reserves the first call of a read. It returns at once, even if the reservation waits in the queue. The calling function
// must release the reservation.
func (b *Budget) Reserve(req reqctx.CallRequest) reqctx.Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &reservation{budget: b, scope: req.Scope, deadline: req.Deadline, takes: req.Takes, endpoint: req.Endpoint}
	if b.closed {
		t.decide(errClosed)
		return t
	}
	t.window = b.windowOf(req.Scope, req.Endpoint)
	if err := b.heldError(req.Scope, b.clock.Now()); err != nil {
		b.refused++
		t.decide(err)
		return t
	}
	w, now := t.window, b.clock.Now()
	w.expire(now)
	w.arrivals++
	t.priority, t.caller, t.arrival = req.Priority, w.callerOf(req.Caller, now), w.arrivals
	w.add(t, now)
	return t
}

// windowOf returns the window that counts the calls of a scope to an endpoint. The venue counts calls with invalid credentials as
// public calls. So until the venue has accepted credentials, calls with these credentials count in the public window or in a
// family's window.
func (b *Budget) windowOf(scope string, endpoint reqctx.Endpoint) *window {
	if w, ok := b.keys.Get(scope); ok {
		return w
	}
	if w := b.families[endpoint]; w != nil {
		return w
	}
	return b.public
}

// windowFor returns the window to which the rate-limit headers or the 429 of a response apply, or nil. A call with credentials that
// have no window counts in the public window or in a family's window. But the response to such a call never adjusts that window,
// because the owner of the credentials may have used up their limit elsewhere. If the 429 concerns the IP address, the next call
// without credentials also gets a 429, and that 429 adjusts the window.
func (b *Budget) windowFor(t *reservation) *window {
	if t.scope == t.window.scope {
		return t.window
	}
	w, _ := b.keys.Peek(t.scope)
	return w
}

// hold records that the venue refuses calls of a scope that has no window. wait is the time that the venue asks for, or 0.
func (b *Budget) hold(scope string, wait time.Duration, now time.Time) {
	if wait <= 0 {
		wait = pauses.Wait(1, b.cfg.Rand())
	}
	until := now.Add(min(wait, patience))
	if old, _ := b.held.Peek(scope); until.After(old) {
		b.held.Add(scope, until)
	}
}

// heldError returns an error while the venue refuses calls of a scope that has no window, and nil otherwise.
func (b *Budget) heldError(scope string, now time.Time) error {
	if until, _ := b.held.Peek(scope); until.After(now) {
		return reqctx.RateLimited(until.Sub(now))
	}
	return nil
}

// accept opens a window for credentials that the venue has accepted. If there are already Config.Scopes windows, the new window
// replaces the least recently used window. But if the least recently used window still contains calls or reservations, accept does
// nothing.
func (b *Budget) accept(scope string, now time.Time) {
	if scope == "" || b.keys.Contains(scope) || b.closed {
		return
	}
	if _, oldest, _ := b.keys.GetOldest(); b.keys.Len() >= b.cfg.Scopes {
		if oldest.expire(now); oldest.used()+oldest.waiting > 0 {
			return
		}
		oldest.close()
	}
	w := b.open(scope, b.cfg.Key)
	b.keys.Add(scope, w)
	if until, ok := b.held.Peek(scope); ok {
		w.pause(until, now)
		b.held.Remove(scope)
	}
}

// Scarce reports whether a call of a scope to an endpoint would have to wait. Calls that are only assumed to have been made do not
// count.
func (b *Budget) Scarce(scope string, e reqctx.Endpoint) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.windowOf(scope, e).scarce(e, b.clock.Now())
}

// Status is the state of a budget.
type Status struct {
	// Limit is the number of public calls that are presently allowed in any 60 seconds. Left is the number of public calls that can be
	// made now.
	Limit, Left int
	// ThrottledUntil is the earliest time at which a public call can be sent. If a public call can be sent at once, ThrottledUntil is
	// the zero time. If the venue refuses calls to a family until a later time, ThrottledUntil is that later time.
	ThrottledUntil time.Time
	// Throttled is the total time since the start for which public calls paused after a 429. If several processes share the limit, a
	// process also pauses after the venue has reported fewer remaining calls than the margin. Throttled includes these pauses.
	Throttled time.Duration
	// Waiting is the number of waiting calls in all windows, by reqctx.Priority.
	Waiting [reqctx.Priorities]int
	// Scopes is the number of windows for credentials.
	Scopes int
	// Admitted is the number of calls made since the start. Refused is the number of reservations refused since the start.
	Admitted, Refused uint64
	// Shared is the state of the public limit if several processes share it, or nil.
	Shared *SharedStatus
}

// Status returns the present state.
func (b *Budget) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	w := b.public
	w.expire(now)
	s := Status{Limit: w.limit, Left: max(w.free(now), 0), Scopes: b.keys.Len(), Throttled: w.refusals.total(now), Admitted: b.admitted, Refused: b.refused}
	if w.refusals.until.After(now) {
		s.Left = 0
	}
	if w.pool != nil {
		p := w.pool
		s.Shared = &SharedStatus{Granted: w.used() - p.uncredited, Left: len(p.credits) + p.left, Part: p.part(w.limit), PartUsed: p.uncredited, Away: p.away}
	}
	if opens := w.nextCallTime(now); opens.After(now) {
		s.ThrottledUntil = opens
	}
	for _, w := range b.windows() {
		for p := range w.queue {
			s.Waiting[p] += len(w.queue[p])
		}
		if w.scope == "" && w != b.public && w.refusals.until.After(now) {
			s.ThrottledUntil = market.Later(s.ThrottledUntil, w.refusals.until)
		}
	}
	return s
}
