package ratelimit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// margin is the fraction of each limit that is left unused, but at least one call. It is for other programs behind the same address,
// such as a developer's curl, and for calls that the venue counts earlier or later than this process does.
const margin = 0.05

// Usable returns the number of calls that this service makes under the venue's limit: the limit without its margin, but at least 1.
func Usable(limit int) int { return max(limit-max(int(float64(limit)*margin), 1), 1) }

// Config configures a Budget. If a number is 0, New uses its default: 100 public calls, 300 calls for one set of credentials, 512
// places in a queue, 10,000 windows for credentials.
type Config struct {
	// Public is the number of calls without credentials that the venue accepts from one IP address in any 60 seconds, and Key the number
	// of calls with one set of credentials. The budget uses only the part of each number that Usable returns.
	Public, Key int
	// Families are separate limits for some endpoints. Calls to these endpoints do not count against Public.
	Families []Family
	// Queue bounds the number of reservations that wait in one window. Scopes bounds the number of windows for credentials; calls with
	// further credentials count as calls without.
	Queue, Scopes int
	// Fresh is true if the venue started with this process, so that no other process has called it.
	Fresh bool
	// Sharing divides the limits among several processes. If Sharing.Ledger is nil, this process uses the limits alone.
	Sharing Sharing
	// Clock is the source of time. If it is nil, New uses the system clock. Rand returns a random number in [0,1). If it is nil, New
	// uses the package math/rand/v2.
	Clock market.Clock
	Rand  func() float64
}

// Family is a separate limit of the venue for some of its endpoints.
type Family struct {
	// Endpoints are the endpoints that share the limit. No other family contains them.
	Endpoints []upstream.Endpoint
	// Limit is the number of calls that the venue accepts in any period of the length Span. The budget uses only the part of Limit
	// that Usable returns.
	Limit int
	Span  time.Duration
}

// Bucket returns a family that never exceeds a token bucket of the venue. The bucket contains at most maxTokens. Each second the
// venue adds tokensPerSecond, and each call removes tokensPerCall. The span of the family is the time in which an empty bucket
// becomes full. The limit of the family is the number of calls for which a full bucket has tokens.
func Bucket(endpoints []upstream.Endpoint, tokensPerSecond, maxTokens, tokensPerCall float64) Family {
	return Family{
		Endpoints: endpoints, Limit: max(int(maxTokens/tokensPerCall), 1),
		Span: time.Duration(math.Ceil(max(maxTokens, tokensPerCall) / tokensPerSecond * float64(time.Second))),
	}
}

// Budget admits calls to the venue. It is safe for concurrent use. Close stops its timers.
type Budget struct {
	cfg    Config
	clock  market.Clock
	opened time.Time
	timers sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	answered bool // the venue has answered a call of this process
	// public is the window of the public calls. families contains the windows of families by endpoint.
	public   *window
	families map[upstream.Endpoint]*window
	// keys contains the windows of accepted credentials by scope, a hash of the credentials. held contains scopes without a window
	// whose calls the venue refuses, with the time at which it accepts them again.
	keys *simplelru.LRU[string, *window]
	held *simplelru.LRU[string, time.Time]
	// admitted counts the calls made in all windows since the start, and refused counts the refused reservations.
	admitted, refused uint64
}

// maxHeld bounds the size of Budget.held. Under usual limits, a process makes fewer calls in five minutes (patience).
const maxHeld = 1024

// New returns a budget without calls of this process.
func New(cfg Config) *Budget {
	cfg.Public, cfg.Key = cmp.Or(cfg.Public, 100), cmp.Or(cfg.Key, 300)
	cfg.Queue, cfg.Scopes = cmp.Or(cfg.Queue, 512), cmp.Or(cfg.Scopes, 10_000)
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
	b := &Budget{cfg: cfg, clock: cfg.Clock, opened: cfg.Clock.Now(), families: make(map[upstream.Endpoint]*window)}
	b.keys, _ = simplelru.NewLRU[string, *window](cfg.Scopes, nil) // fails for sizes below 1
	b.held, _ = simplelru.NewLRU[string, time.Time](maxHeld, nil)
	b.public = newWindow(b, "", cfg.Public, span, true)
	for _, f := range cfg.Families {
		if s.Ledger != nil { // the ledger does not count calls to families
			f.Limit = max(f.Limit/s.Replicas, 1) // package app rejects a configuration with more replicas than calls
		}
		w := newWindow(b, "", f.Limit, f.Span+skew, false)
		for _, e := range f.Endpoints {
			b.families[e] = w
		}
	}
	return b
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
func (b *Budget) Reserve(req upstream.CallRequest) upstream.Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, now := b.windowOf(req.Scope, req.Endpoint), b.clock.Now()
	t := &reservation{budget: b, window: w, scope: req.Scope, deadline: req.Deadline, endpoint: req.Endpoint}
	if t.err = b.heldError(req.Scope, now); t.err != nil {
		b.refused++
		return t
	}
	if b.closed {
		t.err = errClosed
		return t
	}
	w.expire(now)
	w.arrivals++
	t.priority, t.caller, t.arrival = req.Priority, w.callerOf(req.Caller, now), w.arrivals
	w.add(t, now)
	return t
}

