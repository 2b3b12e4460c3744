package fleet

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// If maxFailures calls in a row fail, the circuit opens.
	maxFailures = 5
	// While the circuit is open, the pause between two probes doubles from minPause to maxPause; see circuit.pause.
	minPause, maxPause = time.Second, 30 * time.Second
)

// circuit is a circuit breaker for Redis. While it is open, calls fail at once, and Fleet.keepConnected sends only probes.
type circuit struct {
	mu          sync.Mutex
	open        bool
	since       time.Time
	failedCalls int
	lastPause   time.Duration
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
	c.failedCalls = 0
}

// fail counts a failed call. It reports whether this failure has opened the circuit.
func (c *circuit) fail() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failedCalls++; c.open || c.failedCalls < maxFailures {
		return false
	}
	c.open, c.since = true, time.Now()
	return true
}

// close closes the circuit after a probe has succeeded.
func (c *circuit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.failedCalls, c.lastPause, c.since = false, 0, 0, time.Now()
}

// pause returns the wait before the next probe. pause shortens the wait by a random part of at most a quarter, so that replicas do
// not send their probes at the same time.
func (c *circuit) pause() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastPause = min(max(2*c.lastPause, minPause), maxPause)
	return c.lastPause - rand.N(c.lastPause/4)
}
