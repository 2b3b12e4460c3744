package cache

import "time"

// pace estimates how long one call is under way, as TCP does for a round trip (RFC 6298). The zero value knows nothing.
type pace struct {
	known           bool
	mean, deviation time.Duration
}

// add takes in how long a call was under way.
func (p *pace) add(took time.Duration) {
	if !p.known {
		*p = pace{true, took, took / 2}
		return
	}
	p.deviation += ((p.mean - took).Abs() - p.deviation) / 4
	p.mean += (took - p.mean) / 8
}

// most is how long nearly every call is under way; 0 while no call is known.
func (p *pace) most() time.Duration { return p.mean + 4*p.deviation }
