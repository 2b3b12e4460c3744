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

// margin is the part of a limit that is left alone, for what counts differently on the way to the venue.
const margin = 0.05

// Usable returns how many calls are made where the venue allows so many.
func Usable(limit int) int { return max(limit-max(int(float64(limit)*margin), 1), 1) }

// Config says what the venue allows. The zero value of a field means its default.
type Config struct {
	// Public and Key are the calls in any 60 seconds that the venue allows an address and a set of credentials. A
	// twentieth of them is left alone.
	Public, Key int
	// Queue is the greatest number of calls that wait in one window.
	Queue int
	// Scopes is the greatest number of credentials with a window of their own. Further ones share that of the public calls.
	Scopes int
	// Record notes public calls for the next process; nil is none.
	Record Record
	// Sharing makes this process one of several that keep to the limits together. Without a Ledger it is alone.
	Sharing Sharing
	// Clock tells the time; nil means the wall clock.
	Clock market.Clock
}

// Budget admits calls to the venue. It is safe for concurrent use. Close it to stop its timers.
type Budget struct {
	cfg   Config
	clock market.Clock

	opened time.Time

	mu     sync.Mutex
	closed bool
	// cold is until when a new window has its reserve only; see Inherit.
	cold   time.Time
	timers sync.WaitGroup
	public *window
	// keys holds the windows of accepted credentials, recent the same with those used last in front.
	keys   map[string]*window
	recent list.List
	// heldUntil is until when the venue wants no calls with credentials that have no window.
	heldUntil map[string]time.Time
	// admitted and refused count calls in all windows, also in those that are forgotten.
	admitted, refused uint64
}

// maxHeld bounds Budget.heldUntil; calls are let through too rarely for that many refusals within patience.
const maxHeld = 1024

// New returns an unspent budget; see Inherit.
func New(cfg Config) *Budget {
	cfg.Public, cfg.Key = cmp.Or(cfg.Public, DefaultPublic), cmp.Or(cfg.Key, DefaultKey)
	cfg.Queue, cfg.Scopes = cmp.Or(cfg.Queue, DefaultQueue), cmp.Or(cfg.Scopes, DefaultScopes)
	if cfg.Clock == nil {
		cfg.Clock = market.SystemClock{}
	}
	b := &Budget{cfg: cfg, clock: cfg.Clock, keys: make(map[string]*window), heldUntil: make(map[string]time.Time), opened: cfg.Clock.Now()}
	if s := cfg.Sharing; s.Ledger != nil {
		b.cold = b.opened.Add(span + time.Second)
		if !s.Keys {
			b.cfg.Key = max(cfg.Key/s.Replicas, 1)
		}
	}
	b.public = newWindow(b, "", cfg.Public)
	return b
}

// Close refuses all who wait and all who come later, and waits for the timers.
func (b *Budget) Close() {
	b.mu.Lock()
	b.closed = true
	b.public.close()
	for _, w := range b.keys {
		w.close()
	}
	b.mu.Unlock()
	b.timers.Wait()
}

var errClosed error = market.Errorf(market.CodeUpstreamUnavailable, "the service is shutting down")

// Reserve asks for one call. It never waits: the reservation that it returns is admitted, refused, or waits for its turn. The
// holder releases it.
func (b *Budget) Reserve(req reqctx.CallRequest) reqctx.Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &reservation{budget: b, scope: req.Scope, deadline: req.Deadline, unlimited: req.Deadline.IsZero(), takes: req.Takes}
	if b.closed {
		t.refuse(errClosed)
		return t
	}
	t.window = b.windowOf(req.Scope)
	if err := b.heldError(req.Scope, b.clock.Now()); err != nil {
		b.refused++
		t.refuse(err)
		return t
	}
	t.window.enter(t, req)
	return t
}

// windowOf returns the window that a scope's calls are counted in. Credentials that the venue has not accepted yet may be
// anything, so their calls are counted as public ones, as the venue does it.
func (b *Budget) windowOf(scope string) *window {
	if w := b.keys[scope]; w != nil {
		b.recent.MoveToFront(w.element)
		return w
	}
	return b.public
}

// windowFor returns the window that the venue's word on a call with a reservation's scope is about, nil where there is none. Calls
// with credentials that have no window are counted as public ones, but what the venue says may be about the credentials, of
// which their owner may have spent any number elsewhere: it must not be held against the others. If it was about the address,
// the next public call will show that.
func (b *Budget) windowFor(t *reservation) *window {
	if t.scope == t.window.scope {
		return t.window
	}
	return b.keys[t.scope]
}

// hold remembers that the venue wants no calls with credentials that have no window.
func (b *Budget) hold(scope string, until, now time.Time) {
	if len(b.heldUntil) >= maxHeld {
		maps.DeleteFunc(b.heldUntil, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	until = earlier(until, now.Add(patience))
	if old, known := b.heldUntil[scope]; until.After(old) && (known || len(b.heldUntil) < maxHeld) {
		b.heldUntil[scope] = until
	}
}

// heldError returns why no call is made with credentials that have no window, or nil.
func (b *Budget) heldError(scope string, now time.Time) error {
	until, known := b.heldUntil[scope]
	if wait := until.Sub(now); known && wait > 0 {
		return reqctx.RateLimited(wait)
	}
	delete(b.heldUntil, scope)
	return nil
}

// accept gives credentials a window of their own. While as many as are remembered have calls in theirs, there is none.
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

// Left returns how much of the window of public calls is left, from 0 to 1; 0 while the venue wants no calls.
func (b *Budget) Left() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.public.left(b.clock.Now())
}

// Status is the state of a budget.
type Status struct {
	// Limit is the number of public calls allowed in any 60 seconds at present, Left those that are left of it.
	Limit, Left int
	// ThrottledUntil is until when no public call of anybody leaves, since the venue wants none or the limit is used up; the
	// zero time when they do. While calls that are under way use it up, it is the earliest time that is possible.
	ThrottledUntil time.Time
	// Throttled is for how long the venue has wanted no public calls since the start, by its own word.
	Throttled time.Duration
	// Waiting counts the calls that wait, by reqctx.Priority and in all windows.
	Waiting [reqctx.Priorities]int
	// Scopes is the number of credentials with a window of their own.
	Scopes int
	// Admitted counts the calls that were made since the start, Refused those that were not admitted in time.
	Admitted, Refused uint64
}

// Status returns the present state.
func (b *Budget) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	w := b.public
	w.expire(now)
	s := Status{Limit: w.limit, Left: max(w.free(), 0), Scopes: len(b.keys), Throttled: w.throttledFor(now), Admitted: b.admitted, Refused: b.refused}
	if w.throttled.After(now) {
		s.Left = 0
	}
	if opens := w.opens(now); opens.After(now) {
		s.ThrottledUntil = opens
	}
	count := func(w *window) {
		for p := range w.queue {
			s.Waiting[p] += len(w.queue[p])
		}
	}
	count(w)
	for _, key := range b.keys {
		count(key)
	}
	return s
}
