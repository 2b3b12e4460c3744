package demo

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// StreamPath is the path of the venue's WebSocket.
const StreamPath = "/ws"

// The close codes of the venue's stream that RFC 6455 does not define. The comments say what a client should do.
const (
	// CloseCredentials: the credentials were refused or have expired. A retry with the same credentials is useless.
	CloseCredentials = 4001
	// CloseSlow: the client read too slowly and has lost frames. It may reconnect at once.
	CloseSlow = 4002
	// CloseShed: the venue restarts or sheds load. Clients should reconnect after a random time of up to 10 seconds.
	CloseShed = 4003
	// CloseAbuse: the client repeatedly exceeded a limit. It should reconnect after 60 seconds.
	CloseAbuse = 4008
)

// streamLimits are the bounds of the stream. The field connections limits the whole venue. The other fields limit each connection.
type streamLimits struct {
	connections     int
	topics          int
	framesPerSecond int // frames from the client; beyond this rate, requests are refused, and beyond twice this rate, the connection is closed
	frameBytes      int // size of a frame from the client in bytes
	queue           int // frames that wait to be written
	queueBytes      int // bytes of the waiting frames; a single waiting frame may be larger
	write           time.Duration
	goodbye         time.Duration // time for the client to answer a close frame
}

var standardLimits = streamLimits{
	connections: 10_000, topics: 500, framesPerSecond: 20, frameBytes: 64 << 10,
	queue: 1000, queueBytes: 1 << 20, write: 10 * time.Second, goodbye: 2 * time.Second,
}

const (
	heartbeat    = 15 * time.Second
	maxBeatIDs   = 100 // identifiers of each channel in one heartbeat
	retryConnect = "5" // seconds
)

type streams struct {
	limits streamLimits
	counts streamCounts

	// Guarded by the venue's lock.
	users      []*topic
	openTopics [channels]int // number of topics with subscribers
	subs       [channels]int // number of subscriptions

	mu      sync.Mutex // locked after the venue's lock
	closed  bool
	conns   map[*streamConn]struct{}
	serving sync.WaitGroup
}

func (v *Venue) serveStream(w http.ResponseWriter, r *http.Request) {
	c := &streamConn{
		v: v, wake: make(chan struct{}, 1), drained: make(chan struct{}, 1), gone: make(chan struct{}), written: make(chan struct{}),
		subs: make(map[topicKey]*subscription),
	}
	if !v.stream.admit(c) {
		a := newAnswer()
		defer a.release()
		a.header.Set("Retry-After", retryConnect)
		a.fail(&apiError{http.StatusServiceUnavailable, codeUnavailable, "the stream takes no more connections"})
		a.send(w)
		return
	}
	defer v.stream.dismiss(c)
	hijacked := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(hijacked, r, nil)
	if err != nil {
		return // Accept has written the error response
	}
	c.ws, c.raw = ws, hijacked.conn
	c.serve()
}

// admit adds a new connection. It returns false if the venue is closed or has too many connections.
func (st *streams) admit(c *streamConn) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed || len(st.conns) >= st.limits.connections {
		return false
	}
	if st.conns == nil {
		st.conns = make(map[*streamConn]struct{})
	}
	st.conns[c] = struct{}{}
	st.serving.Add(1)
	return true
}

func (st *streams) dismiss(c *streamConn) {
	st.mu.Lock()
	delete(st.conns, c)
	st.mu.Unlock()
	st.serving.Done()
}

func (st *streams) all() []*streamConn {
	st.mu.Lock()
	defer st.mu.Unlock()
	conns := make([]*streamConn, 0, len(st.conns))
	for c := range st.conns {
		conns = append(conns, c)
	}
	return conns
}

// Close ends all streams with code 1001 and returns when they have ended. It disconnects clients that do not answer within two
// seconds. After Close no stream opens, but the venue still serves the REST API. Close may be called more than once.
func (v *Venue) Close() {
	v.stream.mu.Lock()
	v.stream.closed = true
	v.stream.mu.Unlock()
	for _, c := range v.stream.all() {
		c.end(int(websocket.StatusGoingAway), "the venue closes", true)
	}
	v.stream.serving.Wait()
}

// Restart begins a new epoch, as after a crash. All sequence numbers start again; prices, books and wallets do not change. If the
// code is not 0, the venue closes all streams with the code. If the code is 0, the streams stay open and get a new hello and the
// present state of each topic.
func (v *Venue) Restart(code int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.epoch = newEpoch()
	v.lag.clear()
	for _, in := range v.listing.instruments {
		in.bookSeq, in.priceSeq = 1, 1
	}
	for _, t := range v.listing.tokens {
		t.tape.seq = 1
	}
	for _, m := range v.listing.markets {
		m.seq = 1
	}
	for _, w := range v.accounts {
		w.seq = 0
	}
	v.derived.each(func(w *wallet) { w.seq = 0 })
	for _, t := range v.stream.users {
		t.wallet.seq = 1
	}
	for _, c := range v.stream.all() {
		if code != 0 {
			c.end(code, "the venue restarts", true)
		} else if c.greeted.Load() {
			c.greet()
			for _, s := range c.subs {
				s.group.sendSnapshot(c)
			}
		}
	}
}

// hijacker stores the connection that a handler hijacks. Deadlines and resets need the connection.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}
