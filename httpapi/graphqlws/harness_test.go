package graphqlws_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the longest time that a test waits for one event.
const patience = 20 * time.Second

// operator executes documents by their first word:
//
//	query            is answered at once
//	slow             is answered when it is released
//	subscription …   is executed once for all equal documents, with the events that the test publishes
//	refused          is refused
type operator struct {
	hub *fanout.Hub
	// init authenticates clients. If init is nil, all clients are accepted.
	init func(ctx context.Context, payload json.RawMessage) (context.Context, error)
	// started receives a value when a slow query starts. Each value sent to release ends one slow query.
	started, release chan struct{}

	mu     sync.Mutex
	topics map[string]*topic
}

func newOperator() *operator {
	return &operator{hub: fanout.New(fanout.Limits{Ahead: 1 << 30}), started: make(chan struct{}, 100), release: make(chan struct{}), topics: make(map[string]*topic)}
}

// Client returns the account in ctx, or else an anonymous client.
func (o *operator) Client(ctx context.Context) quota.Client {
	if a, ok := ctx.Value(accountKey{}).(market.Address); ok {
		return quota.Account(a)
	}
	return quota.Anonymous(testAddress)
}

// accountKey is the key of a context value: the account that operator.init has found.
type accountKey struct{}

var testAddress = netip.MustParseAddr("192.0.2.1")

func (o *operator) Init(ctx context.Context, payload json.RawMessage) (context.Context, error) {
	if o.init == nil {
		return ctx, nil
	}
	return o.init(ctx, payload)
}

func (o *operator) Operate(ctx context.Context, payload json.RawMessage, m *fanout.Member) (once func(ctx context.Context), refused []byte, malformed error) {
	growStack(100)
	var p struct{ Query string }
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, nil, errors.New("the payload is malformed")
	}
	switch kind, _, _ := strings.Cut(p.Query, " "); kind {
	case "subscription":
		var key fanout.Key
		copy(key[:], p.Query)
		free := func() (func(), error) { return func() {}, nil }
		_ = o.hub.Join(ctx, key, m, quota.Client{}, free, func(ctx context.Context, g *fanout.Group, deliver func(*fanout.Event)) (errors, event []byte) {
			topic := o.topic(p.Query)
			topic.mu.Lock()
			topic.group = g
			topic.mu.Unlock()
			return topic.run(ctx, deliver), nil
		})
		return nil, nil, nil
	case "query":
		return func(context.Context) {
			m.Send([]byte(`{"data":{"a":1}}`))
			m.Finish(fanout.End{})
		}, nil, nil
	case "slow":
		return func(ctx context.Context) {
			select {
			case o.started <- struct{}{}:
			case <-ctx.Done():
			}
			select {
			case <-o.release:
			case <-ctx.Done():
			}
			m.Send([]byte(`{"data":{"slow":true}}`))
			m.Finish(fanout.End{})
		}, nil, nil
	default:
		return nil, []byte(`[{"message":"refused"}]`), nil
	}
}

func (o *operator) Errors(_ context.Context, err error) []byte {
	b, _ := json.Marshal([]any{map[string]any{"message": err.Error(), "extensions": map[string]any{"code": market.CodeOf(err)}}})
	return b
}

func (o *operator) Refuse(ctx context.Context, err error) []byte { return o.Errors(ctx, err) }

// growStack makes the stack grow, as the execution of an operation does.
//
//go:noinline
func growStack(n int) byte {
	var frame [256]byte
	if n > 0 {
		frame[n] = growStack(n - 1)
	}
	return frame[n/2]
}

// topic contains the events of a subscription.
type topic struct {
	events chan *fanout.Event
	ended  chan []byte
	mu     sync.Mutex
	group  *fanout.Group
}

func (o *operator) topic(name string) *topic {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.topics[name]
	if t == nil {
		t = &topic{events: make(chan *fanout.Event), ended: make(chan []byte)}
		o.topics[name] = t
	}
	return t
}

// group waits for the group of a subscription and returns it.
func (o *operator) group(t testing.TB, query string) (g *fanout.Group) {
	t.Helper()
	topic := o.topic(query)
	await(t, "the execution of "+query, func() bool {
		topic.mu.Lock()
		defer topic.mu.Unlock()
		g = topic.group
		return g != nil
	})
	return g
}

// publish makes the execution of a subscription deliver an event.
func (o *operator) publish(t testing.TB, query string, payload []byte, mode follow.Mode) {
	t.Helper()
	send(t, o.topic(query).events, &fanout.Event{Envelope: follow.Envelope{Mode: mode}, Payload: payload})
}

