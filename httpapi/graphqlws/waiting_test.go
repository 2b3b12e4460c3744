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

// expect reads a frame.
func (r *raw) expect(want string) {
	r.t.Helper()
	if _, payload, err := r.hear(); err != nil || string(payload) != want {
		r.t.Fatalf("the client hears %s, %v, want %s", payload, err, want)
	}
}

// TestEndOfACompletedOperation has a client complete an operation and reuse its id before the server has written the end of that
// operation. The client must get only frames of the new operation.
func TestEndOfACompletedOperation(t *testing.T) {
	inBubble(t, graphqlws.Config{}, func(t *testing.T, _ *graphqlws.Server, o *operator, r *raw) {
		r.say(initialise)
		r.expect(`{"type":"connection_ack"}`)
		r.say(subscribing("1", "subscription a"))
		o.publish(t, "subscription a", []byte(`"old"`), follow.Append)
		synctest.Wait() // the writer waits for the client to read
		r.say(subscribing("q", "refused"), `{"type":"complete","id":"q"}`, subscribing("q", "subscription b"))
		o.publish(t, "subscription b", []byte(`"new"`), follow.Append)
		synctest.Wait()
		r.expect(`{"id":"1","type":"next","payload":"old"}`)
		r.expect(`{"id":"q","type":"next","payload":"new"}`)
	})
}

// TestWaitingReplies has a client send messages without reading the replies. The server must stop reading from the client, and
// continue when the client reads.
func TestWaitingReplies(t *testing.T) {
	inBubble(t, graphqlws.Config{MessagesPerSecond: 1e9, MessageBurst: 1e9}, func(t *testing.T, _ *graphqlws.Server, _ *operator, r *raw) {
		const pings = 100
		var sender sync.WaitGroup
		sender.Go(func() {
			for range pings {
				r.say(pinging)
			}
		})
		synctest.Wait() // neither side can continue
		for range pings {
			r.expect(`{"type":"pong"}`)
		}
		sender.Wait()
	})
}

// TestDrainOfSeveralOperations: a drained socket does not close while an operation is still executing.
func TestDrainOfSeveralOperations(t *testing.T) {
	inBubble(t, graphqlws.Config{}, func(t *testing.T, s *graphqlws.Server, o *operator, r *raw) {
		r.say(initialise)
		r.expect(`{"type":"connection_ack"}`)
		drained := make(chan struct{})
		for _, id := range []string{"a", "b"} {
			r.say(subscribing(id, "slow"))
			synctest.Wait() // the operations wait in this order
		}
		go func() { s.Drain(context.Background()); close(drained) }()
		synctest.Wait()
		for _, id := range []string{"a", "b"} {
			o.release <- struct{}{}
			r.expect(`{"id":"` + id + `","type":"next","payload":{"data":{"slow":true}}}`)
			r.expect(`{"id":"` + id + `","type":"complete"}`)
			synctest.Wait()
		}
		r.expectClose(1012)
		r.send(frame(opClose, "\x03\xf4"))
		<-drained
	})
}

// TestWaitingResults expects ten operations of a socket to execute concurrently. The eleventh operation must start when the server
// has written a result.
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
		begun(10) // the client has not read the result
		for range 2 {
			if _, _, err := r.hear(); err != nil {
				t.Fatal(err)
			}
		}
		begun(11)
	})
}

// TestDrainDuringAHandshake begins a drain during the handshake of a socket. The server must close this socket like the others. If
// the context of Drain has already ended, Drain does not wait for the client's answer to the close frame.
func TestDrainDuringAHandshake(t *testing.T) {
	for _, brief := range []bool{false, true} {
		inBubbleConnected(t, graphqlws.Config{}, func(t *testing.T, s *graphqlws.Server, _ *operator, conn net.Conn) {
			if _, err := io.WriteString(conn, upgradeRequest); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the server waits for the client to read the response
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
				t.Errorf("the drain took %v", took)
			}
		})
	}
}
