package graphqlws_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/internal/feed/follow"
)

// expect reads a frame and checks that its payload equals want.
func (r *raw) expect(want string) {
	r.t.Helper()
	if _, payload, err := r.hear(); err != nil || string(payload) != want {
		r.t.Fatalf("the client read the payload %s, error %v; want %s", payload, err, want)
	}
}

// TestEndOfACompletedOperation checks that a client that reuses the id of a completed operation gets only frames of the new
// operation.
func TestEndOfACompletedOperation(t *testing.T) {
	inBubble(t, graphqlws.Config{}, func(t *testing.T, _ *graphqlws.Server, o *operator, r *raw) {
		r.say(initialise)
		r.expect(`{"type":"connection_ack"}`)
		r.say(subscribing("1", "subscription a"))
		o.publish(t, "subscription a", []byte(`"old"`), follow.Append)
		synctest.Wait() // now the writer waits for the client to read
		r.say(subscribing("q", "refused"), `{"type":"complete","id":"q"}`, subscribing("q", "subscription b"))
		o.publish(t, "subscription b", []byte(`"new"`), follow.Append)
		synctest.Wait()
		r.expect(`{"id":"1","type":"next","payload":"old"}`)
		r.expect(`{"id":"q","type":"next","payload":"new"}`)
	})
}

// TestWaitingReplies checks that a client gets all replies, even if it has sent many messages before it reads.
func TestWaitingReplies(t *testing.T) {
	inBubble(t, graphqlws.Config{MessagesPerSecond: 1e9, MessageBurst: 1e9}, func(t *testing.T, _ *graphqlws.Server, _ *operator, r *raw) {
		const pings = 100
		var sender sync.WaitGroup
		sender.Go(func() {
			for range pings {
				r.say(pinging)
			}
		})
		synctest.Wait() // now the client waits for the server to read, and the server waits for the client to read
		for range pings {
			r.expect(`{"type":"pong"}`)
		}
		sender.Wait()
	})
}

// TestWaitingResults checks that ten operations of a socket execute concurrently. An eleventh operation must start only when the
// client has read a result.
func TestWaitingResults(t *testing.T) {
	inBubble(t, graphqlws.Config{}, func(t *testing.T, _ *graphqlws.Server, o *operator, r *raw) {
		begun := func(want int) {
			t.Helper()
			synctest.Wait()
			if n := len(o.started); n != want {
				t.Errorf("%d operations have begun, want %d", n, want)
			}
		}
		r.say(initialise)
		r.expect(`{"type":"connection_ack"}`)
		for i := range 12 {
			r.say(subscribing(strconv.Itoa(i), "slow"))
		}
		begun(10)
		o.release <- struct{}{}
		begun(10) // the client has not read the first result
		for range 2 {
			if _, _, err := r.hear(); err != nil {
				t.Fatal(err)
			}
		}
		begun(11)
	})
}

// TestDrainDuringAHandshake checks that a drain also closes a socket whose handshake is not finished. The drain must end within a
// second after the client has read the response.
func TestDrainDuringAHandshake(t *testing.T) {
	for _, brief := range []bool{false, true} {
		inBubbleConnected(t, graphqlws.Config{}, func(t *testing.T, s *graphqlws.Server, _ *operator, conn net.Conn) {
			if _, err := io.WriteString(conn, upgradeRequest); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // now the server waits for the client to read the response
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if brief {
				cancel()
			}
			drained := make(chan struct{})
			go func() { s.Drain(ctx); close(drained) }()
			synctest.Wait()
			began := time.Now()
			in, err := upgraded(conn)
			if err != nil {
				t.Fatal(err)
			}
			if !brief {
				r := &raw{t, conn, in}
				r.expectClose(1012)
				r.send(frame(opClose, "\x03\xf4"))
			}
			<-drained
			if took := time.Since(began); took > time.Second {
				t.Errorf("the drain took %v after the client had read the response, want at most 1s", took)
			}
		})
	}
}
