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

	"oddsgraph/httpapi/quota"
)

const (
	// maxReason is the greatest length of a close reason in bytes; see RFC 6455.
	maxReason = 123
	// closeTimeout limits the time until a client has read and answered a close frame.
	closeTimeout = 2 * time.Second
	// lastTimeout replaces closeTimeout after the context of Drain has ended.
	lastTimeout = time.Second
)

type socket struct {
	server *Server
	conn   *websocket.Conn
	// netConn is the connection that conn reads from and writes to.
	netConn net.Conn
	// address is the address of the client. The socket counts for client. Only the goroutine that reads uses both.
	address netip.Addr
	client  quota.Client
	pace    *rate.Limiter
	// base is the context of the socket, and cancel ends base. ctx is the context that Operator.Init returned. Until Init returns,
	// ctx is base. Only the goroutine that reads sets ctx.
	base, ctx context.Context
	cancel    context.CancelFunc
	// initialised reports that the client has sent connection_init.
	initialised atomic.Bool
	// acknowledged reports that the operator has accepted connection_init. Only the goroutine that reads uses acknowledged.
	acknowledged bool

	// These times are results of monotonic. writeStart is the start of the present write, or 0. readStart is the start of the
	// present message, or 0.
	openedAt, lastPing               int64
	lastHeard, writeStart, readStart atomic.Int64

	// work counts all goroutines of the socket except the goroutine that reads.
	work sync.WaitGroup
	// flush is k.write as a function value. It is stored because each new function value needs an allocation.
	flush func()

	// mu guards the fields below. startWriter is called with it held. A goroutine may hold locks of package fanout when it locks
	// mu, so the holder of mu must not take a lock of package fanout.
	mu         sync.Mutex
	operations map[string]*operation
	// slots limits the concurrent queries and mutations; see maxExecuting. It is nil before the first query or mutation.
	slots *semaphore.Weighted
	// pending counts the operations that a drain must wait for.
	pending int
	// ready are the operations that may have something to send.
	ready []*operation
	// replies are frames that are sent before the frames of all operations. replyBytes is the total size of replies.
	replies    [][]byte
	replyBytes int
	// replyTaken is signalled when the writer takes a reply, and when the socket closes.
	replyTaken sync.Cond
	// flushing reports that the writer is running.
	flushing bool
	// draining reports that the socket closes as soon as pending is 0. closing reports that the socket is closing already.
	draining, closing bool
}

func newSocket(s *Server, ctx context.Context, address netip.Addr, client quota.Client) *socket {
	k := &socket{
		server: s, address: address, client: client, openedAt: monotonic(),
		pace: rate.NewLimiter(rate.Limit(s.cfg.MessagesPerSecond), s.cfg.MessageBurst),
	}
	k.lastPing = k.openedAt
	k.lastHeard.Store(k.openedAt)
	k.replyTaken.L = &k.mu
	k.flush = k.write
	k.base, k.cancel = context.WithCancel(ctx)
	k.ctx = k.base
	return k
}

func (k *socket) run() {
	if k.conn.Subprotocol() != Subprotocol {
		k.close(codeSubprotocol, "Subprotocol not acceptable")
	} else {
		k.read()
		// If the socket is not closing, the client has disconnected or has sent an invalid frame.
		k.close(websocket.StatusProtocolError, "")
	}
	k.work.Wait()
	k.server.remove(k)
}

// markAlive records that the client has sent something. It waits if the client sends faster than Config.MessagesPerSecond and
// MessageBurst allow. It returns false if the socket is closing.
func (k *socket) markAlive() bool {
	k.lastHeard.Store(monotonic())
	return k.pace.Wait(k.base) == nil
}

// close starts to close the socket with a code. It always returns false. Further calls have no effect.
func (k *socket) close(code websocket.StatusCode, reason string) bool {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	k.end(func() {
		// Package websocket limits the time of the close handshake, but not the time to write or read a frame.
		_ = k.netConn.SetDeadline(time.Now().Add(closeTimeout))
	}, func() { _ = k.conn.Close(code, reason) })
	return false
}

// abort closes the connection without a close frame, because the client would not read one. It reports whether the socket was
// open.
func (k *socket) abort() (first bool) {
	return k.end(func() {}, func() { _ = k.conn.CloseNow() })
}

// end ends all operations and the connection. It returns false if the socket was already closing. end calls prepare at once, so
// prepare must not wait. It calls hangUp on a new goroutine.
func (k *socket) end(prepare, hangUp func()) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing {
		return false
	}
	k.closing = true
	k.replyTaken.Broadcast()
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

// drain ends the socket when its queries and mutations have ended. Subscriptions end with the socket, because the client can
// start them again elsewhere.
func (k *socket) drain() {
	k.mu.Lock()
	k.draining = true
	done := k.pending == 0
	k.mu.Unlock()
	if done {
		k.restart()
	}
}

func (k *socket) restart() { k.close(codeServiceRestart, "Service restart") }

// hurry closes the socket and gives the client lastTimeout to read the close frame.
func (k *socket) hurry() {
	k.restart()
	_ = k.netConn.SetDeadline(time.Now().Add(lastTimeout))
}

// check closes the socket if a deadline has passed, and pings a silent client. Only the sweeper calls check.
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
		if len(k.replies) == 0 { // if replies are waiting, the client does not read, and WriteTimeout will close the socket
			k.replies = append(k.replies, framePing)
			k.replyBytes += len(framePing)
			k.startWriter()
		}
		k.mu.Unlock()
	}
}

// recount makes the socket count for the client of connection_init instead of the client of the handshake, which often has no
// account, because a page cannot set headers of a WebSocket.
func (k *socket) recount() error {
	cfg := &k.server.cfg
	client := cfg.Operator.Client(k.ctx)
	if client == k.client {
		return nil
	}
	if err := cfg.Quota.Connect(client); err != nil {
		return err
	}
	cfg.Quota.Disconnect(k.client)
	k.client = client
	return nil
}

func (k *socket) initialise(payload json.RawMessage) bool {
	if k.initialised.Swap(true) {
		return k.close(codeManyInits, "Too many initialisation requests")
	}
	ctx, err := k.server.cfg.Operator.Init(k.base, payload)
	if err != nil {
		return k.close(codeForbidden, "Forbidden")
	}
	k.ctx = ctx
	if err := k.recount(); err != nil {
		return k.close(codeTryAgainLater, err.Error())
	}
	context.AfterFunc(ctx, func() { k.close(codeForbidden, "Forbidden") }) // close does nothing if the socket is already closing
	k.acknowledged = true
	return k.reply(frameAck)
}
