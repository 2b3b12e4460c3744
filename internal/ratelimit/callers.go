package ratelimit

import "time"

// caller is a client that made a request within the last span, has calls in the window, or has reservations in the window's queue.
type caller struct {
	name string
	// used is the number of the caller's calls in the window, and waiting is the number of its reservations in the queue.
	used, waiting int
	lastRequest   time.Time
}

// maxCallers bounds the number of callers in a window. All callers beyond it are counted together under the name overflow, which no
// client can have.
const maxCallers, overflow = 4096, "\x00others"

// callerOf returns the caller with the given name and records a request of the caller.
func (w *window) callerOf(name string, now time.Time) *caller {
	if !w.callers.Contains(name) && w.callers.Len() >= maxCallers-1 {
		name = overflow
	}
	c, ok := w.callers.Get(name)
	if !ok {
		c = &caller{name: name}
		w.callers.Add(name, c)
		w.reserved += w.claim(c)
	}
	c.lastRequest = now
	return c
}

// claim returns the number of calls that are kept for a caller. Nothing is kept for the service itself, whose name is empty.
func (w *window) claim(c *caller) int {
	if c.name == "" {
		return 0
	}
	return max(w.share()-c.used, 0)
}

// spend adds n to the number of c's calls in the window; n may be negative.
func (w *window) spend(c *caller, n int) {
	w.reserved -= w.claim(c)
	c.used += n
	w.reserved += w.claim(c)
}

// forget removes callers without calls, reservations and requests of the last span.
func (w *window) forget(now time.Time) {
	for name, c, ok := w.callers.GetOldest(); ok && c.used+c.waiting == 0 && !now.Before(c.lastRequest.Add(w.span)); name, c, ok = w.callers.GetOldest() {
		w.callers.Remove(name)
		w.reserved -= w.claim(c)
	}
}
