package graphqlws

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"oddsgraph/internal/fanout"
	"oddsgraph/internal/market"
)

const (
	// maxID is the greatest length of an operation's id in bytes.
	maxID = 128
	// maxReason is the greatest length of the reason of a close in bytes, by RFC 6455.
	maxReason = 123
	// maxEcho is the greatest size of a ping's payload that is sent back.
	maxEcho = 1 << 10
	// maxReplies is the number of answers that may wait to be written before no more is read.
	maxReplies = 32
)

// socket is the connection of one client.
type socket struct {
	server *Server
	conn   *websocket.Conn
	client netip.Addr
	pace   *rate.Limiter
	// ctx is the client's, with its identity once it has introduced itself; cancel ends it. The reader sets it.
	ctx    context.Context
	cancel context.CancelFunc
	// introduced and acknowledged tell how far the introduction is. The reader sets them.
	introduced   atomic.Bool
	acknowledged bool

	// opened, heard and pinged are when the socket was opened, a message came last and a ping was sent last; writing is when
	// the write that is under way began, 0 for none.
	opened, pinged int64
	heard, writing atomic.Int64

	// work waits for the goroutines of the socket but the reader.
	work sync.WaitGroup
	// flush is run as a goroutine; the value is kept since making it costs an allocation.
	flush func()

	// mu protects the rest. It may be taken under the locks of fanout, so none of those may be taken inside it.
	mu         sync.Mutex
	operations map[string]*operation
	// once counts the operations that end by themselves.
	once int
	// ready are operations with something to send, replies are frames that stand before all.
	ready   []*operation
	replies [][]byte
	// room is signalled when replies were written.
	room     *sync.Cond
	flushing bool
	// draining tells that the socket closes as soon as nothing is left to do; closing that it does.
	draining, closing bool
}

// operation is one that the client has started and that has not ended yet.
type operation struct {
	socket *socket
	id     string
	// next begins the frames of responses.
	next   []byte
	member *fanout.Member
	// cancel ends one that ends by itself; nil for a subscription.
	cancel context.CancelFunc

	// The socket's lock protects these. queued tells that it is among those that are ready, over that the client has ended it.
	queued, over bool
}

func newSocket(s *Server, conn *websocket.Conn, ctx context.Context, client netip.Addr) *socket {
	k := &socket{
		server: s, conn: conn, client: client, opened: monotonic(), operations: make(map[string]*operation),
		pace: rate.NewLimiter(rate.Limit(s.cfg.MessagesPerSecond), s.cfg.MessageBurst),
	}
	k.pinged = k.opened
	k.heard.Store(k.opened)
	k.room = sync.NewCond(&k.mu)
	k.flush = k.write
	k.ctx, k.cancel = context.WithCancel(ctx)
	return k
}

// run reads what the client sends until the socket is closed, by whomever.
func (k *socket) run() {
	defer k.server.forget(k)
	defer k.cancel()
	if k.conn.Subprotocol() != Subprotocol {
		k.close(codeSubprotocol, "Subprotocol not acceptable")
	} else {
		k.read()
	}
	k.abort()
	k.mu.Lock()
	operations := make([]*operation, 0, len(k.operations))
	for _, op := range k.operations {
		operations = append(operations, op)
	}
	k.mu.Unlock()
	k.cancel()
	for _, op := range operations {
		k.finish(op)
	}
	k.work.Wait()
}

// read handles messages until there is none left or one breaks the protocol.
func (k *socket) read() {
	for {
		kind, r, err := k.conn.Reader(context.Background()) // ended by closing the connection
		if err != nil {
			return
		}
		buf := buffers.Get().(*bytes.Buffer)
		buf.Reset()
		_, err = io.Copy(buf, r)
		goesOn := err == nil && k.handle(kind, buf.Bytes())
		if buf.Cap() <= 64<<10 {
			buffers.Put(buf)
		}
		if !goesOn || k.pace.Wait(k.ctx) != nil {
			return
		}
	}
}

// buffers hold messages and frames.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// message is what a client sends.
type message struct {
	Type    string          `json:"type"`
	ID      *string         `json:"id"`
	Payload json.RawMessage `json:"payload"`
}

