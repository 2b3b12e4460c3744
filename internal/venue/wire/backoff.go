package wire

import "time"

// Backoff is exponential backoff with full jitter. The libraries that we know draw the wait from a range around the interval,
// so callers that failed together come back together.
type Backoff struct {
	// Min is the bound of the wait after the first failure. It is positive and doubles with each failure in a row, up to Max.
	Min, Max time.Duration
}

// Wait returns the wait after a number of failures in a row, at least 1. The wait is the fraction jitter, in [0,1), of the bound.
func (b Backoff) Wait(failures int, jitter float64) time.Duration {
	bound := b.Min
	for range failures - 1 {
		if bound >= b.Max/2 {
			bound = b.Max
			break
		}
		bound *= 2
	}
	return time.Duration(jitter * float64(min(bound, b.Max)))
}
