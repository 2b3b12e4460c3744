package graphqlws

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	// maxReason is the greatest length of the reason of a close in bytes, by RFC 6455.
	maxReason = 123
	// closeTimeout bounds the time until a client has read and answered a close frame.
	closeTimeout = 2 * time.Second
	// lastTimeout replaces closeTimeout when the context of Drain has ended.
	lastTimeout = time.Second
)

// socket is the connection of one client.
type socket struct {
	server *Server
	conn   *websocket.Conn
	// netConn is the connection below conn.
	netConn net.Conn
	client  netip.Addr
	pace    *rate.Limiter
	// base is the socket's context, ended by cancel. ctx is the client's context after Init; only the reader sets it.
	base, ctx context.Context
	cancel    context.CancelFunc
	// initialised reports that the client has sent connection_init. acknowledged reports that connection_init was accepted. Only
	// the reader sets them.
	initialised  atomic.Bool
	acknowledged bool
	// deep reports that the operator has made the reader's stack grow. Only the reader uses it.
	deep bool

	// These times are results of monotonic. writeStart is the start of the present write, and readStart the start of the present
	// message; 0 means none.
	openedAt, lastPing               int64
	lastHeard, writeStart, readStart atomic.Int64

	// work waits for the socket's goroutines except the reader.
	work sync.WaitGroup
	// flush is k.write as a function value. It is stored because each new function value needs an allocation.
	flush func()

	// mu protects the rest. It may be taken while locks of fanout are held, so no lock of fanout may be taken while mu is held.
	mu         sync.Mutex
	operations map[string]*operation
	// slots bounds the concurrent queries and mutations. It is nil until the first one.
	slots *semaphore.Weighted
	// pending counts the queries and mutations whose end was not sent yet.
	pending int
	// ready are the operations with something to send. replies are frames that are sent before the frames of these operations.
	// replyBytes is the total size of replies.
	ready      []*operation
	replies    [][]byte
	replyBytes int
	// written is signalled when the writer takes a reply.
	written  sync.Cond
	flushing bool
	// draining reports that the socket closes as soon as pending is 0. closing reports that the socket is closing.
	draining, closing bool
}

func newSocket(s *Server, ctx context.Context, client netip.Addr) *socket {
	k := &socket{
		server: s, client: client, openedAt: monotonic(),
		pace: rate.NewLimiter(rate.Limit(s.cfg.MessagesPerSecond), s.cfg.MessageBurst),
	}
	k.lastPing = k.openedAt
	k.lastHeard.Store(k.openedAt)
	k.written.L = &k.mu
	k.flush = k.write
	k.base, k.cancel = context.WithCancel(ctx)
	k.ctx = k.base
	return k
}

// run reads what the client sends until the connection ends.
func (k *socket) run() {
	if k.conn.Subprotocol() != Subprotocol {
		k.close(codeSubprotocol, "Subprotocol not acceptable")
	} else if k.read() {
		go k.run() // on a fresh stack
		return
	} else {
		// If the socket is not closing, the client has disconnected or has sent an invalid frame.
		k.close(websocket.StatusProtocolError, "")
	}
	k.work.Wait()
	k.server.remove(k)
}

// alive records that the client is alive. It waits if the client sends faster than its rate allows. It returns false if the
// socket is closing.
func (k *socket) alive() bool {
	k.lastHeard.Store(monotonic())
	return k.pace.Wait(k.base) == nil
}

// close starts to close the socket with a code and returns false. Further calls have no effect.
func (k *socket) close(code websocket.StatusCode, reason string) bool {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	k.end(func() {
		// The library limits the time of the close handshake, but not the time to write or read a frame.
		_ = k.netConn.SetDeadline(time.Now().Add(closeTimeout))
	}, func() { _ = k.conn.Close(code, reason) })
	return false
}

// abort closes the connection without a close frame, which nobody would read. It reports whether the socket was open.
func (k *socket) abort() (first bool) {
	return k.end(func() {}, func() { _ = k.conn.CloseNow() })
}

// end ends all operations and the connection. It returns false if the socket was already closing. prepare is called at once and
// must not wait. hangUp is called on a new goroutine.
func (k *socket) end(prepare, hangUp func()) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing {
		return false
	}
	k.closing = true
	k.written.Broadcast()
	prepare()
	operations := make([]*operation, 0, len(k.operations))
	for _, op := range k.operations {
		operations = append(operations, op)
	}
	k.work.Go(func() {
		k.cancel()
		for _, op := range operations {
			k.release(op)
		}
		hangUp()
	})
	return true
}

// drain ends the socket when its queries and mutations have ended. Subscriptions end with the socket; the client starts
// them again elsewhere.
func (k *socket) drain() {
	k.mu.Lock()
	k.draining = true
	done := k.pending == 0
	k.mu.Unlock()
	if done {
		k.restart()
	}
}

// restart tells the client to connect again.
func (k *socket) restart() { k.close(codeServiceRestart, "Service restart") }

// hurry gives the client a second to read the close.
func (k *socket) hurry() {
	k.restart()
	_ = k.netConn.SetDeadline(time.Now().Add(lastTimeout))
}

// check closes the socket if a deadline has passed, and pings a silent client. Only the sweeper calls it.
func (k *socket) check(now int64) {
	cfg := &k.server.cfg
	if began := k.writeStart.Load(); began != 0 && now-began > int64(cfg.WriteTimeout) {
		if k.abort() {
			k.server.slow.Add(1)
		}
		return
	}
	switch silence, began := now-k.lastHeard.Load(), k.readStart.Load(); {
	case !k.initialised.Load() && now-k.openedAt > int64(cfg.InitTimeout):
		k.close(codeInitTimeout, "Connection initialisation timeout")
	case began != 0 && now-began > int64(cfg.WriteTimeout):
		k.close(websocket.StatusPolicyViolation, "A message took too long")
	case silence > 2*int64(cfg.Ping)+int64(cfg.WriteTimeout):
		if k.abort() {
			k.server.silent.Add(1)
		}
	case silence > int64(cfg.Ping) && now-k.lastPing > int64(cfg.Ping):
		k.lastPing = now
		k.mu.Lock()
		if len(k.replies) == 0 { // a ping would only wait behind the waiting replies; WriteTimeout closes the socket of a client that does not read
			k.replies = append(k.replies, framePing)
			k.replyBytes += len(framePing)
			k.startWriter()
		}
		k.mu.Unlock()
	}
}

// initialise handles a connection_init.
func (k *socket) initialise(payload json.RawMessage) bool {
	if k.initialised.Swap(true) {
		return k.close(codeManyInits, "Too many initialisation requests")
	}
	k.deep = true
	ctx, err := k.server.cfg.Operator.Init(k.base, payload)
	if err != nil {
		return k.close(codeForbidden, "Forbidden")
	}
	k.ctx = ctx
	context.AfterFunc(ctx, func() { k.close(codeForbidden, "Forbidden") }) // without effect if the socket has closed
	k.acknowledged = true
	return k.reply(frameAck)
}
