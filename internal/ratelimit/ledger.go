package ratelimit

import "time"

// Ledger grants calls of windows that several processes share. Its methods do not wait. It must be safe for concurrent use.
type Ledger interface {
	// Ask asks for n calls of a scope's window, of which all processes together are granted at most limit in any 60 seconds.
	// answered is called later by another goroutine, at most once, with the names of the granted calls, how many more could
	// be granted, when to ask again, and for how long the venue wants no calls. Nothing is granted if the ledger does not answer.
	Ask(scope string, limit, n int, answered func(calls []string, left int, again, hold time.Duration))
	// End reports granted calls that have ended, and granted calls that were not made.
	End(scope string, ended, unused []string)
	// Hold reports that the venue wants no calls of a scope before a time.
	Hold(scope string, until time.Time)
}

// Sharing says how processes share the venue's limits. A usable limit of L calls is divided into disjoint parts: each of
// Replicas processes may make Reserve calls by its own count, and the ledger grants the rest. So all of them together never
// exceed L, even if the ledger forgets or does not answer.
type Sharing struct {
	Ledger Ledger
	// Replicas is the greatest number of processes that run at once, Reserve the calls that each of them may make in any 60
	// seconds without the ledger.
	Replicas, Reserve int
	// Use is how long after Ask a granted call may be sent.
	Use time.Duration
	// Keys means that all processes use the same scope for the same credentials, so the ledger also grants calls with
	// credentials. Otherwise each process uses its part of Config.Key.
	Keys bool
}

const (
	// ahead is how many granted calls a busy window holds, so that the next call does not wait for the ledger.
	ahead = 2
	// keepAhead is how long a window holds an unused granted call.
	keepAhead = 2 * time.Second
	// maxAsk bounds the calls of one request to the ledger.
	maxAsk = 16
	// askEvery is how often an idle window asks how many calls are left.
	askEvery = time.Second
	// unlimited is a limit that no process reaches, so its window is not shared.
	unlimited = 1 << 30
)

// credit is a granted call that is not used. The window returns it at until.
type credit struct {
	call  string
	until time.Time
	// void is when the grant expires.
	void time.Time
}

// pool is the state of a window's shared calls. The budget's lock protects it.
type pool struct {
	Sharing
	credits []credit // oldest first
	// reserve is Reserve, or less under a small limit.
	reserve int
	// own counts the calls in the window that the reserve pays for. The reserve opens when the calls of an earlier process have
	// left the window.
	own   int
	opens time.Time
	open  bool
	// left is how many calls the ledger could still grant, by its answer at the time answered. It grants the next call at
	// refill. The zero time means unknown.
	left             int
	answered, refill time.Time
	asking           bool
}

// newPool returns the pool of a new window, or nil if its calls are not shared.
func (b *Budget) newPool(scope string, limit int) *pool {
	s := b.cfg.Sharing
	if s.Ledger == nil || scope != "" && !s.Keys || limit >= unlimited {
		return nil
	}
	p := &pool{Sharing: s, opens: b.opened.Add(span + time.Second)}
	p.left = p.divide(limit)
	return p
}

// divide sets the reserve under a limit, and returns what is left for the ledger to grant.
func (p *pool) divide(limit int) int {
	p.reserve = min(p.Reserve, limit/p.Replicas)
	return limit - p.Replicas*p.reserve
}

// free returns how many calls can be paid for.
func (p *pool) free() int {
	free := len(p.credits) + p.left
	if p.open {
		free += max(p.reserve-p.own, 0)
	}
	return free
}

// funded reports whether a call can be paid for now: by a credit, or by the reserve when the ledger has nothing to grant.
func (w *window) funded() bool {
	p := w.pool
	return p == nil || len(p.credits) > 0 || p.left == 0 && p.open && p.own < p.reserve
}

// pay pays for the call of a reservation, which leaves now.
func (w *window) pay(t *reservation, now time.Time) {
	p := w.pool
	switch {
	case p == nil:
	case len(p.credits) > 0:
		t.credit, p.credits = p.credits[0], p.credits[1:]
		if len(p.credits) < ahead && p.left > 0 {
			w.ask(now)
		}
	default:
		p.own++
	}
}

