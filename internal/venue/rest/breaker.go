package rest

import (
	"sync"
	"time"

	"oddsgraph/internal/market"
)

const (
	// A circuit opens after minFailures failures in a row, if these failures belong to at least minSubjects different requests or
	// accounts. A single request that always fails does not mean that the endpoint is down.
	minFailures = 5
	minSubjects = 3
	// If no call fails for FailureWindow, the earlier failures no longer count.
	FailureWindow = time.Minute
	// minOpen is the bound of the time for which a circuit is open at first.
	minOpen = time.Second
)

// openBackoff says for how long a circuit is open. Each failed probe counts as a failure.
var openBackoff = market.Backoff{Min: minOpen, Max: MaxBackoff}

// CircuitState says which calls a circuit admits.
type CircuitState string

// The states of a circuit.
const (
	// CircuitClosed means that the circuit admits every call.
	CircuitClosed CircuitState = "closed"
	// CircuitHalfOpen means that the circuit admits one call at a time, the probe.
	CircuitHalfOpen CircuitState = "half-open"
	// CircuitOpen means that the circuit refuses every call.
	CircuitOpen CircuitState = "open"
)

// Circuit is the state of the circuit breaker of one endpoint.
type Circuit struct {
	// Endpoint is the name of the endpoint, as in Observer. If several endpoints share a path, it is the name of the first of them.
	Endpoint string
	State    CircuitState
	// Until is the time at which an open circuit admits the next call. It is zero in the states CircuitClosed and CircuitHalfOpen.
	Until time.Time
	// Opened is the number of times that the circuit has opened. Refused is the number of calls that the circuit has refused.
	Opened, Refused uint64
}

// breaker is a circuit breaker. It is safe for concurrent use.
//
// A probe may end without a verdict, because its context ends or the venue reports its rate limit. Another call must then be able
// to become the probe. The package failsafe-go does not support this, and its clock cannot be replaced in tests.
type breaker struct {
	endpoint string
	clock    market.Clock
	rand     func() float64
	// onChange is called with mu held when the circuit has opened or closed. It is not called when an open circuit becomes half-open.
	onChange func(Circuit)

	// mu guards the fields below. All methods except acquire, refuse and done are called with it held.
	mu       sync.Mutex
	failures int
	last     time.Time
	subjects map[string]struct{}
	// until is the time at which the next probe is admitted. It is zero if the circuit is closed.
	until   time.Time
	probing bool
	// openings is the number of times that the circuit has opened since it was last closed.
	openings int
	// generation increases when the circuit opens or closes. The results of calls that started in an earlier generation are
	// ignored.
	generation      uint64
	opened, refused uint64
}

// verdict says what the result of a call shows about the venue.
type verdict uint8

const (
	// verdictNone means that the context of the call ended, or that the venue reported its rate limit or an error of unknown
	// meaning.
	verdictNone verdict = iota
	// verdictOK means that the venue works.
	verdictOK
	// verdictFailure means that the venue failed or did not respond.
	verdictFailure
)

// acquire asks the circuit to admit a call. If the circuit admits the call, ok is true, and the calling function must pass
// generation to b.done after the call. If the circuit refuses the call, ok is false, and wait is the time for which the circuit
// refuses calls.
func (b *breaker) acquire() (generation uint64, wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait = b.remaining(); wait > 0 {
		b.refused++
		return 0, wait, false
	}
	b.probing = !b.until.IsZero()
	return b.generation, 0, true
}

// refuse returns the time for which the circuit refuses calls. If it is not 0, a call counts as refused.
func (b *breaker) refuse() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.remaining()
	if wait > 0 {
		b.refused++
	}
	return wait
}

// remaining returns the time for which the circuit refuses calls. While a probe is in flight, this time is unknown, and remaining
// returns minOpen.
func (b *breaker) remaining() time.Duration {
	switch wait := b.until.Sub(b.clock.Now()); {
	case b.until.IsZero():
		return 0
	case wait > 0:
		return wait
	case b.probing:
		return minOpen
	}
	return 0
}

// done records the verdict on a call that acquire has admitted. subject identifies the request or account of the call.
func (b *breaker) done(generation uint64, v verdict, subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation != b.generation {
		return
	}
	probe := b.probing
	b.probing = false
	switch {
	case v == verdictOK && probe:
		b.until, b.openings = time.Time{}, 0
		b.stateChanged()
	case v == verdictOK:
		b.resetFailures()
	case v == verdictFailure && (probe || b.countFailure(subject)):
		b.openings++
		b.until = b.clock.Now().Add(openBackoff.Wait(b.openings, b.rand()))
		b.opened++
		b.stateChanged()
	}
}

func (b *breaker) countFailure(subject string) bool {
	now := b.clock.Now()
	if now.Sub(b.last) > FailureWindow {
		b.resetFailures()
	}
	b.last = now
	b.failures++
	if len(b.subjects) < minSubjects {
		if b.subjects == nil {
			b.subjects = make(map[string]struct{}, minSubjects)
		}
		b.subjects[subject] = struct{}{}
	}
	return b.failures >= minFailures && len(b.subjects) >= minSubjects
}

func (b *breaker) resetFailures() {
	b.failures = 0
	clear(b.subjects)
}

func (b *breaker) stateChanged() {
	b.generation++
	b.resetFailures()
	b.onChange(b.state())
}

func (b *breaker) state() Circuit {
	s := Circuit{Endpoint: b.endpoint, State: CircuitClosed, Opened: b.opened, Refused: b.refused}
	switch {
	case b.until.IsZero():
	case b.until.After(b.clock.Now()):
		s.State, s.Until = CircuitOpen, b.until
	default:
		s.State = CircuitHalfOpen
	}
	return s
}

// Circuits returns the state of all circuit breakers, in a fixed order. Each path has its own breaker.
func (c *Client) Circuits() []Circuit {
	out := make([]Circuit, len(c.breakers))
	for i, b := range c.breakers {
		b.mu.Lock()
		out[i] = b.state()
		b.mu.Unlock()
	}
	return out
}
