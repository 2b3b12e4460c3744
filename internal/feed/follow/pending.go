package follow

import (
	"errors"
	"math/rand/v2"
	"time"

	"oddsgraph/internal/market"
)

const (
	// retryAfter is how long after a read that settled nothing the next one begins; it doubles up to maxRetryAfter.
	retryAfter    = 500 * time.Millisecond
	maxRetryAfter = 30 * time.Second
	// maxPending bounds the changes that wait for a read. More of them are settled by one RESYNC.
	maxPending = 1000
)

// pending is what a read over REST has to settle for one topic. A read settles what was pending when it began; see the
// package's documentation. The zero value has nothing pending.
type pending[C any] struct {
	// wanted reports that a read is wanted; owed is the reason of the event that it is for, "" for an event only if something
	// differs. changes are what else it must cover, oldest first.
	wanted  bool
	owed    Reason
	changes []C
	// added counts what was added; owedAt is the count at which owed was.
	added, owedAt int

	// covered is what the read under way covers.
	covered struct{ added, changes int }
	// failures counts the reads in a row that settled nothing; retry is when the next may begin.
	failures int
	retry    time.Time
}

// add notes what a read must cover that begins from now on. A failed read delays no longer, since this may be another matter.
func (p *pending[C]) add(owed Reason, changes ...C) {
	p.added++
	p.wanted, p.retry = true, time.Time{}
	if owed != "" {
		p.owed, p.owedAt = owed, p.added
	}
	if len(p.changes)+len(changes) > maxPending {
		p.changes, p.covered.changes = nil, 0
		p.owed, p.owedAt = Resync, p.added
		return
	}
	p.changes = append(p.changes, changes...)
}

// poll wants a read without a reason of its own.
func (p *pending[C]) poll() { p.wanted = true }

// overtake notes that the stream has told more than a read under way can.
func (p *pending[C]) overtake() { p.added++ }

// due reports whether a read is to begin now.
func (p *pending[C]) due(now time.Time) bool { return p.wanted && !now.Before(p.retry) }

// begin notes that a read begins.
func (p *pending[C]) begin() {
	p.covered.added, p.covered.changes = p.added, len(p.changes)
}

// overtaken reports whether something was added since the read began.
func (p *pending[C]) overtaken() bool { return p.added != p.covered.added }

// settle takes what the read that has ended covers. What was added later stays.
func (p *pending[C]) settle() (owed Reason, changes []C) {
	n := p.covered.changes
	changes, p.changes = p.changes[:n:n], p.changes[n:]
	if p.owedAt <= p.covered.added {
		owed, p.owed = p.owed, ""
	}
	p.covered.changes, p.failures, p.retry = 0, 0, time.Time{}
	p.wanted = p.owed != "" || len(p.changes) > 0
	return owed, changes
}

// keep leaves everything pending after a read that failed, and delays the next one.
func (p *pending[C]) keep(now time.Time, err error) { p.delay(now, hint(err)) }

// await leaves everything pending after a read of a stale value, and delays the next one until the venue may have a newer one.
func (p *pending[C]) await(now time.Time, stale market.Meta) { p.delay(now, renewal(now, stale)) }

// delay leaves everything pending, and delays the next read by a wait at least.
func (p *pending[C]) delay(now time.Time, least time.Duration) {
	wait := min(retryAfter<<min(p.failures, 10), maxRetryAfter)
	wait = wait/2 + rand.N(wait/2)
	p.failures++
	p.wanted = true
	p.retry = now.Add(max(wait, least))
}

// again leaves everything pending after a read that was overtaken. The next one may begin at once.
func (p *pending[C]) again() {
	p.failures++
	p.wanted, p.retry = true, time.Time{}
}

// wake returns when a delayed read is due; zero where none is delayed.
func (p *pending[C]) wake() time.Time {
	if !p.wanted {
		return time.Time{}
	}
	return p.retry
}

// sooner returns the earlier of two times. A zero time is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// renewal returns how long it takes yet until the venue answers anew what was read; 0 where that is not known.
func renewal(now time.Time, m market.Meta) time.Duration {
	wait := m.Handle.Age().Renewed
	return min(max(wait-now.Sub(m.ReceivedAt), 0), wait)
}

// hint returns how long a failure says to wait, as far as that is sensible; 0 where it does not say.
func hint(err error) time.Duration {
	var e *market.Error
	if errors.As(err, &e) {
		return min(e.RetryAfter, 2*maxRetryAfter)
	}
	return 0
}