// refund returns the payment of a call that was not made.
func (w *window) refund(t *reservation) {
	switch p := w.pool; {
	case p == nil:
	case t.credit.call == "":
		p.own--
	default:
		p.Ledger.End(w.scope, nil, []string{t.credit.call})
		t.credit = credit{}
	}
}

// overdue reports whether the grant of an admitted reservation has expired.
func (t *reservation) overdue(now time.Time) bool {
	return t.credit.call != "" && !now.Before(t.credit.void)
}

// gone frees the payment of a call that has left the window. credited means that a credit paid, otherwise the reserve.
func (p *pool) gone(credited bool) {
	switch {
	case p == nil:
	case credited:
		p.left++ // an estimate until the ledger answers again
	default:
		p.own--
	}
}

// expire returns old credits to the ledger, opens the reserve, and adds a call at the time of the refill. It reports whether
// anything changed.
func (p *pool) expire(scope string, now time.Time) (changed bool) {
	if p == nil {
		return false
	}
	var unused []string
	for len(p.credits) > 0 && !now.Before(p.credits[0].until) {
		unused, p.credits = append(unused, p.credits[0].call), p.credits[1:]
	}
	if len(unused) > 0 {
		p.left += len(unused)
		p.Ledger.End(scope, nil, unused)
	}
	opened := !p.open && !now.Before(p.opens)
	refilled := !p.refill.IsZero() && !now.Before(p.refill)
	if refilled {
		p.left, p.refill = max(p.left, 1), time.Time{}
	}
	p.open = p.open || opened
	return len(unused) > 0 || opened || refilled
}

// next returns when more calls can be paid for. The zero time means unknown.
func (p *pool) next() time.Time {
	switch {
	case p == nil:
		return time.Time{}
	case p.open || !p.refill.IsZero() && p.refill.Before(p.opens):
		return p.refill
	}
	return p.opens
}

// pace is the time between two grants to this process while all processes together use up the limit.
func (w *window) pace() time.Duration {
	p := w.pool
	return span * time.Duration(p.Replicas) / time.Duration(max(p.divide(w.limit), 1))
}

// ask requests grants for the waiting calls and some ahead, unless a request is open.
func (w *window) ask(now time.Time) { w.question(min(w.waiting+ahead, maxAsk), now) }

func (w *window) question(n int, now time.Time) {
	p, b := w.pool, w.budget
	if p.asking || b.closed {
		return
	}
	p.asking = true
	p.Ledger.Ask(w.scope, p.divide(w.limit), n, func(calls []string, left int, again, hold time.Duration) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w.granted(calls, left, again, hold, now)
	})
}

// granted applies the ledger's answer to the request made at asked.
func (w *window) granted(calls []string, left int, again, hold time.Duration, asked time.Time) {
	p, now := w.pool, w.budget.clock.Now()
	p.asking = false
	if w.budget.closed || w.retired {
		p.Ledger.End(w.scope, nil, calls)
		return
	}
	for _, call := range calls {
		p.credits = append(p.credits, credit{call: call, until: now.Add(keepAhead), void: asked.Add(p.Use)})
	}
	p.left, p.answered, p.refill = left, now, time.Time{}
	if left == 0 {
		p.refill = now.Add(max(again, time.Millisecond))
	}
	if hold > 0 {
		w.pause(now.Add(min(hold, patience)), now)
	}
	w.settle(now)
}

// retire closes a window and returns its credits.
func (w *window) retire() {
	w.retired = true
	if p := w.pool; p != nil && len(p.credits) > 0 {
		unused := make([]string, len(p.credits))
		for i := range p.credits {
			unused[i] = p.credits[i].call
		}
		p.credits = nil
		p.Ledger.End(w.scope, nil, unused)
	}
}

// pause lets no call leave before until.
func (w *window) pause(until, now time.Time) {
	if !w.throttled.After(now) {
		w.before, w.since = w.throttledFor(now), now
	}
	if until.After(w.throttled) {
		w.throttled = until
	}
}
