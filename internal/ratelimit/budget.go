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

// margin is the unused part of a limit. It allows for the venue counting calls at other times than this process.
const margin = 0.05

// Usable returns how many calls a limit of the venue lets this service make.
func Usable(limit int) int { return max(limit-max(int(float64(limit)*margin), 1), 1) }

// Config configures a Budget. The zero value of a field means its default.
type Config struct {
	// Public is how many calls the venue allows an address in any 60 seconds, and Key how many it allows a set of credentials.
	// A twentieth of each is not used.
	Public, Key int
	// Queue bounds the calls that wait in one window.
	Queue int
	// Scopes bounds the credentials with a window of their own. Further credentials use the public window.
	Scopes int
	// Record records public calls for the next process. It may be nil.
	Record Record
	// Sharing makes this process one of several that keep to the limits together. Without a Ledger it is alone.
	Sharing Sharing
	// Clock is the source of time; nil means the wall clock.
	Clock market.Clock
}

// Budget admits calls to the venue. It is safe for concurrent use. Close it to stop its timers.
type Budget struct {
	cfg   Config
	clock market.Clock

	opened time.Time

	mu     sync.Mutex
	closed bool
	// Until cold, a new window has only its reserve; see Inherit.
	cold   time.Time
	timers sync.WaitGroup
	public *window
	// keys holds the windows of accepted credentials. recent holds the same windows, the latest used in front.
	keys   map[string]*window
	recent list.List
	// heldUntil is, for credentials without a window, when the venue accepts calls again.
	heldUntil map[string]time.Time
	// admitted and refused count calls in all windows, including closed ones.
	admitted, refused uint64
}

// maxHeld bounds Budget.heldUntil. Usual limits do not allow that many calls, so that many refusals, within patience.
const maxHeld = 1024

// New returns a budget without recorded calls; see Inherit.
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

// Close refuses waiting and later requests, and waits for the timers.
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

// Reserve requests one call. It never waits: the reservation that it returns is admitted, refused or in the queue. The caller
// must release the reservation.
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

// windowOf returns the window that counts a scope's calls. Credentials that the venue has not accepted may be invalid, so their
// calls count as public calls, as they do at the venue.
func (b *Budget) windowOf(scope string) *window {
	if w := b.keys[scope]; w != nil {
		b.recent.MoveToFront(w.element)
		return w
	}
	return b.public
}

// windowFor returns the window that an answer of the venue adjusts, or nil. Calls with credentials that have no window count as
// public calls, but their answer may concern the credentials, which their owner may also use elsewhere. So such an answer never
// adjusts the public window. If it concerned the address, the next public call shows that.
func (b *Budget) windowFor(t *reservation) *window {
	if t.scope == t.window.scope {
		return t.window
	}
	return b.keys[t.scope]
}

// hold records that the venue refuses calls with credentials that have no window.
func (b *Budget) hold(scope string, until, now time.Time) {
	if len(b.heldUntil) >= maxHeld {
		maps.DeleteFunc(b.heldUntil, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	until = earlier(until, now.Add(patience))
	if old, known := b.heldUntil[scope]; until.After(old) && (known || len(b.heldUntil) < maxHeld) {
		b.heldUntil[scope] = until
	}
}

// heldError returns an error if the venue refuses calls with credentials that have no window.
func (b *Budget) heldError(scope string, now time.Time) error {
	until, known := b.heldUntil[scope]
	if wait := until.Sub(now); known && wait > 0 {
		return reqctx.RateLimited(wait)
	}
	delete(b.heldUntil, scope)
	return nil
}

// accept gives credentials a window of their own. It closes the least recently used window if Scopes is reached, unless that
// window has calls. Then the credentials get none.
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

// Left returns the free part of the public window, from 0 to 1. It is 0 while the venue refuses calls.
func (b *Budget) Left() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.public.left(b.clock.Now())
}

// Status is the state of a budget.
type Status struct {
	// Limit is how many public calls are allowed in any 60 seconds at present, and Left how many of them are free.
	Limit, Left int
	// ThrottledUntil is when the next public call can leave. The zero time means now. With calls in flight it is the earliest
	// possible time.
	ThrottledUntil time.Time
	// Throttled is for how long the venue has refused public calls since the start, by its 429 answers.
	Throttled time.Duration
	// Waiting counts the waiting calls of all windows by reqctx.Priority.
	Waiting [reqctx.Priorities]int
	// Scopes counts the credentials with a window of their own.
	Scopes int
	// Admitted counts the calls that were made since the start, and Refused the calls that could not leave in time.
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
