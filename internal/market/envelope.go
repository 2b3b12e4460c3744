package market

// Mode says what may become of an event that waits for a reader who is slow.
type Mode uint8

const (
	// Replace is for events whose newest one of a topic says all: it takes the place of the one that waits.
	Replace Mode = iota
	// Append is for events of which each must arrive.
	Append
	// Delta is for events that only make sense after the one before: a reader that misses one starts anew from the present
	// state.
	Delta
)

// Audience tells apart the readers of one execution that wait for the present state. The zero value is everybody.
type Audience uint64

// Envelope is what the way to the readers needs to know of an event; it is no part of its payload.
type Envelope struct {
	// Topic is what the event is about: events of different topics do not replace each other.
	Topic string
	Mode  Mode
	// State tells that the event is the whole present state of its topic: it is not replaced, and takes the place of what
	// waits.
	State bool
	// To is whom the event is for.
	To Audience
}
