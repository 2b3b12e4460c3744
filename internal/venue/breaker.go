package venue

import (
	"sync"
	"time"

	"oddsgraph/internal/market"
)

const (
	// tripAfter is how many failures in a row open a circuit, when they are of at least tripSubjects different requests or
	// accounts: what the venue cannot do for one of them says nothing about the others.
	tripAfter    = 5
	tripSubjects = 3
	// tripWithin is how long a failure counts.
	tripWithin = time.Minute
	// leastOpen and mostOpen bound how long a circuit stays open; it doubles with each probe that fails.
	leastOpen = time.Second
	mostOpen  = 30 * time.Second
)

// CircuitState is what a circuit lets through.
type CircuitState string

// The states of a circuit.
const (
	// CircuitClosed lets every call through.
	CircuitClosed CircuitState = "closed"
	// CircuitHalfOpen lets one call through at a time, to see whether the venue is back.
	CircuitHalfOpen CircuitState = "half-open"
	// CircuitOpen lets no call through.
	CircuitOpen CircuitState = "open"
)

// Circuit is how the breaker of one endpoint stands.
type Circuit struct {
	// Endpoint is the last segment of the path, as the Observer names it.
	Endpoint string
	State    CircuitState
	// Until is when an open circuit lets the next call through; zero in the other states.
	Until time.Time
	// Opened counts how often it opened, Refused the calls that it did not let through.
	Opened, Refused uint64
}

// breaker is a circuit breaker. It is safe for concurrent use.
//
// It is ours because a call may end without a verdict, when its caller leaves or the venue only says that it was too
// often: failsafe-go's has no way to give a probe back then, and a clock of its own.
type breaker struct {
	endpoint string
	clock    market.Clock
	rand     func() float64
	// changed is told of every change of the state.
	changed func(Circuit)

	mu       sync.Mutex
	failures int
	last     time.Time
	subjects map[string]struct{}
	// until is zero while the circuit is closed.
	until   time.Time
	probing bool
	// tries counts the times that it opened in a row.
	tries int
	// era grows with each change of the state, so that calls from before it have no say.
	era             uint64
	opened, refused uint64
}

// verdict is what a call says about the venue.
type verdict uint8

const (
	// undecided: nothing.
	undecided verdict = iota
	// well: it answered.
	well
	// failing: it failed or did not answer.
	failing
)

// enter asks for leave to make a call. Without it, wait is how long there will be none; with it, leave must be called.
func (b *breaker) enter() (era uint64, wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait = b.refuses(); wait > 0 {
		b.refused++
		return 0, wait, false
	}
	b.probing = !b.until.IsZero()
	return b.era, 0, true
}

// refusal returns how long a call would be refused at present, or 0.
func (b *breaker) refusal() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.refuses()
	if wait > 0 {
		b.refused++
	}
	return wait
}

func (b *breaker) refuses() time.Duration {
	switch wait := b.until.Sub(b.clock.Now()); {
	case b.until.IsZero():
		return 0
	case wait > 0:
		return wait
	case b.probing:
		return leastOpen
	}
	return 0
}

// leave takes the verdict of a call that enter let through. subject names what the call was for.
func (b *breaker) leave(era uint64, v verdict, subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if era != b.era {
		return
	}
	probe := b.probing
	b.probing = false
	switch {
	case v == well && probe:
		b.until, b.tries = time.Time{}, 0
		b.turn()
	case v == well:
		b.forget()
	case v == failing && (probe || b.trips(subject)):
		bound := mostOpen
		if b.tries < 5 { // 1 s × 2⁵ is past the end
			bound = leastOpen << b.tries
		}
		b.until = b.clock.Now().Add(bound/2 + time.Duration(b.rand()*float64(bound/2)))
		b.tries++
		b.opened++
		b.turn()
	}
}

// trips counts a failure and tells whether it is the one that opens the circuit.
func (b *breaker) trips(subject string) bool {
	now := b.clock.Now()
	if now.Sub(b.last) > tripWithin {
		b.forget()
	}
	b.last = now
	b.failures++
	if len(b.subjects) < tripSubjects {
		if b.subjects == nil {
			b.subjects = make(map[string]struct{}, tripSubjects)
		}
		b.subjects[subject] = struct{}{}
	}
	return b.failures >= tripAfter && len(b.subjects) >= tripSubjects
}

func (b *breaker) forget() {
	b.failures = 0
	clear(b.subjects)
}

// turn begins a new era after the state has changed.
func (b *breaker) turn() {
	b.era++
	b.forget()
	b.changed(b.state())
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

// Circuits returns how the breaker of each endpoint stands, in a fixed order. Each endpoint has one of its own, so that one
// that fails or hangs costs no other.
func (c *Client) Circuits() []Circuit {
	out := make([]Circuit, len(c.breakers))
	for i, b := range c.breakers {
		b.mu.Lock()
		out[i] = b.state()
		b.mu.Unlock()
	}
	return out
}
