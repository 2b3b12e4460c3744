package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// The bounds of a Socket.
const (
	socketQueue      = 8192 // frames
	socketWriteTime  = 10 * time.Second
	maxSocketMessage = 1 << 20 // bytes
)

// Socket is a client's stream at a simulator of another venue. It is safe for concurrent use.
type Socket struct {
	queue chan []byte
	ctx   context.Context
	Close context.CancelFunc
}

// NewSocket returns a socket that queues frames until Serve sends them.
func NewSocket() *Socket {
	s := &Socket{queue: make(chan []byte, socketQueue)}
	s.ctx, s.Close = context.WithCancel(context.Background())
	return s
}

// Push queues a frame. If the queue is full, because the client reads too slowly, Push closes the socket.
func (s *Socket) Push(frame []byte) {
	select {
	case s.queue <- frame:
	default:
		s.Close()
	}
}

// Serve accepts the WebSocket. Until the socket ends, Serve calls receive with each message and sends the queued frames. If
// pingEvery is positive, Serve pings the client.
func (s *Socket) Serve(w http.ResponseWriter, r *http.Request, pingEvery time.Duration, receive func(message []byte)) {
	defer s.Close()
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has written the error response
	}
	defer func() { _ = ws.CloseNow() }() // the client may have left
	ws.SetReadLimit(maxSocketMessage)
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.write(ws, pingEvery)
	}()
	for {
		_, message, err := ws.Read(s.ctx)
		if err != nil {
			break
		}
		receive(message)
	}
	s.Close()
	<-written
}

func (s *Socket) write(ws *websocket.Conn, pingEvery time.Duration) {
	defer s.Close()
	var ping <-chan time.Time
	if pingEvery > 0 {
		ticker := time.NewTicker(pingEvery)
		defer ticker.Stop()
		ping = ticker.C
	}
	send := func(f func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(s.ctx, socketWriteTime)
		defer cancel()
		return f(ctx)
	}
	for {
		var err error
		select {
		case frame := <-s.queue:
			err = send(func(ctx context.Context) error { return ws.Write(ctx, websocket.MessageText, frame) })
		case <-ping:
			err = send(ws.Ping)
		case <-s.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Encode returns the JSON of an answer or a message of a simulator.
func Encode(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // impossible: all values of the simulators have a JSON form
	}
	return b
}
