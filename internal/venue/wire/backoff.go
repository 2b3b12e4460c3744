package wire

import "time"

// Backoff is exponential backoff with full jitter: the wait is a random part of the interval. The usual libraries choose a wait
// close to the interval, so callers that fail together also retry together.
type Backoff struct {
	// Min is the longest wait after the first failure; it is positive. The longest wait doubles with each failure in a row, up to
	// Max.
	Min, Max time.Duration
}

// Wait returns the wait after a number of failures in a row, which is at least 1. The wait is the longest wait times jitter, a
// random number in [0,1).
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
