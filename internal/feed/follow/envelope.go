package follow

// Mode says what a transport may do with the events that wait for a slow reader.
type Mode uint8

const (
	// A new event may replace the newest waiting event of its topic if both events have the mode Replace, and if the waiting event
	// does not contain a complete state (see Envelope.State).
	Replace Mode = iota
	// Append requires that all events arrive.
	Append
	// Delta is the mode of events that contain only the changes since the previous event. If a reader misses such an event, the reader
	// must get the present state again.
	Delta
)

// Cohort identifies readers that get the present state together. The zero value means all readers.
type Cohort uint64

// Envelope tells the transport how to deliver an event.
type Envelope struct {
	// Topic is the id of the token or market of the event, or empty. An event never replaces an event of another topic.
	Topic string
	Mode  Mode
	// State reports that the event contains the complete present state of its topic. Unless its Mode is Append, such an event replaces
	// the waiting events of its topic. Events with Mode Append and the first waiting event with State stay, because the subscription
	// begins with this state.
	State bool
	// Problem reports that the event contains only an error that does not end the stream.
	Problem bool
	// To is the cohort of readers that get the event.
	To Cohort
}
