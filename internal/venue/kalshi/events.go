package kalshi

import (
	"time"

	"oddsgraph/internal/market/messages"
)

// verb is the type of a request of the socket's session.
type verb uint8

const (
	verbSubscribe verb = iota + 1
	verbUnsubscribe
	verbResync
)

// request is a request of the session. All its topics are of the same channel. A resync has one topic.
type request struct {
	Verb   verb
	Rid    string
	Topics []messages.Topic
}

// eventKind is the kind of an event. It says which fields are set.
type eventKind uint8

const (
	// eventLife is for a frame that only shows that the venue is alive.
	eventLife eventKind = iota
	// eventGarbage is for a frame that is not JSON.
	eventGarbage
	// eventAck confirms the topics of the request Rid.
	eventAck
	// eventError rejects the request Rid with Code.
	eventError
	// eventMessage has a message.
	eventMessage
	// eventBad reports that the state of Topic is lost.
	eventBad
)

// event is what a frame says to the session.
type event struct {
	Kind    eventKind
	At      time.Time
	Rid     string
	Message *messages.Message
	Topic   messages.Topic
	Topics  []messages.Topic
	Code    string
}