// windowOf returns the window that counts the calls of a scope to an endpoint. The venue counts calls with invalid credentials as
// public calls. So until the venue has accepted credentials, calls with these credentials count in the public window or in a
// family's window.
func (b *Budget) windowOf(scope string, endpoint upstream.Endpoint) *window {
	if w, ok := b.keys.Get(scope); ok {
		return w
	}
	if w := b.families[endpoint]; w != nil {
		return w
	}
	return b.public
}

// windowFor returns the window to which the rate-limit headers or the 429 of a response apply, or nil. The response to a call with
// credentials that have no window never adjusts the window that counts the call, because the owner of the credentials may have used
// up their limit elsewhere. If the 429 concerns the IP address, the next call without credentials also gets a 429.
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
		return upstream.RateLimited(until.Sub(now))
	}
	return nil
}

// accept opens a window for credentials that the venue has accepted. If there are already Config.Scopes windows, it replaces the least
// recently used one, or does nothing if that one still contains calls or reservations.
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
	w := newWindow(b, scope, b.cfg.Key, span, b.cfg.Sharing.SameScopes)
	b.keys.Add(scope, w)
	if until, ok := b.held.Peek(scope); ok {
		w.pause(until, now)
		b.held.Remove(scope)
	}
}

// Scarce reports whether a call of a scope to an endpoint would have to wait. Assumed calls do not count.
func (b *Budget) Scarce(scope string, e upstream.Endpoint) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, now := b.windowOf(scope, e), b.clock.Now()
	w.expire(now)
	free := w.free(now)
	if w.others.assumed {
		free += w.others.left(now)
	}
	if p := w.pool; p != nil {
		free += p.assumed.left(now)
		w.lookAgain(now)
	}
	return free <= 0 || w.refusal.until.After(now) || w.refusals[e].until.After(now)
}

// Status is the state of a budget.
type Status struct {
	// Limit is the number of public calls that are presently allowed in any 60 seconds. Left is the number that can be made now.
	Limit, Left int
	// ThrottledUntil is the earliest time at which a public call can be sent, or the zero time if that is now. If the venue refuses
	// calls to a family until a later time, it is that time. Throttled is the total time for which public calls paused.
	ThrottledUntil time.Time
	Throttled      time.Duration
	// Waiting is the number of waiting calls in all windows, by upstream.Priority. Scopes is the number of windows for credentials.
	Waiting [upstream.Priorities]int
	Scopes  int
	// Admitted counts calls, and Refused counts refused reservations.
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
	s := Status{Limit: w.limit, Left: max(w.free(now), 0), Scopes: b.keys.Len(), Throttled: w.paused - max(w.refusal.until.Sub(now), 0), Admitted: b.admitted, Refused: b.refused}
	if w.refusal.until.After(now) {
		s.Left = 0
	}
	if w.pool != nil {
		p := w.pool
		s.Shared = &SharedStatus{Granted: w.used() - p.uncredited, Left: len(p.credits) + p.left, Part: p.part(w.limit), PartUsed: p.uncredited}
	}
	if opens := w.nextCallTime(now); opens.After(now) {
		s.ThrottledUntil = opens
	}
	for _, w := range b.windows() {
		for p := range w.queue {
			s.Waiting[p] += len(w.queue[p])
		}
		if w.scope == "" && w != b.public && w.refusal.until.After(now) {
			s.ThrottledUntil = market.Later(s.ThrottledUntil, w.refusal.until)
		}
	}
	return s
}
