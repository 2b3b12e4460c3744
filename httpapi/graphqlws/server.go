package graphqlws

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
)

// Subprotocol is the name of the protocol in the handshake.
const Subprotocol = "graphql-transport-ws"

// These are the close codes of the protocol (44xx) and of WebSocket (10xx). WebSocket codes are used if the protocol has no code.
const (
	codeBadRequest     websocket.StatusCode = 4400
	codeUnauthorized   websocket.StatusCode = 4401
	codeForbidden      websocket.StatusCode = 4403
	codeSubprotocol    websocket.StatusCode = 4406
	codeInitTimeout    websocket.StatusCode = 4408
	codeSubscriber     websocket.StatusCode = 4409
	codeManyInits      websocket.StatusCode = 4429
	codeTryAgainLater  websocket.StatusCode = 1013
	codeServiceRestart websocket.StatusCode = 1012
)

// Operator authenticates clients and executes their operations. It must be safe for concurrent use.
type Operator interface {
	// Client returns what the limits count the client in ctx for. The result may change when the venue accepts the client's
	// credentials.
	Client(ctx context.Context) quota.Client
	// Init authenticates a client by the payload of its connection_init. The payload is nil if the client sent none. The socket uses
	// the returned context for all operations. If Init returns an error, or when the returned context ends, the socket closes with
	// Forbidden.
	Init(ctx context.Context, payload json.RawMessage) (context.Context, error)
	// Operate starts an operation that queues its responses in m.
	//
	//   - If the operation cannot start, errors is a JSON list for the client.
	//   - If the operation is a subscription, run is nil. The subscription lasts until m leaves its group.
	//   - If the operation is a query or mutation, the socket calls run on a new goroutine. run must return soon after its context
	//     ends.
	//   - If the payload breaks the protocol, the socket closes with the text of malformed.
	Operate(ctx context.Context, payload json.RawMessage, m *fanout.Member) (run func(ctx context.Context), errors []byte, malformed error)
	// Refuse returns err as a JSON list of errors, for an operation that was not started.
	Refuse(ctx context.Context, err error) []byte
	// Errors returns err as a JSON list of errors, for an operation that has ended with err.
	Errors(ctx context.Context, err error) []byte
}

// Config configures a Server. The first five fields are required. Every other field has a default, which New uses if the field is
// zero.
type Config struct {
	Operator Operator
	// CheckOrigin returns an error for the client if pages of the request's origin must not connect.
	CheckOrigin func(r *http.Request) error
	// Address returns the address of the client.
	Address func(r *http.Request) netip.Addr
	// Quota limits the sockets and operations of one client.
	Quota *quota.Clients
	// Incoming limits the memory of messages while they are handled.
	Incoming *quota.Memory

	// InitTimeout limits the wait for connection_init. The default is 10 s.
	InitTimeout time.Duration
	// Ping is the time after which the server pings a silent client, and the least time between two pings. The server
	// disconnects a client that is silent for more than 2*Ping + WriteTimeout. The default is 25 s.
	Ping time.Duration
	// WriteTimeout limits the time to write a frame. It also limits the time between the first and the last byte of a message of a
	// client. The default is 10 s.
	WriteTimeout time.Duration
	// Frame is the greatest size of a client's message in bytes. The default is 256 KiB.
	Frame int64
	// Operations is the greatest number of concurrent operations of a socket. The default is 100.
	Operations int
	// MessagesPerSecond and MessageBurst limit the rate of messages from one socket. The defaults are 200 and 1,000.
	MessagesPerSecond, MessageBurst int
}

// Stats are the present gauges of a server, and its counters since the start.
type Stats struct {
	Sockets, Operations int
	// Accepted counts all sockets that were opened. Silent counts sockets that were closed because the client was silent. Slow
	// counts sockets that were closed because a write exceeded Config.WriteTimeout.
	Accepted, Silent, Slow uint64
	// Crowded counts sockets that were closed because the client left too much output unread.
	Crowded uint64
}

// Server is an http.Handler that accepts WebSockets. Drain ends it.
type Server struct {
	cfg Config

	operations                      atomic.Int64
	accepted, silent, slow, crowded atomic.Uint64

	// open counts the sockets, including sockets in a handshake. stop ends the sweeper.
	open, sweeper sync.WaitGroup
	stop          context.CancelFunc

	// mu protects all fields below. Do not take a socket's lock while mu is held.
	mu       sync.Mutex
	sockets  map[*socket]struct{}
	draining bool
	// hurrying is true after the context of Drain has ended.
	hurrying bool
}

// New returns a server and starts its sweeper.
func New(cfg Config) *Server {
	cfg.InitTimeout = cmp.Or(cfg.InitTimeout, 10*time.Second)
	cfg.Ping = cmp.Or(cfg.Ping, 25*time.Second)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, 10*time.Second)
	cfg.Frame = cmp.Or(cfg.Frame, 256<<10)
	cfg.Operations = cmp.Or(cfg.Operations, 100)
	cfg.MessagesPerSecond = cmp.Or(cfg.MessagesPerSecond, 200)
	cfg.MessageBurst = cmp.Or(cfg.MessageBurst, 1000)
	s := &Server{cfg: cfg, sockets: make(map[*socket]struct{})}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.sweeper.Go(func() { s.sweep(ctx) })
	return s
}

