package stream

import "oddsgraph/internal/market/messages"

// Numbering numbers the messages of each topic on one socket. Codecs use it if the venue does not number the messages of each
// topic. The zero value is ready for use.
type Numbering struct {
	last map[messages.Topic]uint64
	// highest is the greatest number of a message of any ended topic. The numbers of a new topic start above highest. So a topic that
	// is subscribed again does not repeat numbers.
	highest uint64
}

// Next returns the number of the next message of a topic.
func (n *Numbering) Next(t messages.Topic) uint64 {
	last, ok := n.last[t]
	if !ok {
		last = n.highest
	}
	if n.last == nil {
		n.last = make(map[messages.Topic]uint64)
	}
	n.last[t] = last + 1
	return last + 1
}

// Lose skips one number of each topic, and returns the events that report the loss of their states.
func (n *Numbering) Lose(topics ...messages.Topic) (events []Event) {
	for _, t := range topics {
		n.Next(t)
		events = append(events, Event{Kind: EventBad, Topic: t})
	}
	return events
}

// End removes the number of a topic that has ended.
func (n *Numbering) End(t messages.Topic) {
	n.highest = max(n.highest, n.last[t])
	delete(n.last, t)
}
