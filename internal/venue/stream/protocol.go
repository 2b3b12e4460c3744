package stream

import (
	"time"

	"oddsgraph/internal/market"
)

// verb is what a request asks for.
type verb uint8

const (
	verbSubscribe verb = iota + 1
	verbUnsubscribe
	verbResync
	verbAuth
	verbPing
)

// request is a frame to the venue. Its topics are of one channel; a resync and a user topic stand alone.
type request struct {
	verb   verb
	rid    string
	topics []market.Topic
	// depth goes with subscriptions to books.
	depth int
	// creds go with auth.
	creds *market.Credentials
}

// eventKind sorts what frames say.
type eventKind uint8

const (
	// eventLife says only that the venue lives.
	eventLife eventKind = iota
	// eventGarbage is what is not JSON.
	eventGarbage
	// eventHello opens a connection: hello.
	eventHello
	// eventAck answers the request rid, and lists topics where the venue does.
	eventAck
	// eventPong answers the ping rid.
	eventPong
	// eventError refuses the request rid, or says something in general: code, and ids where the venue names them.
	eventError
	// eventHeartbeat has epoch and seqs.
	eventHeartbeat
	// eventMessage has message.
	eventMessage
	// eventBad is a message of topic that cannot be used.
	eventBad
)

// event is one thing that a frame says.
type event struct {
	kind    eventKind
	at      time.Time
	rid     string
	epoch   string
	hello   hello
	seqs    map[market.Topic]uint64
	message *market.Message
	topic   market.Topic
	topics  []market.Topic

	code       string
	ids        []string
	retryAfter time.Duration
}

// hello is what the venue says of itself; 0 where it does not say.
type hello struct {
	heartbeat       time.Duration
	topics, depth   int
	framesPerSecond int
	frameBytes      int
}
