package stream

import "time"

// window limits the number of frames in any period of length frameSpan.
type window struct {
	times []time.Time
	next  int
}

func newWindow(n int) window { return window{times: make([]time.Time, max(n, 1))} }

// opensAt returns the earliest time for the next frame. This time may be in the past.
func (w *window) opensAt() time.Time {
	if t := w.times[w.next]; !t.IsZero() {
		return t.Add(frameSpan)
	}
	return time.Time{}
}

func (w *window) isOpen(now time.Time) bool { return !now.Before(w.opensAt()) }

func (w *window) take(now time.Time) {
	w.times[w.next] = now
	w.next = (w.next + 1) % len(w.times)
}