// awaitMembers waits until n subscriptions are open.
func (o *operator) awaitMembers(t testing.TB, n int) {
	t.Helper()
	await(t, "members", func() bool { s := o.hub.Stats(); return s.Members == n && (n > 0 || s.Groups == 0) })
}

// run delivers the events of one execution of the topic, and returns the errors that end the execution.
func (t *topic) run(ctx context.Context, deliver func(*fanout.Event)) (last []byte) {
	defer func() {
		t.mu.Lock()
		t.group = nil
		t.mu.Unlock()
	}()
	for {
		select {
		case e := <-t.events:
			deliver(e)
		case last = <-t.ended:
			return last
		case <-ctx.Done():
			return nil
		}
	}
}

type service struct {
	t testing.TB
	*operator
	*graphqlws.Server
	http *httptest.Server
}

// serve starts a server and stops it when the test ends. A timeout that cfg does not set is an hour, so that a slow machine
// does not exceed it.
func serve(t testing.TB, cfg graphqlws.Config, o *operator) *service {
	cfg = required(cfg, o)
	for _, d := range []*time.Duration{&cfg.InitTimeout, &cfg.Ping, &cfg.WriteTimeout} {
		*d = cmp.Or(*d, time.Hour)
	}
	s := &service{t: t, operator: o, Server: graphqlws.New(cfg)}
	s.http = httptest.NewUnstartedServer(s.Server)
	s.http.Listener = quota.Listen(s.http.Listener, quota.ConnectionLimits{}) // bounds the bytes that the kernel accepts
	s.http.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Drain(ctx)
		s.http.Close()
		o.hub.Close()
		if stats := s.Stats(); stats.Sockets != 0 || stats.Operations != 0 {
			t.Errorf("after Drain, the server has %+v, want no sockets and no operations", stats)
		}
		if stats := o.hub.Stats(); stats.Members != 0 || stats.Groups != 0 {
			t.Errorf("after Drain, the hub has %+v, want no members and no groups", stats)
		}
	})
	return s
}

// required sets the required fields of a Config.
func required(cfg graphqlws.Config, o *operator) graphqlws.Config {
	cfg.Operator = o
	cfg.Quota = cmp.Or(cfg.Quota, quota.New(quota.Limits{}))
	cfg.Incoming = cmp.Or(cfg.Incoming, quota.NewMemory(32<<20))
	if cfg.CheckOrigin == nil {
		cfg.CheckOrigin = func(*http.Request) error { return nil }
	}
	if cfg.Address == nil {
		cfg.Address = func(*http.Request) netip.Addr { return testAddress }
	}
	return cfg
}

func (s *service) awaitSockets(n int) {
	s.t.Helper()
	await(s.t, "sockets", func() bool { return s.Stats().Sockets == n })
}

type client struct {
	t    testing.TB
	conn *websocket.Conn
}

func (s *service) dial(options ...string) *client {
	s.t.Helper()
	protocols := []string{graphqlws.Subprotocol}
	if len(options) > 0 {
		protocols = options
	}
	if protocols[0] == "" {
		protocols = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, s.http.URL, &websocket.DialOptions{Subprotocols: protocols})
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{s.t, conn}
}

// initialised returns a client that has received connection_ack.
func (s *service) initialised() *client {
	s.t.Helper()
	c := s.dial()
	c.say(`{"type":"connection_init"}`)
	c.expect(`{"type":"connection_ack"}`)
	return c
}

func (c *client) say(messages ...string) {
	c.t.Helper()
	for _, m := range messages {
		c.write(websocket.MessageText, m)
	}
}

func (c *client) write(kind websocket.MessageType, m string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.conn.Write(ctx, kind, []byte(m)); err != nil {
		c.t.Logf("write: %v", err) // the connection may be closed already
	}
}

func (c *client) hear() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, b, err := c.conn.Read(ctx)
	return string(b), err
}

func (c *client) expect(messages ...string) {
	c.t.Helper()
	for _, want := range messages {
		got, err := c.hear()
		if err != nil {
			c.t.Fatalf("the client read the error %v, want the message %s", err, want)
		}
		if got != want {
			c.t.Errorf("the client read the message %s, want %s", got, want)
		}
	}
}

// expectClose waits for a close frame with the code and returns the messages before it.
func (c *client) expectClose(code websocket.StatusCode) (before []string) {
	c.t.Helper()
	for {
		got, err := c.hear()
		if err == nil {
			before = append(before, got)
			continue
		}
		if websocket.CloseStatus(err) != code {
			c.t.Errorf("the connection ended with %v, want the close code %d", err, code)
		}
		return before
	}
}

