package ratelimit

import "time"

// caller is a client that made a request within the last span, has calls in the window, or has reservations in the window's queue.
type caller struct {
	name string
	// used is the number of the caller's calls in the window, and waiting is the number of its reservations in the queue.
	used, waiting int
	lastRequest   time.Time
}

const (
	// maxCallers bounds the number of callers in a window.
	maxCallers = 4096
	// overflow is the name under which all callers beyond maxCallers are counted together. No client can have this name.
	overflow = "\x00others"
)

// callerOf returns the caller with the given name and records a request of the caller. If the window already has maxCallers-1
// callers, callerOf returns the caller overflow in place of a further caller.
func (w *window) callerOf(name string, now time.Time) *caller {
	if !w.callers.Contains(name) && w.callers.Len() >= maxCallers-1 {
		name = overflow
	}
	c, ok := w.callers.Get(name)
	if !ok {
		c = &caller{name: name}
		w.callers.Add(name, c)
		w.reserved += w.share()
	}
	c.lastRequest = now
	return c
}

// spend adds n to the number of c's calls in the window; n may be negative.
func (w *window) spend(c *caller, n int) {
	share := w.share()
	w.reserved -= max(share-c.used, 0)
	c.used += n
	w.reserved += max(share-c.used, 0)
}

// forget removes callers without calls, reservations and requests of the last span.
func (w *window) forget(now time.Time) {
	for name, c, ok := w.callers.GetOldest(); ok && c.used+c.waiting == 0 && !now.Before(c.lastRequest.Add(w.span)); name, c, ok = w.callers.GetOldest() {
		w.callers.Remove(name)
		w.reserved -= w.share()
	}
}
