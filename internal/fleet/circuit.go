package fleet

import (
	"sync"
	"time"
)

// If maxFailures calls in a row fail, the circuit opens.
const maxFailures = 5

// circuit is a circuit breaker for Redis. While it is open, calls fail at once, and Fleet.keepConnected sends only probes.
type circuit struct {
	mu          sync.Mutex
	open        bool
	since       time.Time
	failedCalls int
}

func (c *circuit) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.open
}

func (c *circuit) state() (closed bool, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.open, c.since
}

// failures returns the number of failed calls since the last success, at most maxFailures.
func (c *circuit) failures() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(c.failedCalls, maxFailures)
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
	c.open, c.failedCalls, c.since = false, 0, time.Now()
}
