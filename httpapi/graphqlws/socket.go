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
	// farewell is how long a client may take to read and answer a close.
	farewell = 2 * time.Second
	// lastCall is the same once the server has no time left.
	lastCall = time.Second
)

// socket is the connection of one client.
type socket struct {
	server *Server
	conn   *websocket.Conn
	// line is what the connection runs on.
	line   net.Conn
	client netip.Addr
	pace   *rate.Limiter
	// life is the socket's context, ended by cancel; ctx is the client's, with its identity, once it has introduced itself.
	// Only the reader sets it.
	life, ctx context.Context
	cancel    context.CancelFunc
	// introduced and acknowledged tell how far the introduction is. The reader sets them.
	introduced   atomic.Bool
	acknowledged bool
	// deep tells that the stack of the reader has grown by the operator's work. The reader sets it.
	deep bool

	// opened, heard and pinged are when the socket was opened, a sign of life came last and a ping was sent last; writing and
	// reading are when the write and the message that are under way began, 0 for none.
	opened, pinged          int64
	heard, writing, reading atomic.Int64

	// work waits for the goroutines of the socket but the reader.
	work sync.WaitGroup
	// flush is run as a goroutine; the value is kept since making it costs an allocation.
	flush func()

	// mu protects the rest. It may be taken under the locks of fanout, so none of those may be taken inside it.
	mu         sync.Mutex
	operations map[string]*operation
	// turns bounds those that are carried out at once and end by themselves; nil until there is one.
	turns *semaphore.Weighted
	// once counts the operations that end by themselves and have not yet told their end.
	once int
	// ready are operations with something to send, replies are frames that stand before all, of so many bytes.
	ready      []*operation
	replies    [][]byte
	replyBytes int
	// room is signalled when replies were written.
	room     sync.Cond
	flushing bool
	// draining tells that the socket closes as soon as nothing is left to do; closing that it does.
	draining, closing bool
}

func newSocket(s *Server, ctx context.Context, client netip.Addr) *socket {
	k := &socket{
		server: s, client: client, opened: monotonic(),
		pace: rate.NewLimiter(rate.Limit(s.cfg.MessagesPerSecond), s.cfg.MessageBurst),
	}
	k.pinged = k.opened
	k.heard.Store(k.opened)
	k.room.L = &k.mu
	k.flush = k.write
	k.life, k.cancel = context.WithCancel(ctx)
	k.ctx = k.life
	return k
}

// run reads what the client sends until the socket is closed, by whomever.
func (k *socket) run() {
	if k.conn.Subprotocol() != Subprotocol {
		k.close(codeSubprotocol, "Subprotocol not acceptable")
	} else if k.read() {
		go k.run() // in place of this one
		return
	} else {
		// If nobody has closed it, the client has broken off or has sent what is no WebSocket frame.
		k.close(websocket.StatusProtocolError, "")
	}
	k.work.Wait()
	k.server.forget(k)
}

// sign notes that the client is there. It returns false when the socket is closing; a client that gives signs faster than
// it may is made to wait.
func (k *socket) sign() bool {
	k.heard.Store(monotonic())
	return k.pace.Wait(k.life) == nil
}

// close closes the socket with a code, without waiting for it. Only the first one counts. It returns false, since nothing
// is to be read any more.
func (k *socket) close(code websocket.StatusCode, reason string) bool {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	k.end(func() {
		// The library bounds the handshake, but not the time that a frame takes.
		_ = k.line.SetDeadline(time.Now().Add(farewell))
	}, func() { _ = k.conn.Close(code, reason) })
	return false
}

// abort closes the connection without a word, since nobody would read it. It reports whether it was the first to.
func (k *socket) abort() (first bool) {
	return k.end(func() {}, func() { _ = k.conn.CloseNow() })
}

// end ends all operations and hangs up, unless that is under way, and reports whether it was not. prepare is called at once
// and must not wait, hangUp on a goroutine.
func (k *socket) end(prepare, hangUp func()) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing {
		return false
	}
	k.closing = true
	k.room.Broadcast()
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

// drain ends the subscriptions, whose client starts them again elsewhere, and closes the socket when all else has ended.
func (k *socket) drain() {
	k.mu.Lock()
	k.draining = true
	done := k.once == 0
	k.mu.Unlock()
	if done {
		k.restart()
	}
}

// restart tells the client to connect again.
func (k *socket) restart() { k.close(codeServiceRestart, "Service restart") }

// hurry leaves the client little time to read that the socket is closed.
func (k *socket) hurry() {
	k.restart()
	_ = k.line.SetDeadline(time.Now().Add(lastCall))
}

// look does what is to be done from time to time. Only the server's sweeper calls it.
func (k *socket) look(now int64) {
	cfg := &k.server.cfg
	if began := k.writing.Load(); began != 0 && now-began > int64(cfg.WriteTimeout) {
		if k.abort() {
			k.server.slow.Add(1)
		}
		return
	}
	switch silence, began := now-k.heard.Load(), k.reading.Load(); {
	case !k.introduced.Load() && now-k.opened > int64(cfg.InitTimeout):
		k.close(codeInitTimeout, "Connection initialisation timeout")
	case began != 0 && now-began > int64(cfg.WriteTimeout):
		k.close(websocket.StatusPolicyViolation, "A message took too long")
	case silence > 2*int64(cfg.Ping)+int64(cfg.WriteTimeout):
		if k.abort() {
			k.server.silent.Add(1)
		}
	case silence > int64(cfg.Ping) && now-k.pinged > int64(cfg.Ping):
		k.pinged = now
		k.mu.Lock()
		if len(k.replies) == 0 { // else something is being written anyway
			k.replies = append(k.replies, framePing)
			k.replyBytes += len(framePing)
			k.start()
		}
		k.mu.Unlock()
	}
}

// introduce handles a connection_init.
func (k *socket) introduce(payload json.RawMessage) bool {
	if k.introduced.Swap(true) {
		return k.close(codeManyInits, "Too many initialisation requests")
	}
	k.deep = true
	ctx, err := k.server.cfg.Operator.Init(k.life, payload)
	if err != nil {
		return k.close(codeForbidden, "Forbidden")
	}
	k.ctx = ctx
	context.AfterFunc(ctx, func() { k.close(codeForbidden, "Forbidden") }) // nothing, when it ends with the socket
	k.acknowledged = true
	return k.reply(frameAck)
}
