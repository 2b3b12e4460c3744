package fleet

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// failures is the number of failed calls in a row that open the circuit.
	failures = 5
	// While the circuit is open, the pause between two probes doubles from minPause to maxPause; see circuit.pause.
	minPause, maxPause = time.Second, 30 * time.Second
)

// circuit is a circuit breaker for Redis. While it is open, calls fail at once, and Fleet.keep sends only probes.
type circuit struct {
	mu     sync.Mutex
	open   bool
	since  time.Time
	failed int
	paused time.Duration
}

func (c *circuit) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.open
}

// state reports whether the circuit is closed, and since when.
func (c *circuit) state() (closed bool, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.open, c.since
}

func (c *circuit) succeed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = 0
}

// fail counts a failed call. It reports whether this failure has opened the circuit.
func (c *circuit) fail() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed++; c.open || c.failed < failures {
		return false
	}
	c.open, c.since = true, time.Now()
	return true
}

// close closes the circuit after a probe has succeeded.
func (c *circuit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.failed, c.paused, c.since = false, 0, 0, time.Now()
}

// pause returns the wait before the next probe. pause shortens the wait by a random part of at most a quarter, so that replicas do
// not send their probes at the same time.
func (c *circuit) pause() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = min(max(2*c.paused, minPause), maxPause)
	return c.paused - rand.N(c.paused/4)
}
