package graphqlws_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/graphqlws"
)

// pipes is a listener of in-process connections, which work in a synctest bubble.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// inBubble runs a test in a synctest bubble, with a server and a client that has opened a WebSocket.
func inBubble(t *testing.T, cfg graphqlws.Config, test func(t *testing.T, s *graphqlws.Server, o *operator, r *raw)) {
	inBubbleConnected(t, cfg, func(t *testing.T, s *graphqlws.Server, o *operator, conn net.Conn) {
		in, err := upgrade(conn)
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, o, &raw{t, conn, in})
	})
}

// inBubbleConnected is like inBubble, but calls test before the handshake.
func inBubbleConnected(t *testing.T, cfg graphqlws.Config, test func(t *testing.T, s *graphqlws.Server, o *operator, conn net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperator()
		s := graphqlws.New(required(cfg, o))
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: s}
		served := make(chan error, 1)
		go func() { served <- server.Serve(p) }()
		conn, accepted := net.Pipe()
		p.accepted <- accepted
		test(t, s, o, conn)
		_ = conn.Close()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		s.Drain(ended)
		_ = server.Close()
		<-served
		o.hub.Close()
	})
}

// TestTimeouts checks that the server acts at most 25 ms after InitTimeout, Ping or WriteTimeout. After connection_init, a client
// may be silent for longer than InitTimeout and WriteTimeout. Frames between the parts of a message must not prolong WriteTimeout.
func TestTimeouts(t *testing.T) {
	const short = 100 * time.Millisecond
	requireOnTime := func(t *testing.T, what string, since time.Time, least time.Duration) {
		t.Helper()
		if took := time.Since(since); took < least || took > least+short/4 {
			t.Errorf("%s came after %v, want it within %v of %v", what, took, short/4, least)
		}
	}
	t.Run("connection_init", func(t *testing.T) {
		inBubble(t, graphqlws.Config{InitTimeout: short, Ping: time.Hour, WriteTimeout: time.Hour}, func(t *testing.T, _ *graphqlws.Server, _ *operator, r *raw) {
			began := time.Now()
			r.expectClose(4408)
			requireOnTime(t, "the close", began, short)
		})
	})
	t.Run("ping", func(t *testing.T) {
		inBubble(t, graphqlws.Config{InitTimeout: short / 2, Ping: short, WriteTimeout: short / 2}, func(t *testing.T, _ *graphqlws.Server, _ *operator, r *raw) {
			r.say(initialise)
			r.expect(`{"type":"connection_ack"}`)
			began := time.Now()
			r.expect(pinging)
			requireOnTime(t, "the ping", began, short)
		})
	})
	t.Run("message", func(t *testing.T) {
		inBubble(t, graphqlws.Config{InitTimeout: time.Hour, Ping: time.Hour, WriteTimeout: short}, func(t *testing.T, _ *graphqlws.Server, _ *operator, r *raw) {
			began := time.Now()
			r.send(frame(opText&^0x80, `{"type":`)) // begins a message of several frames
			var sender sync.WaitGroup
			sender.Go(func() {
				for err := error(nil); err == nil; time.Sleep(short / 4) {
					_, err = r.Write(frame(opPing, ""))
				}
			})
			r.expectClose(websocket.StatusPolicyViolation)
			requireOnTime(t, "the close", began, short)
			_ = r.Close()
			sender.Wait()
		})
	})
}
