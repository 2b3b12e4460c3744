package ratelimit

import (
	"time"

	"oddsgraph/internal/market"
)

// pool says which calls of a shared limit this process may make: those that the ledger grants, or an equal part of the limit while
// the ledger is away. The budget's lock protects the pool.
type pool struct {
	Sharing
	// credits are the names of granted calls that no reservation has taken yet.
	credits []string
	// left is the estimated number of calls that the ledger can still grant, and answeredAt is the time of the ledger's last response.
	// If left is 0, refillAt is the time of the ledger's next grant, or the zero time if that time is unknown. assumed are the calls
	// that the ledger only assumes.
	left                 int
	assumed              others
	answeredAt, refillAt time.Time
	asking               bool

	// away reports that the ledger did not answer the last request. It is asked again at askAt. uncredited is the number of calls in
	// the window that were made without a grant. before are the calls that this process counts in its part of the limit because it
	// does not know what was made before the ledger went away.
	away       bool
	askAt      time.Time
	uncredited int
	before     others
}

// part returns the number of calls in one span that this process may make without the ledger.
func (p *pool) part(limit int) int { return max(limit/p.Replicas, 1) }

// free returns the number of calls that can still be made: with grants of the ledger, or with the part of this process.
func (p *pool) free(limit int, now time.Time) int {
	if p.away {
		return len(p.credits) + max(p.part(limit)-p.uncredited-p.before.left(now), 0)
	}
	return len(p.credits) + p.left
}

// assumedNow returns the number of calls that the pool counts although nobody knows whether they were made.
func (p *pool) assumedNow(now time.Time) int {
	if p.away {
		return p.before.left(now)
	}
	return p.assumed.left(now)
}

// funded reports whether the pool allows a call now. It is true for a window without a pool. If the call needs a grant, or it is
// time to ask the ledger again, funded asks the ledger.
func (w *window) funded(now time.Time) bool {
	p := w.pool
	if p == nil || len(p.credits) > 0 {
		return true
	}
	if !p.away || !now.Before(p.askAt) {
		w.ask(min(w.waiting, maxAsk))
	}
	return p.away && p.free(w.limit, now) > 0
}

// pay takes a grant for the reservation's call, if there is one.
func (p *pool) pay(t *reservation) {
	switch {
	case p == nil:
	case len(p.credits) > 0:
		t.credit, p.credits = p.credits[0], p.credits[1:]
	default:
		p.uncredited++
	}
}

// callLeft updates the pool when a call leaves the window.
func (p *pool) callLeft(credited bool) {
	switch {
	case p == nil:
	case credited:
		p.left++ // an estimate until the ledger answers again
	default:
		p.uncredited--
	}
}

// expire sets left to at least 1 if refillAt has passed, so that the window asks the ledger again.
func (p *pool) expire(now time.Time) {
	if p != nil && !p.refillAt.IsZero() && !now.Before(p.refillAt) {
		p.left, p.refillAt = max(p.left, 1), time.Time{}
	}
}

// opensAt returns the earliest time at which the pool of a window may allow a call, or the zero time if it allows a call now or if
// the time is unknown.
func (w *window) opensAt(now time.Time) time.Time {
	p := w.pool
	if p == nil || p.free(w.limit, now) > 0 {
		return time.Time{}
	}
	if !p.away {
		return p.refillAt
	}
	at := market.Later(p.askAt, now)
	if left := p.before.left(now); left > 0 {
		at = market.Earlier(at, p.before.departure(p.before.n-left+1))
	}
	return at
}

// ask asks the ledger for n grants. While the ledger has not answered an earlier request, ask does nothing.
func (w *window) ask(n int) {
	p, b := w.pool, w.budget
	if p.asking || b.closed {
		return
	}
	p.asking = true
	p.Ledger.Ask(w.scope, w.limit, n, func(g Grant) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w.granted(g)
	})
}

// granted applies the ledger's answer. Grants that no reservation takes at once go back to the ledger.
func (w *window) granted(g Grant) {
	p, now := w.pool, w.budget.clock.Now()
	p.asking = false
	if w.closed {
		p.Ledger.End(w.scope, nil, g.Calls)
		return
	}
	p.credits, p.answeredAt, p.refillAt = g.Calls, now, time.Time{}
	switch {
	case g.Away:
		if !p.away {
			p.before = evenly(p.part(w.limit)/2, now, w.span, true)
		}
		p.away, p.left, p.askAt = true, 0, now.Add(g.Again)
	default:
		p.away, p.left, p.assumed = false, g.Left, evenly(g.Assumed, now, w.span, true)
		if g.Left == 0 {
			p.refillAt = now.Add(max(g.Again, time.Millisecond))
		}
	}
	if g.Hold > 0 {
		w.pause(now.Add(min(g.Hold, w.span)), now)
	}
	w.settle(now)
	if unused := p.credits; len(unused) > 0 {
		p.credits, p.left = nil, p.left+len(unused)
		p.Ledger.End(w.scope, nil, unused)
	}
}
