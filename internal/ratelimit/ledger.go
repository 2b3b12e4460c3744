package ratelimit

import "time"

// Ledger grants calls to several processes that share the venue's limits. Its methods must not wait and must be safe for
// concurrent use.
type Ledger interface {
	// Ask requests n calls of a scope. A scope identifies credentials, or is empty for calls without credentials. The ledger grants
	// all processes together at most maxCalls in any 60 seconds. Another goroutine calls reply later, at most once; a closed ledger
	// may never call reply. The arguments of reply are:
	//   - calls contains the names of the granted calls. It is empty if the ledger grants none or fails.
	//   - left is the number of calls that the ledger could still grant.
	//   - again is the wait until the ledger may grant calls again, if left is 0.
	//   - hold is the time for which the venue still refuses calls.
	Ask(scope string, maxCalls, n int, reply func(calls []string, left int, again, hold time.Duration))
	// End tells the ledger which granted calls have just ended and which were not made. An ended call counts for 60 seconds from
	// now. The ledger can grant an unused call again at once.
	End(scope string, ended, unused []string)
	// Hold tells the ledger until when the venue refuses calls of a scope.
	Hold(scope string, until time.Time)
}

// Sharing configures how processes share the venue's limits. A usable limit of L calls has two parts. Each process may make Reserve
// calls without the ledger. The ledger grants the other L - Replicas*Reserve calls to the processes that ask for them. So all
// processes together never exceed L, even if the ledger does not answer.
type Sharing struct {
	Ledger Ledger
	// Replicas is the greatest number of processes that run at the same time. Reserve is the number of calls that each process may
	// make in any 60 seconds without the ledger.
	Replicas, Reserve int
	// Use is the time, counted from Ask, within which a granted call must be sent.
	Use time.Duration
	// SameScopes is true if all processes use the same scope for the same credentials. If SameScopes is true, the ledger also grants
	// calls with credentials. If SameScopes is false, each process may make an equal part of the Config.Key calls.
	SameScopes bool
}

const (
	// ahead is the number of granted calls that a busy window keeps in stock, so that the next call does not wait for the ledger.
	ahead = 2
	// keepAhead is the time after which a window returns an unused granted call to the ledger.
	keepAhead = 2 * time.Second
	// maxAsk bounds the number of calls in one request to the ledger.
	maxAsk = 16
	// If the ledger's last answer is at least askEvery old, Budget.Left asks the ledger again how many calls remain. askEvery has a
	// second use: if the venue reports fewer remaining calls than the margin, the process sends no calls for this time. Our processes
	// together leave the margin unused, so such a report means that another program makes calls too.
	askEvery = time.Second
	// unlimited is a limit that no process reaches. Processes do not share windows with a limit of unlimited or more.
	unlimited = 1 << 30
)

// credit is a granted call.
type credit struct {
	call string
	// returnAt is the time at which the window returns the credit to the ledger if no reservation has taken it.
	returnAt time.Time
	// From the time voidAt on, the call must not be sent; see Sharing.Use.
	voidAt time.Time
}

// pool contains the calls of a shared limit that this process may make: grants of the ledger (credits), and the reserve. The
// reserve is the number of calls that the process may make without the ledger. The budget's lock protects the pool.
type pool struct {
	Sharing
	credits []credit // oldest first
	// reserve is Sharing.Reserve, or less if the limit is small.
	reserve int
	// reserveUsed is the number of calls in the window that used the reserve. This process may use the reserve from reserveOpensAt on,
	// because the calls of an earlier process have then left the window. reserveOpen reports that reserveOpensAt has passed.
	reserveUsed    int
	reserveOpensAt time.Time
	reserveOpen    bool
	// left is the estimated number of calls that the ledger can still grant, and answeredAt is the time of the ledger's last response.
	// If left is 0, refillAt is the time of the ledger's next grant, or the zero time if that time is unknown.
	left                 int
	answeredAt, refillAt time.Time
	asking               bool
}

// newPool returns the pool of a new window, or nil if processes do not share the window. limit is the usable limit of the window.
func (b *Budget) newPool(scope string, limit int) *pool {
	s := b.cfg.Sharing
	if s.Ledger == nil || scope != "" && !s.SameScopes || limit >= unlimited {
		return nil
	}
	p := &pool{Sharing: s, reserveOpensAt: b.opened.Add(span + time.Second)}
	p.left = p.divide(limit)
	return p
}

// SharedStatus is the state of a public limit that several processes share. All counts are numbers of calls.
type SharedStatus struct {
	// Granted counts the granted calls that this process made in the last 60 seconds. Left is the estimated number of calls that this
	// process can still make with grants: unused grants, plus calls that the ledger could still grant.
	Granted, Left int
	// Reserve is the number of calls that this process may make in any 60 seconds without the ledger. ReserveUsed is the number of
	// these calls in the last 60 seconds. ReserveOpens is the time from which this process may use the reserve. After that time,
	// ReserveOpens is zero.
	Reserve, ReserveUsed int
	ReserveOpens         time.Time
}

// status returns the state of a pool. The parameter used is the number of calls in the window of the pool.
func (p *pool) status(used int) *SharedStatus {
	s := &SharedStatus{Granted: used - p.reserveUsed, Left: len(p.credits) + p.left, Reserve: p.reserve, ReserveUsed: p.reserveUsed}
	if !p.reserveOpen {
		s.ReserveOpens = p.reserveOpensAt
	}
	return s
}

