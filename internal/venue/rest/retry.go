package rest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// retryWait returns the wait before a failed call is retried. If the call must not be retried, ok is false. ok is also false if a
// retry that takes as long as the last attempt would end after the deadline of the read. All calls only read, so retries are safe.
func (c *Client) retryWait(ctx context.Context, call upstream.Call, attempt int, took time.Duration, err error) (wait time.Duration, ok bool) {
	why, sent := errors.AsType[*CallFailure](err)
	failure, coded := errors.AsType[*market.Error](err)
	if attempt >= c.cfg.Retries || !sent || !why.Transient || !coded {
		return 0, false
	}
	if wait = cmp.Or(failure.RetryAfter, retryBackoff.Wait(attempt+1, c.cfg.Rand())); wait > c.cfg.Timeout {
		return 0, false
	}
	deadline, limited := ctx.Deadline()
	if waiters := call.Waiters; waiters != nil {
		if latest, ok := waiters.Deadline(); ok && (!limited || latest.Before(deadline)) {
			deadline, limited = latest, true
		}
	}
	return wait, !limited || time.Until(deadline) > wait+took
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
