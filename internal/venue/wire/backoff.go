package wire

import "time"

// Backoff is exponential backoff with full jitter. (cenkalti/backoff and failsafe-go jitter around the interval, so many that
// failed together come back together.)
type Backoff struct {
	// Least and Most are the bounds that a wait is drawn below: the first, which is positive, doubles with each failure in a
	// row up to the second.
	Least, Most time.Duration
}

// Wait returns how long to wait after so many failures in a row, which are 1 or more: from 0 to less than the bound. at is a
// random number in [0,1).
func (b Backoff) Wait(failures int, at float64) time.Duration {
	bound := b.Least
	for range failures - 1 {
		if bound >= b.Most/2 {
			bound = b.Most
			break
		}
		bound *= 2
	}
	return time.Duration(at * float64(min(bound, b.Most)))
}