// handle does what a message says. It returns false when nothing more is to be read, since the socket is being closed. The
// bytes are good only until it returns.
func (k *socket) handle(kind websocket.MessageType, b []byte) bool {
	k.heard.Store(monotonic())
	var m message
	switch {
	case kind != websocket.MessageText:
		return k.close(codeBadRequest, "A message is not text")
	case !utf8.Valid(b):
		return k.close(codeBadRequest, "A message is not UTF-8")
	case json.Unmarshal(b, &m) != nil:
		return k.close(codeBadRequest, "A message is not a JSON object with a type")
	}
	if string(m.Payload) == "null" {
		m.Payload = nil
	}
	if m.Payload != nil && m.Payload[0] != '{' {
		return k.close(codeBadRequest, "A payload is not an object")
	}
	switch m.Type {
	case "connection_init":
		return k.introduce(m.Payload)
	case "ping":
		return k.reply(pong(m.Payload))
	case "pong":
		return true
	case "subscribe":
		return k.begin(&m)
	case "complete":
		if m.ID == nil {
			return k.close(codeBadRequest, "A complete has no id")
		}
		k.mu.Lock()
		op := k.operations[*m.ID]
		k.mu.Unlock()
		if op != nil {
			k.finish(op)
		}
		return true
	case "":
		return k.close(codeBadRequest, "A message has no type")
	default:
		return k.close(codeBadRequest, "A message is of an unknown type")
	}
}

// introduce handles a connection_init.
func (k *socket) introduce(payload json.RawMessage) bool {
	if k.introduced.Swap(true) {
		return k.close(codeManyInits, "Too many initialisation requests")
	}
	ctx, err := k.server.cfg.Operator.Init(k.ctx, payload)
	if err != nil {
		return k.close(codeForbidden, "Forbidden")
	}
	k.ctx = ctx
	context.AfterFunc(ctx, func() { k.close(codeForbidden, "Forbidden") }) // nothing, when it ends with the socket
	k.acknowledged = true
	return k.reply(frameAck)
}

var (
	frameAck  = []byte(`{"type":"connection_ack"}`)
	framePing = []byte(`{"type":"ping"}`)
	framePong = []byte(`{"type":"pong"}`)
)

func pong(payload json.RawMessage) []byte {
	if len(payload) == 0 || len(payload) > maxEcho {
		return framePong
	}
	return fmt.Appendf(nil, `{"type":"pong","payload":%s}`, payload)
}

// begin handles a subscribe.
func (k *socket) begin(m *message) bool {
	switch {
	case !k.acknowledged:
		return k.close(codeUnauthorized, "Unauthorized")
	case m.ID == nil || *m.ID == "":
		return k.close(codeBadRequest, "A subscribe has no id")
	case len(*m.ID) > maxID:
		return k.close(codeBadRequest, fmt.Sprintf("An id is longer than %d bytes", maxID))
	case m.Payload == nil:
		return k.close(codeBadRequest, "A subscribe has no payload")
	}
	id, err := json.Marshal(*m.ID)
	if err != nil {
		return k.close(codeBadRequest, "An id cannot be sent back")
	}
	op := &operation{socket: k, id: *m.ID, next: fmt.Appendf(nil, `{"id":%s,"type":"next","payload":`, id)}
	op.member = fanout.NewMember(op.wake)

	k.mu.Lock()
	_, taken := k.operations[op.id]
	idle := k.draining || k.closing
	full := len(k.operations) >= k.server.cfg.Operations
	k.mu.Unlock()
	switch {
	case taken:
		return k.close(codeSubscriber, "Subscriber for "+op.id+" already exists")
	case idle:
		return true // the client is told to connect again
	case full:
		err = market.Errorf(market.CodeRateLimited, "more than %d operations at once on one connection", k.server.cfg.Operations)
	default:
		err = k.server.cfg.Quota.Begin(k.client)
	}
	if err != nil {
		return k.reply(failed(id, k.server.cfg.Operator.Errors(k.ctx, err)))
	}
	k.server.operations.Add(1)
	// It is among the operations before it starts, so that it can end at once. Only this goroutine adds any.
	k.mu.Lock()
	k.operations[op.id] = op
	k.mu.Unlock()
	once, errors := k.server.cfg.Operator.Operate(k.ctx, m.Payload, op.member)
	switch {
	case errors != nil:
		k.finish(op)
		return k.reply(failed(id, errors))
	case once != nil:
		ctx, cancel := context.WithCancel(k.ctx)
		k.mu.Lock()
		op.cancel = cancel
		k.once++
		k.mu.Unlock()
		k.work.Go(func() {
			defer cancel()
			once(ctx)
		})
	}
	return true
}

// failed returns the frame that ends an operation by errors.
func failed(id, errors []byte) []byte {
	return fmt.Appendf(nil, `{"id":%s,"type":"error","payload":%s}`, id, errors)
}

// finish ends an operation, of which no more is sent. Finishing again does nothing.
func (k *socket) finish(op *operation) {
	k.mu.Lock()
	if op.over {
		k.mu.Unlock()
		return
	}
	op.over = true
	delete(k.operations, op.id)
	if op.cancel != nil {
		k.once--
		op.cancel()
	}
	done := k.draining && k.once == 0
	k.mu.Unlock()
	op.member.Leave()
	k.server.cfg.Quota.End(k.client)
	k.server.operations.Add(-1)
	if done {
		k.close(codeServiceRestart, "Service restart")
	}
}

