package venue

import (
	"context"
	"errors"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// again tells whether a call that failed is to be made once more, and after which wait. All calls are GET, so it is safe
// where the failure was in passing; whether it is worth while, the caller's time decides: an attempt that is likely to
// outlive it is not made. took is how long the last attempt lasted.
func (c *Client) again(ctx context.Context, attempt int, took time.Duration, err error) (wait time.Duration, ok bool) {
	var why *cause
	var failure *market.Error
	if attempt >= c.retries || !errors.As(err, &why) || !why.passing || !errors.As(err, &failure) {
		return 0, false
	}
	if wait = failure.RetryAfter; wait <= 0 {
		wait = backoffWaits.Wait(attempt+1, c.rand())
	}
	if wait > c.timeout {
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

// sleep waits, and tells whether ctx has not ended meanwhile.
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