// ServeHTTP accepts a WebSocket and returns. The socket stays open.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.CheckOrigin(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if err := checkSubprotocol(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	client := s.cfg.Operator.Client(r.Context())
	if status, err := s.admit(client); err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), status)
		return
	}
	// The request's context ends with ServeHTTP, but its values are still used.
	k := newSocket(s, context.WithoutCancel(r.Context()), s.cfg.Address(r), client)
	hijacked := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(hijacked, r, &websocket.AcceptOptions{
		Subprotocols: []string{Subprotocol}, InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled,
		OnPingReceived: func(context.Context, []byte) bool { return k.markAlive() },
		OnPongReceived: func(context.Context, []byte) { k.markAlive() },
	})
	if err != nil {
		k.cancel()
		s.release(client)
		return // Accept has sent an error response
	}
	s.accepted.Add(1)
	conn.SetReadLimit(s.cfg.Frame)
	k.conn, k.netConn = conn, hijacked.conn
	s.mu.Lock()
	s.sockets[k] = struct{}{}
	draining, hurrying := s.draining, s.hurrying
	s.mu.Unlock()
	go k.run() // counted by s.open
	if draining {
		k.drain()
	}
	if hurrying {
		k.hurry()
	}
}

// checkSubprotocol returns an error if the client offers Subprotocol in another case. Package websocket ignores the case, and would
// select a protocol that this package does not know.
func checkSubprotocol(r *http.Request) error {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != Subprotocol && strings.EqualFold(name, Subprotocol) {
				return errors.New("the subprotocol is " + Subprotocol + ", in lower case")
			}
		}
	}
	return nil
}

var errDraining = errors.New("the service is restarting; connect again")

// admit counts a socket of a client. If the socket is refused, admit returns the status and the error of the response.
func (s *Server) admit(client quota.Client) (status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return http.StatusServiceUnavailable, errDraining
	}
	if err := s.cfg.Quota.Connect(client); err != nil {
		return http.StatusTooManyRequests, err
	}
	s.open.Add(1)
	return 0, nil
}

// release undoes admit.
func (s *Server) release(client quota.Client) {
	s.cfg.Quota.Disconnect(client)
	s.open.Done()
}

func (s *Server) remove(k *socket) {
	s.mu.Lock()
	delete(s.sockets, k)
	s.mu.Unlock()
	s.release(k.client)
}

func (s *Server) appendSockets(to []*socket) []*socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.sockets {
		to = append(to, k)
	}
	return to
}

// sweep calls socket.check for all sockets regularly, until ctx ends.
func (s *Server) sweep(ctx context.Context) {
	every := min(time.Second, s.cfg.WriteTimeout/4, s.cfg.Ping/4, s.cfg.InitTimeout/4)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var sockets []*socket
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		sockets = s.appendSockets(sockets[:0])
		now := monotonic()
		for _, k := range sockets {
			k.check(now)
		}
		clear(sockets)
	}
}

// Drain refuses new sockets and operations, and waits for running queries and mutations until ctx ends. It tells the clients to
// connect again. It returns when all sockets are closed, at most a second after the end of ctx.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, k := range s.appendSockets(nil) {
		k.drain()
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.open.Wait()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		s.mu.Lock()
		s.hurrying = true
		s.mu.Unlock()
		for _, k := range s.appendSockets(nil) {
			k.hurry()
		}
		<-closed
	}
	s.stop()
	s.sweeper.Wait()
}

// Stats returns the present gauges and counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.sockets)
	s.mu.Unlock()
	return Stats{
		Sockets: n, Operations: int(s.operations.Load()), Accepted: s.accepted.Load(), Silent: s.silent.Load(), Slow: s.slow.Load(),
		Crowded: s.crowded.Load(),
	}
}

// readBuffer and writeBuffer are the sizes of a socket's buffers in bytes. A message that is larger than a buffer needs more than one
// system call. The buffers of net/http have 4 KiB each and would be most of the memory of an idle socket.
const readBuffer, writeBuffer = 512, 2 << 10

// hijacker is a ResponseWriter whose Hijack gives the connection smaller buffers and stores the connection in conn. Deadlines need
// the connection.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn, rw.Writer = conn, bufio.NewWriterSize(conn, writeBuffer)
	if rw.Reader.Buffered() == 0 {
		rw.Reader = bufio.NewReaderSize(conn, readBuffer)
	}
	return conn, rw, nil
}

var startTime = time.Now()

// monotonic returns the time since startTime in nanoseconds. It is at least 1, so that 0 can mean that a time is not set.
func monotonic() int64 { return int64(time.Since(startTime)) + 1 }
