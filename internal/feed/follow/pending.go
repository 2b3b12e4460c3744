package follow

import (
	"errors"
	"math/rand/v2"
	"time"

	"oddsgraph/internal/market"
)

// maxPending is the maximum number of changes that wait for a read. If there are more, one RESYNC event replaces them.
const maxPending = 1000

// readBackoff is the delay after reads that failed or returned a stale value.
var readBackoff = market.Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second}

// pending contains the reasons to read one topic over REST, and the changes that the read must include. A read settles only what
// was pending when the read started. See the package comment. In the zero value, nothing is pending.
type pending[C any] struct {
	// wanted reports whether a read is needed. reason is the Reason of the event after the read. If reason is empty, an event is
	// needed only if the value has changed. changes contains the changes that the read must include, oldest first.
	wanted  bool
	reason  Reason
	changes []C
	// version increases with each call of add and invalidate. reasonAt is the version at which reason was set.
	version, reasonAt int

	// covered contains version and the number of changes at the start of the current read.
	covered struct{ version, changes int }
	// failures counts the calls of delay and retryNow since the last call of settle. retry is the earliest time of the next read.
	failures int
	retry    time.Time
}

// add adds changes, and a reason if the reason is not empty. Only a read that starts after the call settles the reason and the
// changes. If there would be more than maxPending changes, add drops all changes and sets the reason Resync. add also ends the
// delay after a failed read, because a read after the change may succeed.
func (p *pending[C]) add(reason Reason, changes ...C) {
	p.version++
	p.wanted, p.retry = true, time.Time{}
	if reason != "" {
		p.reason, p.reasonAt = reason, p.version
	}
	if len(p.changes)+len(changes) > maxPending {
		p.changes, p.covered.changes = nil, 0
		p.reason, p.reasonAt = Resync, p.version
		return
	}
	p.changes = append(p.changes, changes...)
}

// request requests a read without a reason or changes.
func (p *pending[C]) request() { p.wanted = true }

// invalidate marks the result of the current read as outdated, for example because the venue's stream has sent a newer value.
func (p *pending[C]) invalidate() { p.version++ }

// ready reports whether a read may start now.
func (p *pending[C]) ready(now time.Time) bool { return p.wanted && !now.Before(p.retry) }

// readStarted records that a read starts now.
func (p *pending[C]) readStarted() {
	p.covered.version, p.covered.changes = p.version, len(p.changes)
}

// invalidated reports whether add or invalidate was called since the read started.
func (p *pending[C]) invalidated() bool { return p.version != p.covered.version }

// settle removes and returns what was pending when the finished read started. Later additions stay pending.
func (p *pending[C]) settle() (reason Reason, changes []C) {
	n := p.covered.changes
	changes, p.changes = p.changes[:n:n], p.changes[n:]
	if p.reasonAt <= p.covered.version {
		reason, p.reason = p.reason, ""
	}
	p.covered.changes, p.failures, p.retry = 0, 0, time.Time{}
	p.wanted = p.reason != "" || len(p.changes) > 0
	return reason, changes
}

// readFailed delays the next read after a failure. The delay is at least the RetryAfter of the error, but a RetryAfter of more than
// a minute counts as a minute. Everything stays pending.
func (p *pending[C]) readFailed(now time.Time, err error) {
	minimum := time.Duration(0)
	if e, ok := errors.AsType[*market.Error](err); ok {
		minimum = min(e.RetryAfter, time.Minute)
	}
	p.delay(now, minimum)
}

// delay delays the next read by a random backoff, but at least by the parameter minimum. Everything stays pending.
func (p *pending[C]) delay(now time.Time, minimum time.Duration) {
	p.failures++
	p.wanted = true
	p.retry = now.Add(max(readBackoff.Wait(p.failures, rand.Float64()), minimum))
}

// retryNow requests another read at once, because the last read was invalidated. Everything stays pending.
func (p *pending[C]) retryNow() {
	p.failures++
	p.wanted, p.retry = true, time.Time{}
}

// retryAt returns the time of the next read, or zero if no read is delayed.
func (p *pending[C]) retryAt() time.Time {
	if !p.wanted {
		return time.Time{}
	}
	return p.retry
}

// earlierOf returns the earlier of two times. If one of them is zero, it returns the other.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
