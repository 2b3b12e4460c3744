package stream

import "time"

const (
	// restartSpread is what the clients of a restarting venue spread over.
	restartSpread = 10 * time.Second
	// slowAgain: a second close for slowness within it is no accident, and is not followed by connecting at once.
	slowAgain = 10 * time.Second
)

// backoff gives waits with full jitter: uniform from 0 to a bound that doubles. (cenkalti/backoff jitters around the
// interval with the global generator, and its bound does not hold for the jittered wait.)
type backoff struct {
	least, most time.Duration
	rand        func() float64
	bound       time.Duration
}

func (b *backoff) next() time.Duration {
	b.bound = min(max(b.bound, b.least), b.most)
	wait := time.Duration(b.rand() * float64(b.bound))
	b.bound *= 2
	return wait
}

func (b *backoff) reset() { b.bound = 0 }
