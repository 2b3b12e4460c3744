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
	// Keys reports that all processes use the same scope for the same credentials. If Keys is true, the ledger also grants calls with
	// credentials. If Keys is false, each process uses an equal part of Config.Key.
	Keys bool
}

const (
	// ahead is the number of granted calls that a busy window keeps in stock, so that the next call does not wait for the ledger.
	ahead = 2
	// keepAhead is the time after which a window returns an unused granted call to the ledger.
	keepAhead = 2 * time.Second
	// maxAsk bounds the number of calls in one request to the ledger.
	maxAsk = 16
	// If the ledger's last answer is at least askEvery old, Budget.Left asks again how many calls remain. A process also pauses for
	// askEvery if the venue reports fewer remaining calls than the margin. The margin is the number of calls that all processes
	// together leave unused.
	askEvery = time.Second
	// unlimited is a limit that no process reaches. Windows with such a limit are not shared.
	unlimited = 1 << 30
)

// credit is a granted call.
type credit struct {
	call string
	// until is the time at which the window returns the credit to the ledger if no reservation has taken it.
	until time.Time
	// void is the time from which the call must not be sent; see Sharing.Use.
	void time.Time
}

// pool is the state of a window whose limit several processes share. The budget's lock protects it.
type pool struct {
	Sharing
	credits []credit // oldest first
	// reserve is Sharing.Reserve, or less if the limit is small.
	reserve int
	// own is the number of calls in the window that used the reserve. opens is the time from which this process may use the reserve.
	// By then, the calls of an earlier process have left the window. open reports that opens has passed.
	own   int
	opens time.Time
	open  bool
	// left is the estimated number of calls that the ledger can still grant, and answered is the time of the ledger's last response.
	// If left is 0, refill is the time of the ledger's next grant, or the zero time if that time is unknown.
	left             int
	answered, refill time.Time
	asking           bool
}

// newPool returns the pool of a new window, or nil if processes do not share the window. limit is the usable limit of the window.
func (b *Budget) newPool(scope string, limit int) *pool {
	s := b.cfg.Sharing
	if s.Ledger == nil || scope != "" && !s.Keys || limit >= unlimited {
		return nil
	}
	p := &pool{Sharing: s, opens: b.opened.Add(span + time.Second)}
	p.left = p.divide(limit)
	return p
}

// SharedStatus is the state of a public limit that several processes share. All numbers are calls.
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

// status returns the state of a pool. used is the number of calls in its window.
func (p *pool) status(used int) *SharedStatus {
	s := &SharedStatus{Granted: used - p.own, Left: len(p.credits) + p.left, Reserve: p.reserve, ReserveUsed: p.own}
	if !p.open {
		s.ReserveOpens = p.opens
	}
	return s
}

// divide sets p.reserve for the given usable limit and returns the number of calls that the ledger may grant.
func (p *pool) divide(limit int) int {
	p.reserve = min(p.Reserve, limit/p.Replicas)
	return limit - p.Replicas*p.reserve
}

// free returns the number of calls that can still be made with credits, with further grants of the ledger, or with the reserve.
func (p *pool) free() int {
	free := len(p.credits) + p.left
	if p.open {
		free += max(p.reserve-p.own, 0)
	}
	return free
}

// funded reports whether a call can be sent now: with a credit, or with the reserve if the ledger can grant no call. A window
// without a pool needs neither.
func (w *window) funded() bool {
	p := w.pool
	return p == nil || len(p.credits) > 0 || p.left == 0 && p.open && p.own < p.reserve
}

// pay takes a credit for the call of a reservation, or a call of the reserve if there is no credit. If fewer than ahead credits
// remain after pay has taken one, and the ledger can grant more, pay asks the ledger for more credits.
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

// refund undoes pay for a call that was not made.
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

// overdue reports whether the credit of an admitted reservation is void, so that the call needs a new credit.
func (t *reservation) overdue(now time.Time) bool {
	return t.credit.call != "" && !now.Before(t.credit.void)
}

// gone updates the pool when a call leaves the window. If credited is true, the call used a credit. Otherwise it used the reserve.
func (p *pool) gone(credited bool) {
	switch {
	case p == nil:
	case credited:
		p.left++ // an estimate until the ledger answers again
	default:
		p.own--
	}
}

// expire returns old credits to the ledger; see credit.until. If p.opens has passed, expire opens the reserve. If p.refill has
// passed, expire lets the window ask the ledger again. It reports whether it changed the pool.
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

// next returns the next time at which the ledger or the reserve allows more calls. If this time is unknown, next returns the zero
// time.
func (p *pool) next() time.Time {
	switch {
	case p == nil:
		return time.Time{}
	case p.open || !p.refill.IsZero() && p.refill.Before(p.opens):
		return p.refill
	}
	return p.opens
}

// pace returns the average time between two grants to this process while all processes together use up the limit.
func (w *window) pace() time.Duration {
	p := w.pool
	return span * time.Duration(p.Replicas) / time.Duration(max(p.divide(w.limit), 1))
}

// ask requests one grant for each waiting reservation, and further grants as a stock; see the constant ahead. It requests at most
// maxAsk grants. While the ledger has not answered an earlier request, ask does nothing.
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

// granted applies the ledger's answer to a request that was sent at requestTime.
func (w *window) granted(calls []string, left int, again, hold time.Duration, requestTime time.Time) {
	p, now := w.pool, w.budget.clock.Now()
	p.asking = false
	if w.budget.closed || w.retired {
		p.Ledger.End(w.scope, nil, calls)
		return
	}
	for _, call := range calls {
		p.credits = append(p.credits, credit{call: call, until: now.Add(keepAhead), void: requestTime.Add(p.Use)})
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

// pause blocks all calls of the window at least until the given time.
func (w *window) pause(until, now time.Time) {
	if !w.throttled.After(now) {
		w.before, w.since = w.throttledFor(now), now
	}
	if until.After(w.throttled) {
		w.throttled = until
	}
}
