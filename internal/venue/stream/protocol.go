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
	// Greets reports that the venue's first frame is a hello. Otherwise topics are subscribed as soon as the socket is open.
	Greets bool
	// Acknowledges reports that the venue confirms subscriptions. Otherwise a topic counts as confirmed when its subscription was
	// sent.
	Acknowledges bool
	// Resyncs reports that the venue sends a snapshot on request. Otherwise the client subscribes to the topic again to get a
	// snapshot.
	Resyncs bool
	// Subject returns the name of a topic's subject: the unit that the venue counts as one subscription, such as a market. Topics
	// of the same subject share a connection. If Subject is nil, each topic is its own subject.
	Subject func(messages.Topic) string
	// PingEvery is the time between pings; 0 means 20 s. Silence is the greatest time without a frame; 0 means 2.5 heartbeats of
	// the venue's hello.
	PingEvery, Silence time.Duration
	// Header returns the header of a handshake; nil means none. It is called for each connection, so it may sign the time.
	Header func() (http.Header, error)
}

// Env is what the client provides to a codec.
type Env struct {
	// Observer receives the types of frames and deviations from the venue's documentation.
	Observer Observer
	// Tokens returns the YES and NO tokens of a market, as Config.Tokens.
	Tokens func(marketID string) (yes, no string, ok bool)
}

// Codec translates between topics and the frames of one socket. A codec may keep state, such as the venue's ids of subscriptions
// or its books. Encode and Decode are called by two goroutines.
type Codec interface {
	// Encode returns the frames of a request, in order. No frames mean that the venue needs none for the request.
	Encode(r *Request) [][]byte
	// Decode returns the events of a frame. The codec may retain the frame. at is the time at which the frame arrived.
	Decode(frame []byte, at time.Time) []Event
}

// Maintainer is a Codec that does work of its own, such as repairs by REST.
type Maintainer interface {
	Codec
	// Maintain runs until ctx ends. emit calls a function and delivers its events before the next frame is decoded. If the socket
	// has ended, emit returns at once. An error of Maintain ends the socket.
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

// Request is a frame to the venue. All its topics are of the same channel. A resync or a user subscription has one topic.
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
	// EventLife is for a frame that only shows that the venue is alive, such as a pong.
	EventLife EventKind = iota
	// EventGarbage is for a frame that is not JSON.
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
	// EventBad is for an unusable message of Topic. The client requests a snapshot.
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
	// maintained reports that the event does not come from a frame, so it does not show that the venue is alive.
	maintained bool

	Code       string
	IDs        []string
	RetryAfter time.Duration
}

// Hello contains the venue's heartbeat interval and limits; 0 means unknown. Topics is the greatest number of topics on a
// connection. Depth is the greatest number of levels on each side of a book.
type Hello struct {
	Heartbeat       time.Duration
	Topics, Depth   int
	FramesPerSecond int
	FrameBytes      int
}
