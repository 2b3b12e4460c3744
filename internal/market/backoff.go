package market

import "time"

// Backoff says how long to wait after failures in a row. Each wait is a random time between half of a bound and the whole bound. So
// clients that fail together do not retry together, and no client retries at once.
type Backoff struct {
	// Min is the bound after the first failure. The bound doubles with each further failure, up to Max.
	Min, Max time.Duration
}

// Wait returns the wait after the given number of failures. A number below 1 counts as 1. If random is 0, the wait is half of the
// bound. If random is 1, the wait is the bound.
func (b Backoff) Wait(failures int, random float64) time.Duration {
	bound, doublings := b.Max, max(failures-1, 0)
	if b.Min <= b.Max>>doublings {
		bound = b.Min << doublings
	}
	return bound/2 + time.Duration(random*float64(bound/2))
}