// divide sets p.reserve for a usable limit, and returns the number of calls that the ledger may grant to all processes.
func (p *pool) divide(limit int) int {
	p.reserve = min(p.Reserve, limit/p.Replicas)
	return limit - p.Replicas*p.reserve
}

// free returns the number of calls that can still be made with credits, with further grants of the ledger, or with the reserve.
func (p *pool) free() int {
	free := len(p.credits) + p.left
	if p.reserveOpen {
		free += max(p.reserve-p.reserveUsed, 0)
	}
	return free
}

// funded reports whether the pool allows a call now: with a credit, or with the reserve if the ledger can grant no call. It is true
// for a window without a pool.
func (w *window) funded() bool {
	p := w.pool
	return p == nil || len(p.credits) > 0 || p.left == 0 && p.reserveOpen && p.reserveUsed < p.reserve
}

// pay takes a credit for the reservation's call. If there is no credit, the call counts against the reserve. When fewer credits
// remain than the constant ahead, pay asks the ledger for more, if the ledger can grant more.
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
		p.reserveUsed++
	}
}

// refund undoes pay for a call that was not made.
func (w *window) refund(t *reservation) {
	switch p := w.pool; {
	case p == nil:
	case t.credit.call == "":
		p.reserveUsed--
	default:
		p.Ledger.End(w.scope, nil, []string{t.credit.call})
		t.credit = credit{}
	}
}

// overdue reports whether the credit of an admitted reservation is void, so that the call needs a new credit.
func (t *reservation) overdue(now time.Time) bool {
	return t.credit.call != "" && !now.Before(t.credit.voidAt)
}

// callLeft updates the pool when a call leaves the window. If credited is true, the call used a credit. Otherwise the call used the
// reserve.
func (p *pool) callLeft(credited bool) {
	switch {
	case p == nil:
	case credited:
		p.left++ // an estimate until the ledger answers again
	default:
		p.reserveUsed--
	}
}

// expire returns old credits to the ledger; see credit.returnAt. If reserveOpensAt has passed, expire opens the reserve. If
// refillAt has passed, expire sets left to at least 1, so that the window asks the ledger again. It reports whether it changed the
// pool.
func (p *pool) expire(scope string, now time.Time) (changed bool) {
	if p == nil {
		return false
	}
	var unused []string
	for len(p.credits) > 0 && !now.Before(p.credits[0].returnAt) {
		unused, p.credits = append(unused, p.credits[0].call), p.credits[1:]
	}
	if len(unused) > 0 {
		p.left += len(unused)
		p.Ledger.End(scope, nil, unused)
	}
	opened := !p.reserveOpen && !now.Before(p.reserveOpensAt)
	refilled := !p.refillAt.IsZero() && !now.Before(p.refillAt)
	if refilled {
		p.left, p.refillAt = max(p.left, 1), time.Time{}
	}
	p.reserveOpen = p.reserveOpen || opened
	return len(unused) > 0 || opened || refilled
}

// moreCallsAt returns the next time at which the ledger or the reserve allows more calls. If this time is unknown, moreCallsAt
// returns the zero time.
func (p *pool) moreCallsAt() time.Time {
	switch {
	case p == nil:
		return time.Time{}
	case p.reserveOpen || !p.refillAt.IsZero() && p.refillAt.Before(p.reserveOpensAt):
		return p.refillAt
	}
	return p.reserveOpensAt
}

// pace returns the average time between two grants to this process while all processes together use up the limit.
func (w *window) pace() time.Duration {
	p := w.pool
	return span * time.Duration(p.Replicas) / time.Duration(max(p.divide(w.limit), 1))
}

// ask asks the ledger for one grant for each waiting reservation, and for a stock of further grants; see the constant ahead. It
// asks for at most maxAsk grants.
func (w *window) ask(now time.Time) { w.askFor(min(w.waiting+ahead, maxAsk), now) }

// askFor asks the ledger for n grants. While the ledger has not answered an earlier request, askFor does nothing.
func (w *window) askFor(n int, now time.Time) {
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

// granted applies the ledger's answer to a request that was sent at requestTime.
func (w *window) granted(calls []string, left int, again, hold time.Duration, requestTime time.Time) {
	p, now := w.pool, w.budget.clock.Now()
	p.asking = false
	if w.budget.closed || w.retired {
		p.Ledger.End(w.scope, nil, calls)
		return
	}
	for _, call := range calls {
		p.credits = append(p.credits, credit{call: call, returnAt: now.Add(keepAhead), voidAt: requestTime.Add(p.Use)})
	}
	p.left, p.answeredAt, p.refillAt = left, now, time.Time{}
	if left == 0 {
		p.refillAt = now.Add(max(again, time.Millisecond))
	}
	if hold > 0 {
		w.block(now.Add(min(hold, patience)), now)
	}
	w.settle(now)
}

// retire marks a window as closed and returns its credits to the ledger.
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

// block blocks all calls of the window at least until the given time.
func (w *window) block(until, now time.Time) {
	if !w.throttledUntil.After(now) {
		w.earlierThrottling, w.throttledSince = w.throttledFor(now), now
	}
	if until.After(w.throttledUntil) {
		w.throttledUntil = until
	}
}
