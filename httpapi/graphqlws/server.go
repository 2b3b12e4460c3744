package graphqlws

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
)

// Subprotocol is the name of the protocol in the handshake.
const Subprotocol = "graphql-transport-ws"

// Close codes of the protocol, and of WebSocket where it has none of its own.
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

// Operator executes the operations of clients. Its methods are called by many sockets at once.
type Operator interface {
	// Init introduces a client by the payload of its connection_init, which is nil where there is none. The context is the
	// socket's from then on; when it ends, the client is refused. An error refuses it at once.
	Init(ctx context.Context, payload json.RawMessage) (context.Context, error)
	// Operate starts an operation whose responses it lays into m, or returns what the client is told if it can't: the
	// errors as a JSON list. once is nil for a subscription, which lasts until m leaves. Else it carries the operation out:
	// it is called on a goroutine of its own and returns promptly when its context ends. malformed says why the payload is not
	// one of the protocol; it closes the socket, and the client reads its text.
	Operate(ctx context.Context, payload json.RawMessage, m *fanout.Member) (once func(ctx context.Context), errors []byte, malformed error)
	// Refuse presents why an operation is not even begun, as a JSON list.
	Refuse(ctx context.Context, err error) []byte
	// Errors presents why one has ended, as a JSON list.
	Errors(ctx context.Context, err error) []byte
}

// Config is how the server behaves. The zero value of a field takes its default, but for Operator, which is needed.
type Config struct {
	Operator Operator
	// CheckOrigin returns an error if a page of the request's origin may not connect, which the client is told; nil allows none
	// but the server's own.
	CheckOrigin func(r *http.Request) error
	// Client returns the address of the client, by which connections are limited; nil takes the connection's.
	Client func(r *http.Request) netip.Addr
	Log    *slog.Logger
	// InitTimeout is how long a client may take to introduce itself: 10 s.
	InitTimeout time.Duration
	// Ping is the time between two pings: 25 s. A client that sends nothing for twice as long, not even the answers, is
	// closed.
	Ping time.Duration
	// WriteTimeout is how long a client may take to take a frame, and to send a message from its first byte to its last: 10 s.
	WriteTimeout time.Duration
	// Frame is the greatest size of a message of a client in bytes: 256 KiB.
	Frame int64
	// Operations is the greatest number of operations at once on a socket: 100.
	Operations int
	// MessagesPerSecond is how many messages of a client are read in a second when it sends more than MessageBurst at once:
	// 200 and 1,000.
	MessagesPerSecond, MessageBurst int
	// Incoming is the room for the messages of clients; nil is 32 MiB, and not those of other transports.
	Incoming *quota.Memory
	// Quota bounds the sockets and operations of one client address; nil does so by its defaults.
	Quota *quota.Clients
}

// Stats count what there is and was.
type Stats struct {
	// Sockets and Operations are open now.
	Sockets, Operations int
	// Accepted counts the sockets since the start, Silent and Slow those that were closed because their client was gone or
	// did not read.
	Accepted, Silent, Slow uint64
	// Crowded counts those that were closed because their client left too much unread.
	Crowded uint64
}

// Server is an http.Handler that accepts WebSockets. Drain it to end them.
type Server struct {
	cfg Config

	operations                      atomic.Int64
	accepted, silent, slow, crowded atomic.Uint64

	// open waits for the sockets. stop ends the sweeper, sweeper waits for it.
	open, sweeper sync.WaitGroup
	stop          context.CancelFunc

	// mu protects the rest. No socket's lock is taken inside it.
	mu       sync.Mutex
	sockets  map[*socket]struct{}
	draining bool
	// hurrying means that Drain has no time left.
	hurrying bool
}

