package ratelimit

import "time"

// others are n calls that other processes made, or may have made, and that the venue counts against the limit. Nobody knows their
// times, so they are taken to leave the window evenly: one after each step that has passed since the time from.
type others struct {
	n       int
	from    time.Time
	step    time.Duration
	assumed bool // the venue has not reported the calls
}

// evenly returns n calls that leave the window evenly within one span after the time from.
func evenly(n int, from time.Time, span time.Duration, assumed bool) others {
	if n <= 0 {
		return others{}
	}
	return others{n: n, from: from, step: max(span/time.Duration(n), 1), assumed: assumed}
}

// left returns the number of calls that are still in the window.
func (o *others) left(now time.Time) int {
	if o.n == 0 || !now.After(o.from) {
		return o.n
	}
	return o.n - int(min(now.Sub(o.from)/o.step, time.Duration(o.n)))
}

// departure returns the time at which the k-th call leaves the window; k is from 1 to o.n.
func (o *others) departure(k int) time.Time { return o.from.Add(time.Duration(k) * o.step) }

// departures iterates over the times at which calls leave a window, earliest first.
type departures struct {
	w      *window
	now    time.Time
	free   int // calls that can be made at once
	ended  int // index of the next call in w.ended
	others int // number of the next call of w.others, counted from 1
}

// departures returns an iterator that starts at the present time. If more calls can be made at once, it first returns the present
// time for each of them. It ignores the pool of the window.
func (w *window) departures(now time.Time) departures {
	others := w.others.left(now)
	return departures{w: w, now: now, free: w.limit - w.used() - others, others: w.others.n - others + 1}
}

// next returns the time at which one more call can be made. Calls in flight are taken to leave the window one span from now, which
// is the earliest possible time.
func (d *departures) next() time.Time {
	for ; d.free < 0; d.free++ {
		d.leave()
	}
	if d.free > 0 {
		d.free--
		return d.now
	}
	return d.leave()
}

func (d *departures) leave() time.Time {
	w := d.w
	ended, others := d.ended < len(w.ended), d.others <= w.others.n
	switch {
	case others && (!ended || w.others.departure(d.others).Before(w.ended[d.ended].until)):
		d.others++
		return w.others.departure(d.others - 1)
	case ended:
		d.ended++
		return w.ended[d.ended-1].until
	}
	return d.now.Add(w.span)
}
