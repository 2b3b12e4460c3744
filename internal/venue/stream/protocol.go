package stream

import (
	"context"
	"net/http"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// Protocol describes the protocol of a venue's stream. Documented returns the protocol that generic venues use.
type Protocol struct {
	// NewCodec returns the codec of a new socket. identity is the user topic of the socket, or the zero topic.
	NewCodec func(identity messages.Topic, env Env) Codec
	// Greets reports that the venue's first frame is a hello. If Greets is false, the client subscribes topics as soon as the
	// socket is open.
	Greets bool
	// Acknowledges reports that the venue confirms subscriptions. If Acknowledges is false, the client treats a subscription as
	// confirmed when it has sent the subscription.
	Acknowledges bool
	// Resyncs reports that the venue sends a snapshot on request. If Resyncs is false, the client subscribes to the topic again to
	// get a snapshot.
	Resyncs bool
	// Subject returns the name of a topic's subject. A subject is what the venue counts as one subscription, such as a market.
	// Topics of the same subject share a connection. If Subject is nil, each topic is its own subject.
	Subject func(messages.Topic) string
	// PingEvery is the time between pings; 0 means 20 s. Silence is the greatest time without a frame; 0 means 2.5 times the
	// heartbeat interval in the venue's hello.
	PingEvery, Silence time.Duration
	// Header returns the header of a handshake; nil means none. The client calls Header for each handshake, so the header may
	// contain a signature of the current time.
	Header func() (http.Header, error)
}

// Env is what the client provides to a codec.
type Env struct {
	// Observer receives the types of frames and deviations from the venue's documentation.
	Observer Observer
	// Tokens is the function in Config.Tokens, which returns the YES and NO tokens of a market.
	Tokens func(marketID string) (yes, no string, ok bool)
}

// Codec translates between topics and the frames of one socket. A codec may keep state, such as books or the venue's ids of
// subscriptions. Encode and Decode are called concurrently by two goroutines.
type Codec interface {
	// Encode returns the frames of a request, in order. It returns no frames if the venue needs none for the request.
	Encode(r *Request) [][]byte
	// Decode returns the events of a frame. The codec may retain the frame. at is the time at which the frame arrived.
	Decode(frame []byte, at time.Time) []Event
}

// Maintainer is a Codec that also works in the background, for example to read lost books over REST.
type Maintainer interface {
	Codec
	// Maintain runs until ctx ends. emit calls a function and delivers the events that the function returns before the next frame
	// is decoded. If the socket has ended, emit does not call the function. An error of Maintain ends the socket.
	Maintain(ctx context.Context, emit func(func(now time.Time) []Event)) error
}

// Verb is the type of a request.
type Verb uint8

// The verbs. Only venues with user data get VerbAuth.
const (
	VerbSubscribe Verb = iota + 1
	VerbUnsubscribe
	VerbResync
	VerbAuth
	VerbPing
)

// Request is a frame to the venue. All topics of a request are of the same channel. A request for a resync or for user data has one
// topic.
type Request struct {
	Verb   Verb
	Rid    string
	Topics []messages.Topic
	// Depth is set for subscriptions of books.
	Depth int
	// Credentials is set for VerbAuth.
	Credentials *market.Credentials
}

// EventKind is the kind of an event.
type EventKind uint8

// The kinds of events.
const (
	// EventLife means that a frame, such as a pong, only shows that the venue is alive.
	EventLife EventKind = iota
	// EventGarbage means that a frame is not JSON.
	EventGarbage
	// EventHello is the first frame of a connection. It sets Epoch and Hello.
	EventHello
	// EventAck confirms the request Rid. It sets Topics if the venue lists them.
	EventAck
	// EventError rejects the request Rid, or reports an error that belongs to no request. It sets Code, and IDs if the venue names
	// them.
	EventError
	// EventHeartbeat sets Epoch and Seqs.
	EventHeartbeat
	// EventMessage sets Message.
	EventMessage
	// EventBad means that a message of Topic is unusable. The client requests a snapshot.
	EventBad
)

// Event is a decoded frame. A frame that is a list has an Event for each element.
type Event struct {
	Kind    EventKind
	At      time.Time
	Rid     string
	Epoch   string
	Hello   Hello
	Seqs    map[messages.Topic]uint64
	Message *messages.Message
	Topic   messages.Topic
	Topics  []messages.Topic
	// maintained reports that the event comes from Maintainer.Maintain, not from a frame. Such an event does not show that the
	// venue is alive.
	maintained bool

	Code       string
	IDs        []string
	RetryAfter time.Duration
}

// Hello contains the venue's heartbeat interval and limits. A value of 0 means that the venue has not sent the value. Topics is the
// greatest number of topics on a connection. Depth is the greatest number of levels on each side of a book.
type Hello struct {
	Heartbeat       time.Duration
	Topics, Depth   int
	FramesPerSecond int
	FrameBytes      int
}
