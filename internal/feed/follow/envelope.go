package follow

// Mode says what a transport may do with an event that waits for a slow reader.
type Mode uint8

const (
	// Replace is for complete events: the newest event of a topic replaces the one that waits.
	Replace Mode = iota
	// Append is for events that must all arrive.
	Append
	// Delta is for events that build on the one before. A reader that misses one starts again from the present state.
	Delta
)

// Cohort identifies the readers of one execution that wait for the present state together. The zero value is all readers.
type Cohort uint64

// Envelope tells the transport how to deliver an event. It is not part of the payload.
type Envelope struct {
	// Topic is the subject of the event. An event never replaces one of another topic.
	Topic string
	Mode  Mode
	// State reports that the event is the complete present state of its topic. It replaces waiting events of the topic, and
	// is not replaced itself.
	State bool
	// To are the readers of the event.
	To Cohort
}
