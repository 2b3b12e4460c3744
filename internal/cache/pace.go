package cache

import "time"

// pace estimates the duration of a call like TCP estimates a round trip (RFC 6298). The zero value has no estimate.
type pace struct {
	known           bool
	mean, deviation time.Duration
}

// add adds the duration of a call.
func (p *pace) add(took time.Duration) {
	if !p.known {
		*p = pace{true, took, took / 2}
		return
	}
	p.deviation += ((p.mean - took).Abs() - p.deviation) / 4
	p.mean += (took - p.mean) / 8
}

// max returns a duration that hardly any call exceeds, or 0 if no duration has been added.
func (p *pace) max() time.Duration { return p.mean + 4*p.deviation }
