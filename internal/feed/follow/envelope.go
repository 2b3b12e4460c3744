package follow

// Mode says what a transport may do with events that wait for a slow reader.
type Mode uint8

const (
	// Replace is for complete events: the newest event of a topic replaces a waiting event of the topic.
	Replace Mode = iota
	// Append is for events that must all arrive.
	Append
	// Delta is for events that contain only what has changed since the previous event. A reader that misses an event gets the
	// present state again.
	Delta
)

// Cohort identifies a group of readers that get the present state together. The zero value means all readers.
type Cohort uint64

// Envelope tells the transport how to deliver an event. It is not part of the payload.
type Envelope struct {
	// Topic is the subject of the event. An event never replaces an event of another topic.
	Topic string
	Mode  Mode
	// State reports that the event contains the complete present state of its topic. The event replaces waiting events of the
	// topic, and no later event replaces it.
	State bool
	// Problem reports that the event contains only an error, and that the stream goes on.
	Problem bool
	// To identifies the readers that get the event.
	To Cohort
}