func (c *client) subscribe(id, query string) {
	c.t.Helper()
	c.say(subscribing(id, query))
}

func subscribing(id, query string) string {
	b, _ := json.Marshal(map[string]any{"id": id, "type": "subscribe", "payload": map[string]any{"query": query}})
	return string(b)
}

// settled waits until the server has handled all messages of the client.
func (c *client) settled() {
	c.t.Helper()
	c.say(`{"type":"ping","payload":{"settled":true}}`)
	c.expect(`{"type":"pong","payload":{"settled":true}}`)
}

// raw is a client that writes and reads WebSocket frames without package websocket.
type raw struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func (s *service) raw() *raw {
	s.t.Helper()
	conn, in, err := handshake(s.http.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(2 * patience))
	s.t.Cleanup(func() { _ = conn.Close() })
	return &raw{s.t, conn, in}
}

// handshake opens a WebSocket without package websocket.
func handshake(address string) (net.Conn, *bufio.Reader, error) {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, nil, err
	}
	in, err := upgrade(conn)
	return conn, in, err
}

// upgrade opens a WebSocket on a connection and returns a reader of its frames.
func upgrade(conn net.Conn) (*bufio.Reader, error) {
	if _, err := io.WriteString(conn, upgradeRequest); err != nil {
		return nil, err
	}
	return upgraded(conn)
}

const upgradeRequest = "GET / HTTP/1.1\r\nHost: service.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: " + graphqlws.Subprotocol + "\r\n\r\n"

// upgraded reads the response to an upgradeRequest and returns a reader of the frames after the response.
func upgraded(conn net.Conn) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(conn, 512)
	resp, err := http.ReadResponse(in, nil)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(resp.Status)
	}
	return in, err
}

const (
	opText  = 0x81
	opClose = 0x88
	opPing  = 0x89
	opPong  = 0x8a
)

// frame returns a masked frame. The mask is zero, so the payload does not change.
func frame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func (r *raw) send(b []byte) {
	r.t.Helper()
	if _, err := r.Write(b); err != nil {
		r.t.Logf("write: %v", err)
	}
}

func (r *raw) say(messages ...string) {
	r.t.Helper()
	for _, m := range messages {
		r.send(frame(opText, m))
	}
}

// hear returns the next frame.
func (r *raw) hear() (first byte, payload []byte, err error) {
	return readFrame(r.in, nil)
}

// readFrame reads a frame of the server into buf, or into a new buffer if buf is too short.
func readFrame(in *bufio.Reader, buf []byte) (first byte, payload []byte, err error) {
	var head [2]byte
	if head[0], err = in.ReadByte(); err == nil {
		head[1], err = in.ReadByte()
	}
	if err != nil {
		return 0, nil, err
	}
	n, more := uint64(head[1]), 0
	switch n {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if more > 0 {
		n = 0
	}
	for range more {
		b, err := in.ReadByte()
		if err != nil {
			return 0, nil, err
		}
		n = n<<8 | uint64(b)
	}
	if uint64(len(buf)) < n {
		buf = make([]byte, n)
	}
	_, err = io.ReadFull(in, buf[:n])
	return head[0], buf[:n], err
}

// expectClose reads frames until it gets a close frame, which must have the code.
func (r *raw) expectClose(code websocket.StatusCode) {
	r.t.Helper()
	for {
		first, payload, err := r.hear()
		if err != nil {
			r.t.Errorf("the connection ended with %v, want the close code %d", err, code)
			return
		}
		if first == opClose {
			if got := websocket.StatusCode(binary.BigEndian.Uint16(payload)); got != code {
				r.t.Errorf("the close code is %d %s, want %d", got, payload[2:], code)
			}
			return
		}
	}
}

// expectEnd reads frames until the connection ends. The server must send no close frame.
func (r *raw) expectEnd() {
	r.t.Helper()
	for {
		first, payload, err := r.hear()
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			r.t.Error("the connection is still open")
			return
		case err != nil:
			return
		case first == opClose:
			r.t.Errorf("the server sent the close frame %x, want an end without a close frame", payload)
		}
	}
}

func receive[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no value was received within %v", patience)
	}
	return v
}

func send[T any](t testing.TB, c chan<- T, v T) {
	t.Helper()
	select {
	case c <- v:
	case <-time.After(patience):
		t.Fatal("the group did not take the event in time")
	}
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}
