package ratelimit

import (
	"cmp"
	"container/list"
	"maps"
	"sync"
	"time"

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

// margin is the fraction of each limit that a process leaves unused, but at least one call. The margin is needed because the venue
// may count a call earlier or later than this process does.
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
	// Record records public calls for the next process. It may be nil.
	Record Record
	// Sharing divides the limits among several processes. If Sharing.Ledger is nil, this process uses the limits alone.
	Sharing Sharing
	// Clock is the source of time. If it is nil, New uses the system clock.
	Clock market.Clock
}

// Budget admits calls to the venue. It is safe for concurrent use. Close stops its timers.
type Budget struct {
	cfg   Config
	clock market.Clock

	opened time.Time

	mu     sync.Mutex
	closed bool
	// coldUntil is the time until which a new window may use only its margin, unless processes share the window; see Inherit.
	coldUntil time.Time
	timers    sync.WaitGroup
	public    *window
	// families contains the windows of families by endpoint.
	families map[reqctx.Endpoint]*window
	// keys contains the windows of accepted credentials by scope, a hash of the credentials. recent lists the same windows, the most
	// recently used first.
	keys   map[string]*window
	recent list.List
	// If the venue refuses calls of a scope that has no window, heldUntil[scope] is the time at which the venue accepts calls of the
	// scope again.
	heldUntil map[string]time.Time
	// admitted counts the calls made in all windows since the start, and refused counts the refused reservations.
	admitted, refused uint64
}

// maxHeld bounds the size of Budget.heldUntil. An entry applies for at most five minutes (patience). Under usual limits, a process
// makes fewer than maxHeld calls in five minutes.
const maxHeld = 1024

// New returns a budget whose windows are empty. Inherit adds the calls of earlier processes.
func New(cfg Config) *Budget {
	cfg.Public, cfg.Key = cmp.Or(cfg.Public, DefaultPublic), cmp.Or(cfg.Key, DefaultKey)
	cfg.Queue, cfg.Scopes = cmp.Or(cfg.Queue, DefaultQueue), cmp.Or(cfg.Scopes, DefaultScopes)
	if cfg.Clock == nil {
		cfg.Clock = market.SystemClock{}
	}
	b := &Budget{cfg: cfg, clock: cfg.Clock, keys: make(map[string]*window), heldUntil: make(map[string]time.Time), opened: cfg.Clock.Now()}
	if s := cfg.Sharing; s.Ledger != nil {
		b.coldUntil = b.opened.Add(span + time.Second)
		if !s.SameScopes {
			b.cfg.Key = max(cfg.Key/s.Replicas, 1)
		}
	}
	b.public = newWindow(b, "", cfg.Public)
	b.openFamilies()
	return b
}

// Close refuses all waiting and later reservations. It returns when no timer runs any more.
func (b *Budget) Close() {
	b.mu.Lock()
	b.closed = true
	b.public.close()
	for _, w := range b.families {
		w.close()
	}
	for _, w := range b.keys {
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
	t := &reservation{budget: b, scope: req.Scope, deadline: req.Deadline, unlimited: req.Deadline.IsZero(), takes: req.Takes}
	if b.closed {
		t.refuse(errClosed)
		return t
	}
	t.window = b.windowOf(req.Scope, req.Endpoint)
	if err := b.heldError(req.Scope, b.clock.Now()); err != nil {
		b.refused++
		t.refuse(err)
		return t
	}
	t.window.register(t, req)
	return t
}

// windowOf returns the window that counts the calls of a scope to an endpoint. The venue counts calls with invalid credentials as
// public calls. So until the venue has accepted credentials, calls with these credentials count in the public window or in a
// family's window.
func (b *Budget) windowOf(scope string, endpoint reqctx.Endpoint) *window {
	if w := b.keys[scope]; w != nil {
		b.recent.MoveToFront(w.element)
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
	return b.keys[t.scope]
}

// hold records until when the venue refuses calls of a scope that has no window.
func (b *Budget) hold(scope string, until, now time.Time) {
	if len(b.heldUntil) >= maxHeld {
		maps.DeleteFunc(b.heldUntil, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	until = market.Earlier(until, now.Add(patience))
	if old, known := b.heldUntil[scope]; until.After(old) && (known || len(b.heldUntil) < maxHeld) {
		b.heldUntil[scope] = until
	}
}

// heldError returns an error while the venue refuses calls of a scope that has no window, and nil otherwise.
func (b *Budget) heldError(scope string, now time.Time) error {
	until, known := b.heldUntil[scope]
	if wait := until.Sub(now); known && wait > 0 {
		return reqctx.RateLimited(wait)
	}
	delete(b.heldUntil, scope)
	return nil
}

// accept opens a window for credentials that the venue has accepted. If there are already Config.Scopes windows, the new window
// replaces the least recently used window. But if the least recently used window still contains calls or reservations, accept does
// nothing.
func (b *Budget) accept(scope string, now time.Time) {
	if scope == "" || b.keys[scope] != nil || b.closed {
		return
	}
	if len(b.keys) >= b.cfg.Scopes {
		oldest := b.recent.Back().Value.(*window)
		if oldest.expire(now); oldest.used()+oldest.waiting > 0 {
			return
		}
		oldest.close()
		b.recent.Remove(oldest.element)
		delete(b.keys, oldest.scope)
	}
	w := newWindow(b, scope, b.cfg.Key)
	w.element = b.recent.PushFront(w)
	b.keys[scope] = w
	if until := b.heldUntil[scope]; until.After(now) {
		w.throttle(until, now)
	}
	delete(b.heldUntil, scope)
}

// Left returns the smallest free fraction, from 0 to 1, of the public window and the windows of families. The fraction is 0 for a
// window whose calls the venue refuses.
func (b *Budget) Left() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	left := b.public.freeFraction(now)
	for _, w := range b.families {
		left = min(left, w.freeFraction(now))
	}
	return left
}

// Status is the state of a budget.
type Status struct {
	// Limit is the number of public calls that are presently allowed in any 60 seconds. Left is the number of public calls that can be
	// made now.
	Limit, Left int
	// ThrottledUntil is the earliest time at which a public call can be sent. If a public call can be sent at once, ThrottledUntil is
	// the zero time. If the venue refuses calls to a family until a later time, ThrottledUntil is that later time.
	ThrottledUntil time.Time
	// Throttled is the total time since the start for which public calls were blocked after a 429. If several processes share the
	// limit, a process also pauses after the venue has reported fewer remaining calls than the margin. Throttled includes these
	// pauses.
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
	s := Status{Limit: w.limit, Left: max(w.free(), 0), Scopes: len(b.keys), Throttled: w.throttledFor(now), Admitted: b.admitted, Refused: b.refused}
	if w.throttledUntil.After(now) {
		s.Left = 0
	}
	if w.pool != nil {
		s.Shared = w.pool.status(w.used())
	}
	if opens := w.nextCallTime(now); opens.After(now) {
		s.ThrottledUntil = opens
	}
	count := func(w *window) {
		for p := range w.queue {
			s.Waiting[p] += len(w.queue[p])
		}
	}
	count(w)
	for _, family := range b.eachFamily() {
		count(family)
		if family.throttledUntil.After(now) {
			s.ThrottledUntil = market.Later(s.ThrottledUntil, family.throttledUntil)
		}
	}
	for _, key := range b.keys {
		count(key)
	}
	return s
}
