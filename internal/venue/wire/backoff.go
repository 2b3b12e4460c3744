package wire

import "time"

// Backoff is exponential backoff with full jitter: a wait is a random time between 0 and a bound that grows. Because the wait can
// be anything up to the bound, clients that fail together do not retry together.
type Backoff struct {
	// Min is the bound after the first failure. Min must be positive. The bound doubles with each further failure in a row. The
	// bound is never greater than Max.
	Min, Max time.Duration
}

// Wait returns the wait after the given number of failures in a row. The number is at least 1. The wait is the bound times
// jitter, a random number in [0,1).
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
