package stream

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// verb is the type of a request.
type verb uint8

const (
	verbSubscribe verb = iota + 1
	verbUnsubscribe
	verbResync
	verbAuth
	verbPing
)

// request is a frame to the venue. All its topics are of the same channel. A resync or a user subscription has one topic.
type request struct {
	verb   verb
	rid    string
	topics []messages.Topic
	// depth is set for subscriptions of books.
	depth int
	// creds is set for auth.
	creds *market.Credentials
}

// eventKind is the kind of an event.
type eventKind uint8

const (
	// eventLife is for a frame that only shows that the venue is alive, such as a pong.
	eventLife eventKind = iota
	// eventGarbage is for a frame that is not JSON.
	eventGarbage
	// eventHello is the first frame of a connection. It sets epoch and hello.
	eventHello
	// eventAck confirms the request rid. It sets topics if the venue lists them.
	eventAck
	// eventError rejects the request rid, or reports an error that belongs to no request. It sets code, and ids if the venue names
	// them.
	eventError
	// eventHeartbeat sets epoch and seqs.
	eventHeartbeat
	// eventMessage sets message.
	eventMessage
	// eventBad is for an unusable message of topic.
	eventBad
)

// event is a decoded frame, or an element of a frame that is a list.
type event struct {
	kind    eventKind
	at      time.Time
	rid     string
	epoch   string
	hello   hello
	seqs    map[messages.Topic]uint64
	message *messages.Message
	topic   messages.Topic
	topics  []messages.Topic

	code       string
	ids        []string
	retryAfter time.Duration
}

// hello contains the venue's heartbeat interval and limits; 0 means unknown. topics is the greatest number of topics on a
// connection. depth is the greatest number of levels on each side of a book.
type hello struct {
	heartbeat       time.Duration
	topics, depth   int
	framesPerSecond int
	frameBytes      int
}
