package venue

import (
	"context"
	"errors"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// retryWait returns the wait before a failed call is retried; ok is false if it must not be. All calls are GET, so a retry is
// safe. There is none if the caller's deadline would pass before it ends. took is the duration of the last attempt.
func (c *Client) retryWait(ctx context.Context, attempt int, took time.Duration, err error) (wait time.Duration, ok bool) {
	why, sent := errors.AsType[*callFailure](err)
	failure, coded := errors.AsType[*market.Error](err)
	if attempt >= c.cfg.Retries || !sent || !why.transient || !coded {
		return 0, false
	}
	if wait = failure.RetryAfter; wait <= 0 {
		wait = retryBackoff.Wait(attempt+1, c.cfg.Rand())
	}
	if wait > c.cfg.Timeout {
		return 0, false
	}
	deadline, limited := ctx.Deadline()
	if call, ok := reqctx.CallFrom(ctx); ok {
		if latest, ok := call.Deadline(); ok && (!limited || latest.Before(deadline)) {
			deadline, limited = latest, true
		}
	}
	return wait, !limited || time.Until(deadline) > wait+took
}

// sleep waits for d and reports whether ctx is still alive.
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