// drain ends the subscriptions, whose client starts them again elsewhere, and closes the socket when all else has ended.
func (k *socket) drain() {
	k.mu.Lock()
	k.draining = true
	done := k.once == 0
	k.mu.Unlock()
	if done {
		k.close(codeServiceRestart, "Service restart")
	}
}

// close closes the socket with a code, without waiting for it. Only the first one counts. It returns false, since nothing
// is to be read any more.
func (k *socket) close(code websocket.StatusCode, reason string) bool {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	k.end(func() { _ = k.conn.Close(code, reason) }) // bounded by the library: 5 s to write it and 5 s for the answer
	return false
}

// abort closes the connection without a word, since nobody would read it. It reports whether it was the first to.
func (k *socket) abort() (first bool) { return k.end(func() { _ = k.conn.CloseNow() }) }

// end closes the socket, unless that is under way, and reports whether it was not.
func (k *socket) end(hangUp func()) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing {
		return false
	}
	k.closing = true
	k.room.Broadcast()
	k.work.Go(func() {
		defer k.cancel()
		hangUp()
	})
	return true
}

// reply sends a frame before all that waits. It waits while the client does not read its answers.
func (k *socket) reply(frame []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.replies) >= maxReplies && !k.closing {
		k.room.Wait()
	}
	k.replies = append(k.replies, frame)
	k.start()
	return !k.closing
}

// wake tells that the operation has something to send.
func (op *operation) wake(*fanout.Member) {
	k := op.socket
	k.mu.Lock()
	defer k.mu.Unlock()
	if !op.queued && !op.over {
		op.queued = true
		k.ready = append(k.ready, op)
		k.start()
	}
}

// start starts the writer where there is none. The lock is held.
func (k *socket) start() {
	if !k.flushing && !k.closing {
		k.flushing = true
		k.work.Add(1)
		go k.flush()
	}
}

// write writes what there is.
func (k *socket) write() {
	defer k.work.Done()
	for {
		k.mu.Lock()
		var frame []byte
		var op *operation
		switch {
		case k.closing:
			k.mu.Unlock()
			return
		case len(k.replies) > 0:
			frame = k.replies[0]
			k.replies[0] = nil
			k.replies = k.replies[1:]
			if len(k.replies) == 0 {
				k.replies = nil
			}
			k.room.Signal()
		case len(k.ready) > 0:
			op = k.ready[0]
			copy(k.ready, k.ready[1:])
			k.ready[len(k.ready)-1] = nil
			k.ready = k.ready[:len(k.ready)-1]
			op.queued = false
		default:
			k.flushing = false
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if op == nil {
			if !k.put(frame) {
				return
			}
		} else if !k.advance(op) {
			return
		}
	}
}

// advance sends the next frame of an operation. It returns false when the socket is broken.
func (k *socket) advance(op *operation) bool {
	payload, over, end := op.member.Take()
	switch {
	case payload != nil:
		buf := buffers.Get().(*bytes.Buffer)
		buf.Reset()
		buf.Write(op.next)
		buf.Write(payload)
		buf.WriteByte('}')
		ok := k.put(buf.Bytes())
		if buf.Cap() <= 64<<10 {
			buffers.Put(buf)
		}
		op.wake(nil) // there may be more
		return ok
	case !over:
		return true
	}
	k.mu.Lock()
	gone := op.over
	k.mu.Unlock()
	if gone {
		return true // the client has ended it
	}
	id, _ := json.Marshal(op.id) // it could be marshalled before
	errors := end.Errors
	if end.Err != nil {
		errors = k.server.cfg.Operator.Errors(k.ctx, end.Err)
	}
	frame := fmt.Appendf(nil, `{"id":%s,"type":"complete"}`, id)
	if errors != nil {
		frame = failed(id, errors)
	}
	ok := k.put(frame)
	k.finish(op)
	return ok
}

// put writes a frame. It returns false when the socket is broken.
func (k *socket) put(frame []byte) bool {
	k.writing.Store(monotonic())
	// Without a deadline, which would cost eleven allocations: look closes the connection when this takes too long.
	err := k.conn.Write(context.Background(), websocket.MessageText, frame)
	k.writing.Store(0)
	if err != nil {
		k.abort() // which ends the reader
	}
	return err == nil
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
	switch silence := now - k.heard.Load(); {
	case !k.introduced.Load() && now-k.opened > int64(cfg.InitTimeout):
		k.close(codeInitTimeout, "Connection initialisation timeout")
	case silence > 2*int64(cfg.Ping)+int64(cfg.WriteTimeout):
		if k.abort() {
			k.server.silent.Add(1)
		}
	case silence > int64(cfg.Ping) && now-k.pinged > int64(cfg.Ping):
		k.pinged = now
		k.mu.Lock()
		if len(k.replies) == 0 { // else something is being written anyway
			k.replies = append(k.replies, framePing)
			k.start()
		}
		k.mu.Unlock()
	}
}
