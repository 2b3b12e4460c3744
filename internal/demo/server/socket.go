package server

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Limits are the bounds of the streams of a venue. Every is the time between calls of [Client.Beat]; 0 means that there are none.
type Limits struct {
	Connections int
	FrameBytes  int // size of a frame from a client
	Queue       int // frames that wait to be written
	Slow        int // code that closes a stream whose queue is full
	Write       time.Duration
	Goodbye     time.Duration // time for the client to answer a close frame
	Every       time.Duration
}

// StandardLimits are the usual limits.
var StandardLimits = Limits{
	Connections: 10_000, FrameBytes: 1 << 20, Queue: 8192, Slow: int(websocket.StatusPolicyViolation),
	Write: 10 * time.Second, Goodbye: 2 * time.Second,
}

// Client is what a dialect knows of a stream. Begin is called first, and End last. Receive is called with each message of the client.
// Only Beat is called by another goroutine than the others.
type Client interface {
	Begin()
	Receive(message []byte, text bool)
	Beat()
	End()
}

// Begin, Beat and End do nothing. A client that embeds its socket needs only those that it has a use for.
func (*Socket) Begin() {}
func (*Socket) Beat()  {}
func (*Socket) End()   {}

// Sockets are the streams of a venue. The zero value with limits is ready to use.
type Sockets struct {
	Limits Limits
	Counts *Counts

	mu      sync.Mutex
	closed  bool
	open    map[*Socket]struct{}
	serving sync.WaitGroup
}

// Frame is a message to a client. All receivers share its bytes. Its kind is for the counts.
type Frame struct {
	Kind string
	Data []byte
}

// Socket is a client's stream. The goroutine of the HTTP request reads messages and a second goroutine writes frames. Push never
// waits, so it may be called with locks held.
type Socket struct {
	Client Client

	set     *Sockets
	ws      *websocket.Conn
	raw     net.Conn
	wake    chan struct{} // capacity 1; signals work for the writer
	gone    chan struct{} // closed when nothing more can be read
	written chan struct{} // closed when the writer has ended

	mu     sync.Mutex // guards the fields below; locked after all other mutexes
	queue  []Frame
	ending bool
	code   int // close code to send when the queue is empty
	reason string
}

// Serve accepts a stream and serves it until it ends. It returns false, without an answer, if the venue is closed or has too many
// streams.
func (s *Sockets) Serve(w http.ResponseWriter, r *http.Request, open func(*Socket) Client) bool {
	c := &Socket{set: s, wake: make(chan struct{}, 1), gone: make(chan struct{}), written: make(chan struct{})}
	c.Client = open(c)
	if !s.admit(c) {
		return false
	}
	defer s.dismiss(c)
	hijacked := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(hijacked, r, nil)
	if err != nil {
		return true // Accept has written the error response
	}
	c.ws, c.raw = ws, hijacked.conn
	c.serve()
	return true
}

func (s *Sockets) admit(c *Socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= s.Limits.Connections {
		return false
	}
	if s.open == nil {
		s.open = make(map[*Socket]struct{})
	}
	s.open[c] = struct{}{}
	s.serving.Add(1)
	return true
}

func (s *Sockets) dismiss(c *Socket) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	s.serving.Done()
}

// All returns the open streams.
func (s *Sockets) All() []*Socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Socket, 0, len(s.open))
	for c := range s.open {
		all = append(all, c)
	}
	return all
}

// Close ends all streams with code 1001 and returns when they have ended. It disconnects clients that do not answer in time. After
// Close no stream opens. Close may be called more than once.
func (s *Sockets) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, c := range s.All() {
		c.Shut(int(websocket.StatusGoingAway), "the venue closes", true)
	}
	s.serving.Wait()
}

func (c *Socket) serve() {
	c.set.Counts.Add(Opened, "", 1)
	c.ws.SetReadLimit(int64(c.set.Limits.FrameBytes))
	c.Client.Begin()
	go c.write()
	for {
		kind, message, err := c.ws.Read(context.Background())
		if err != nil {
			break
		}
		c.mu.Lock()
		ending := c.ending
		c.mu.Unlock()
		if !ending {
			c.Client.Receive(message, kind == websocket.MessageText)
		}
	}
	c.Client.End()
	close(c.gone)
	<-c.written
	_ = c.ws.CloseNow()
}

// Push queues a frame. If too many frames wait, Push closes the stream.
func (c *Socket) Push(f Frame) {
	defer c.signal()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) >= c.set.Limits.Queue {
		c.finish(c.set.Limits.Slow, "frames are read too slowly", true)
	}
	if !c.ending {
		c.queue = append(c.queue, f)
	}
}

// Shut closes the stream with a code. If immediate is false, the writer first sends the waiting frames.
func (c *Socket) Shut(code int, reason string, immediate bool) {
	defer c.signal()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish(code, reason, immediate)
}

func (c *Socket) finish(code int, reason string, immediate bool) {
	if c.ending {
		return
	}
	c.ending, c.code, c.reason = true, code, reason
	if immediate {
		c.queue = nil
	}
}

func (c *Socket) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next removes and returns the next frame of the queue. over is true if no more frames will come.
func (c *Socket) next() (f Frame, ok, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return f, false, c.ending
	}
	f, c.queue = c.queue[0], c.queue[1:]
	return f, true, false
}

// write sends queued frames and calls Beat until the stream ends.
func (c *Socket) write() {
	defer close(c.written)
	var beat <-chan time.Time
	if every := c.set.Limits.Every; every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		beat = ticker.C
	}
	for {
		f, ok, over := c.next()
		switch {
		case ok:
			_ = c.raw.SetWriteDeadline(time.Now().Add(c.set.Limits.Write))
			if c.ws.Write(context.Background(), websocket.MessageText, f.Data) != nil {
				c.cut()
				return
			}
			_ = c.raw.SetWriteDeadline(time.Time{}) // pings and pongs have no deadline
			c.set.Counts.Add(Frames, f.Kind, 1)
			continue
		case over:
			c.close()
			return
		}
		select {
		case <-c.wake:
		case <-beat:
			c.Client.Beat()
		case <-c.gone:
			c.cut()
			return
		}
	}
}

// Ping pings the client. Only Beat may call it.
func (c *Socket) Ping() {
	ctx, cancel := context.WithTimeout(context.Background(), c.set.Limits.Write)
	defer cancel()
	if c.ws.Ping(ctx) != nil {
		c.Shut(0, "", true)
	}
}

// close sends a close frame and disconnects a client that doesn't answer.
func (c *Socket) close() {
	if c.code == 0 {
		_ = c.raw.Close()
		return
	}
	c.set.Counts.Add(Closes, strconv.Itoa(c.code), 1)
	_ = c.raw.SetDeadline(time.Now().Add(c.set.Limits.Goodbye))
	_ = c.ws.Close(websocket.StatusCode(c.code), c.reason)
}

// cut closes the connection without a close frame.
func (c *Socket) cut() {
	c.Shut(0, "", true)
	_ = c.raw.Close()
}

// hijacker stores the connection that a handler hijacks, because deadlines need it.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}