// New returns a server that is ready to serve.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Client == nil {
		cfg.Client = func(r *http.Request) netip.Addr {
			peer, _ := netip.ParseAddrPort(r.RemoteAddr)
			return peer.Addr().Unmap()
		}
	}
	cfg.InitTimeout = cmp.Or(cfg.InitTimeout, 10*time.Second)
	cfg.Ping = cmp.Or(cfg.Ping, 25*time.Second)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, 10*time.Second)
	cfg.Frame = cmp.Or(cfg.Frame, 256<<10)
	cfg.Operations = cmp.Or(cfg.Operations, 100)
	cfg.MessagesPerSecond = cmp.Or(cfg.MessagesPerSecond, 200)
	cfg.MessageBurst = cmp.Or(cfg.MessageBurst, 1000)
	if cfg.Quota == nil {
		cfg.Quota = quota.New(quota.Limits{})
	}
	if cfg.Incoming == nil {
		cfg.Incoming = quota.NewMemory(32 << 20)
	}
	s := &Server{cfg: cfg, sockets: make(map[*socket]struct{})}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.sweeper.Go(func() { s.sweep(ctx) })
	return s
}

// ServeHTTP accepts a WebSocket and returns; the socket lives on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cfg.CheckOrigin != nil {
		if err := s.cfg.CheckOrigin(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
	}
	client := s.cfg.Client(r)
	if status, err := s.admit(client); err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, err.Error(), status)
		return
	}
	// The request ends when this returns, and its memory with it, but its values are still of use.
	k := newSocket(s, context.WithoutCancel(r.Context()), client)
	line := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(line, r, &websocket.AcceptOptions{
		Subprotocols: []string{Subprotocol}, InsecureSkipVerify: s.cfg.CheckOrigin != nil, CompressionMode: websocket.CompressionDisabled,
		OnPingReceived: func(context.Context, []byte) bool { return k.sign() },
		OnPongReceived: func(context.Context, []byte) { k.sign() },
	})
	if err != nil {
		k.cancel()
		s.dismiss(client)
		return // Accept has answered
	}
	s.accepted.Add(1)
	conn.SetReadLimit(s.cfg.Frame)
	k.conn, k.line = conn, line.conn
	s.mu.Lock()
	s.sockets[k] = struct{}{}
	draining, hurrying := s.draining, s.hurrying
	s.mu.Unlock()
	go k.run() // s.open counts it
	if draining {
		k.drain()
	}
	if hurrying {
		k.hurry()
	}
}

var errDraining = errors.New("the service is restarting; connect again")

// admit counts a socket of a client, or says by which status it is refused.
func (s *Server) admit(client netip.Addr) (status int, err error) {
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

// dismiss takes back admit.
func (s *Server) dismiss(client netip.Addr) {
	s.cfg.Quota.Disconnect(client)
	s.open.Done()
}

// forget takes a socket that has ended out of the server.
func (s *Server) forget(k *socket) {
	s.mu.Lock()
	delete(s.sockets, k)
	s.mu.Unlock()
	s.dismiss(k.client)
}

// all returns the sockets that are open.
func (s *Server) all(to []*socket) []*socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.sockets {
		to = append(to, k)
	}
	return to
}

// sweep sends pings and closes the sockets of clients that are gone.
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
		sockets = s.all(sockets[:0])
		now := monotonic()
		for _, k := range sockets {
			k.look(now)
		}
		clear(sockets)
	}
}

// Drain closes the server in order: it accepts no more sockets and operations, lets the operations that end by themselves
// end, as long as ctx lasts, and then tells the clients to connect again, elsewhere. It returns when all sockets are closed,
// at most a second after the end of ctx.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, k := range s.all(nil) {
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
		for _, k := range s.all(nil) {
			k.hurry()
		}
		<-closed
	}
	s.stop()
	s.sweeper.Wait()
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.sockets)
	s.mu.Unlock()
	return Stats{
		Sockets: n, Operations: int(s.operations.Load()), Accepted: s.accepted.Load(), Silent: s.silent.Load(), Slow: s.slow.Load(),
		Crowded: s.crowded.Load(),
	}
}

// started is the origin of monotonic.
var started = time.Now()

// monotonic returns the time as a number that fits into an atomic.
func monotonic() int64 { return int64(time.Since(started)) + 1 }
