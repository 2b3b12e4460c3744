package ratelimit

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/shared"
)

// pool says which calls of a shared limit this process may make: those that the ledger grants, or an equal part of the limit while
// the ledger is away. The budget's lock protects the pool.
type pool struct {
	Sharing
	// credits are the names of granted calls that no reservation has taken yet. left is the estimated number of calls that the ledger
	// can still grant. uncredited is the number of calls in the window that were made without a grant.
	credits          []string
	left, uncredited int
	// away reports that the ledger did not answer the last request. assumed are the calls that the ledger only assumes, or that this
	// process counts in its part of the limit while the ledger is away.
	away    bool
	assumed others
	// answeredAt is the time of the last response. The ledger need not be asked again before askAt: its next grant, or the end of the
	// wait after it did not answer.
	answeredAt, askAt time.Time
	asking            bool
}

// part returns the number of calls in one span that this process may make without the ledger.
func (p *pool) part(limit int) int { return max(limit/p.Replicas, 1) }

// free returns the number of calls that can still be made: with grants of the ledger, or with the part of this process.
func (p *pool) free(limit int, now time.Time) int {
	switch {
	case p.away:
		return max(p.part(limit)-p.uncredited-p.assumed.left(now), 0)
	case p.left == 0 && len(p.credits) == 0 && !p.askAt.After(now):
		return 1 // the ledger's next grant is due
	}
	return len(p.credits) + p.left
}

// funded reports whether the pool, if there is one, allows a call now. It asks the ledger if the call needs a grant.
func (w *window) funded(now time.Time) bool {
	p := w.pool
	if p == nil || len(p.credits) > 0 {
		return true
	}
	if !p.askAt.After(now) {
		w.ask(min(w.waiting, maxAsk))
	}
	return p.away && p.free(w.limit, now) > 0
}

// opensAt returns the earliest time at which the pool of a window may allow a call, or the zero time if it allows a call now.
func (w *window) opensAt(now time.Time) time.Time {
	p := w.pool
	if p == nil || p.free(w.limit, now) > 0 {
		return time.Time{}
	}
	at := p.askAt
	if left := p.assumed.left(now); p.away && left > 0 {
		at = market.Earlier(at, p.assumed.departure(p.assumed.n-left+1))
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
	p.Ledger.Ask(w.scope, w.limit, n, func(g shared.Grant) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w.granted(g)
	})
}

// lookAgain asks the ledger how many calls remain if its last answer is old. It can grant calls earlier than it said, because
// granted calls were not made or Redis was emptied.
func (w *window) lookAgain(now time.Time) {
	if p := w.pool; p != nil && now.Sub(p.answeredAt) >= askEvery {
		w.ask(0)
	}
}

// granted applies the ledger's answer. Grants that no reservation takes at once go back to the ledger.
func (w *window) granted(g shared.Grant) {
	p, now := w.pool, w.budget.clock.Now()
	p.asking = false
	if w.closed {
		p.Ledger.End(w.scope, nil, g.Calls)
		return
	}
	if assumed := p.part(w.limit) / 2; !g.Away {
		p.assumed = evenly(g.Assumed, now, w.span, true)
	} else if !p.away {
		p.assumed = evenly(assumed, now, w.span, true)
	}
	p.credits, p.left, p.away, p.answeredAt, p.askAt = g.Calls, g.Left, g.Away, now, now
	if g.Left == 0 {
		p.askAt = now.Add(max(g.Again, time.Millisecond))
	}
	if g.Hold > 0 {
		w.pause(now.Add(min(g.Hold, w.span)), now)
		w.maxInFlight = 1
	}
	w.settle(now)
	if unused := p.credits; len(unused) > 0 {
		p.credits, p.left = nil, p.left+len(unused)
		p.Ledger.End(w.scope, nil, unused)
	}
}
