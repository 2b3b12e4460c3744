package venue

import (
	"sync"
	"time"

	"oddsgraph/internal/market"
)

const (
	// minFailures failures in a row open a circuit if they concern at least minSubjects different requests or accounts. One
	// request that the venue cannot serve says nothing about the others.
	minFailures = 5
	minSubjects = 3
	// failureWindow is how long a failure counts.
	failureWindow = time.Minute
	// minOpen and maxOpen bound how long a circuit is open. The time doubles with each failed probe.
	minOpen = time.Second
	maxOpen = 30 * time.Second
)

// CircuitState says which calls a circuit lets through.
type CircuitState string

// The states of a circuit.
const (
	// CircuitClosed lets every call through.
	CircuitClosed CircuitState = "closed"
	// CircuitHalfOpen lets one call at a time through, the probe.
	CircuitHalfOpen CircuitState = "half-open"
	// CircuitOpen lets no call through.
	CircuitOpen CircuitState = "open"
)

// Circuit is the state of the circuit breaker of one endpoint.
type Circuit struct {
	// Endpoint is the last segment of the path, as in Observer.
	Endpoint string
	State    CircuitState
	// Until is when an open circuit lets the next call through. It is zero in the other states.
	Until time.Time
	// Opened counts how often the circuit opened. Refused counts the calls that it refused.
	Opened, Refused uint64
}

// breaker is a circuit breaker. It is safe for concurrent use.
//
// It is not failsafe-go's, because a call may end without a verdict: its caller leaves, or the venue reports its rate limit.
// failsafe-go cannot release a probe without a verdict, and it has no clock that tests can set.
type breaker struct {
	endpoint string
	clock    market.Clock
	rand     func() float64
	// onChange is called after each change of the state, with mu held.
	onChange func(Circuit)

	mu       sync.Mutex
	failures int
	last     time.Time
	subjects map[string]struct{}
	// until is zero while the circuit is closed.
	until   time.Time
	probing bool
	// openings counts how often the circuit opened since it was last closed.
	openings int
	// generation grows with each change of the state. Results of calls from an earlier generation are ignored.
	generation      uint64
	opened, refused uint64
}

// verdict is what the result of a call says about the venue.
type verdict uint8

const (
	// verdictNone: the caller left, or the venue reported its rate limit or an error of unknown meaning.
	verdictNone verdict = iota
	// verdictOK: the venue responded.
	verdictOK
	// verdictFailure: the venue failed or did not respond.
	verdictFailure
)

// acquire admits a call or refuses it for wait. After an admitted call the caller must call done with the generation.
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

// refuse returns how long calls are refused, and counts a refused call. It returns 0 if a call would be admitted.
func (b *breaker) refuse() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.remaining()
	if wait > 0 {
		b.refused++
	}
	return wait
}

// remaining returns how long calls are refused from now on. The lock is held.
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

// done takes the verdict on a call that acquire admitted. subject names the request or account of the call.
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
		bound := maxOpen
		if b.openings < 5 { // minOpen << 5 is more than maxOpen
			bound = minOpen << b.openings
		}
		b.until = b.clock.Now().Add(bound/2 + time.Duration(b.rand()*float64(bound/2)))
		b.openings++
		b.opened++
		b.stateChanged()
	}
}

// countFailure counts a failure and reports whether the circuit opens.
func (b *breaker) countFailure(subject string) bool {
	now := b.clock.Now()
	if now.Sub(b.last) > failureWindow {
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

// stateChanged begins a new generation.
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

// Circuits returns the state of all circuit breakers, in a fixed order. Each path has its own breaker, so a failing endpoint
// does not affect the others.
func (c *Client) Circuits() []Circuit {
	out := make([]Circuit, len(c.breakers))
	for i, b := range c.breakers {
		b.mu.Lock()
		out[i] = b.state()
		b.mu.Unlock()
	}
	return out
}
