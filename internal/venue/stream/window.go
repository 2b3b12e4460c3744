package stream

import "time"

// window limits the number of frames in any period of length frameSpan.
type window struct {
	times []time.Time
	next  int
}

func newWindow(n int) window { return window{times: make([]time.Time, max(n, 1))} }

// opens returns the earliest time for the next frame. This time may be in the past.
func (w *window) opens() time.Time {
	if t := w.times[w.next]; !t.IsZero() {
		return t.Add(frameSpan)
	}
	return time.Time{}
}

func (w *window) open(now time.Time) bool { return !now.Before(w.opens()) }

func (w *window) take(now time.Time) {
	w.times[w.next] = now
	w.next = (w.next + 1) % len(w.times)
}
