package stream

import (
	"context"
	"net/http"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// Protocol describes the protocol of a venue's stream.
type Protocol struct {
	// NewCodec returns the codec of a new socket. identity is the user topic of the socket, or the zero topic if the socket is for
	// public topics.
	NewCodec func(identity messages.Topic, env Env) Codec
	// Greets reports whether the venue's first frame is a hello. If Greets is false, the client sends subscriptions as soon as the
	// socket is open.
	Greets bool
	// Snapshots contains the channels, besides that of books, whose subscriptions begin with a snapshot. On others the venue may send
	// nothing until something happens.
	Snapshots []messages.Channel
	// Subject returns what the venue counts as one subscription, such as a market. Topics of the same subject share a connection. If
	// Subject is nil, each topic is a subject.
	Subject func(messages.Topic) string
	// PingEvery is the time between pings, by default 20 s. After Silence without a frame the client closes the connection. Its
	// default is 2.5 times the heartbeat interval in the venue's hello.
	PingEvery, Silence time.Duration
	// Header returns the header of a handshake, which may sign the escaped path of the stream's URL and the current time. Header may
	// be nil.
	Header func(path string) (http.Header, error)
}

// Env contains what a codec gets from the client.
type Env struct {
	// Observer receives the types of frames and deviations from the venue's documentation.
	Observer Observer
	// Market is Config.Market.
	Market func(id string) *market.Market
}

// Codec encodes requests as frames and decodes the frames of one socket. A codec may keep state, such as books or the venue's ids
// of subscriptions. Two goroutines call Encode and Decode concurrently.
type Codec interface {
	// Encode returns the frames of a request, in order. It returns no frames if the venue needs none.
	Encode(r *Request) [][]byte
	// Decode returns the events of a frame, or none if the frame only shows that the venue is alive. The codec may retain the frame. at
	// is the time at which the frame arrived.
	Decode(frame []byte, at time.Time) []Event
}

// Maintainer is a Codec that also works in the background, for example to read lost books over REST.
type Maintainer interface {
	Codec
	// Maintain runs until ctx ends. If it returns an error, the client closes the socket. To deliver events, it calls emit, which
	// waits until no frame is being decoded, calls the function and delivers its events, or does nothing if the socket has ended.
	Maintain(ctx context.Context, emit func(func(now time.Time) []Event)) error
}

// Verb is the type of a request.
type Verb uint8

// The verbs. VerbAuth is used only on connections of user topics.
const (
	VerbSubscribe Verb = iota + 1
	VerbUnsubscribe
	VerbResync
	VerbAuth
	VerbPing
)

// Request is a request to the venue. All topics of a request have the same channel. A resync and a request for a user topic have
// one topic.
type Request struct {
	Verb Verb
	// Rid is the id of the request. The venue's response may contain this id.
	Rid    string
	Topics []messages.Topic
	// Depth is set if the request subscribes to books.
	Depth int
	// Credentials is set for VerbAuth.
	Credentials *market.Credentials
}

// EventKind is the kind of an event.
type EventKind uint8

// The kinds of events.
const (
	// EventLife reports a frame, such as a pong, that only shows that the venue is alive. The session adds it.
	EventLife EventKind = iota
	// EventGarbage reports a frame that is not JSON.
	EventGarbage
	// EventHello is the first frame of a connection. It sets Epoch and Hello.
	EventHello
	// EventAck confirms the request with the id Rid. It sets Topics if the venue lists the topics of the request. If Rid and Topics
	// are empty, EventAck only shows that the venue is alive. If the venue confirms nothing, the codec confirms the topics that it has
	// subscribed.
	EventAck
	// EventError rejects the request with the id Rid, or reports another error if Rid is empty. It sets Code. It sets IDs if the venue
	// names the rejected ids, and RetryAfter if the venue requests a wait.
	EventError
	// EventHeartbeat sets Epoch and Seqs.
	EventHeartbeat
	// EventMessage sets Message.
	EventMessage
	// EventBad reports an unusable message of Topic. The client then requests a snapshot.
	EventBad
)

// Event is an event that the codec has decoded from a frame. A frame may contain several events.
type Event struct {
	Kind EventKind
	// At is the time of the frame. The session sets it.
	At      time.Time
	Rid     string
	Epoch   string
	Hello   Hello
	Seqs    map[messages.Topic]uint64
	Message *messages.Message
	Topic   messages.Topic
	Topics  []messages.Topic
	// maintained reports whether the event comes from Maintainer.Maintain instead of a frame. Such an event does not show that the
	// venue is alive.
	maintained bool

	Code       string
	IDs        []string
	RetryAfter time.Duration
}

// Hello contains the venue's heartbeat interval and limits. A value is 0 if the venue has sent no usable value. Topics is the
// maximum number of topics on a connection. Depth is the maximum number of levels on each side of a book.
type Hello struct {
	Heartbeat       time.Duration
	Topics, Depth   int
	FramesPerSecond int
	FrameBytes      int
}
