package graphqlws_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/tests/tool"
)

// TestOnlySilentClientsAreDisconnected checks that a client stays connected as long as it sends anything or answers pings.
func TestOnlySilentClientsAreDisconnected(t *testing.T) {
	// The server disconnects a silent client after two seconds. Until then the client gets at most four pings.
	cfg := graphqlws.Config{Ping: 500 * time.Millisecond, WriteTimeout: time.Second}
	for name, answer := range map[string][]byte{
		"pong":           frame(opText, `{"type":"pong"}`),
		"ping":           frame(opText, `{"type":"ping"}`),
		"WebSocket ping": frame(opPing, ""),
		"WebSocket pong": frame(opPong, ""),
		"silent":         nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, cfg, func(t *testing.T, s *graphqlws.Server, _ *operator, r *raw) {
				r.say(initialise, subscribing("1", "subscription a"))
				pings := 0
				var err error
				for err == nil && pings < 6 {
					var first byte
					var payload []byte
					switch first, payload, err = r.hear(); {
					case err == nil && first == opClose:
						t.Fatalf("the server sent the close frame %x", payload)
					case err == nil && string(payload) == pinging:
						pings++
						r.send(answer)
					}
				}
				want := uint64(0)
				switch {
				case answer == nil:
					if want = 1; pings == 0 || pings > 4 {
						t.Errorf("the client got %d pings, want 1 to 4", pings)
					}
				case err != nil:
					t.Errorf("the connection broke after %d pings: %v", pings, err)
				}
				synctest.Wait()
				if silent := s.Stats().Silent; silent != want {
					t.Errorf("%d silent clients were disconnected, want %d", silent, want)
				}
			})
		})
	}
}

// TestSlowClientIsDisconnected checks that the server disconnects a client that does not read its events, and no other client.
func TestSlowClientIsDisconnected(t *testing.T) {
	tool.CheckTier(t)
	for name, mode := range map[string]follow.Mode{"replaced": follow.Replace, "deltas": follow.Delta} {
		t.Run(name, func(t *testing.T) {
			o := newOperator()
			s := serve(t, graphqlws.Config{WriteTimeout: 2 * time.Second}, o)
			slow, quick := s.raw(), s.initialised()
			slow.say(initialise, subscribing("1", "subscription a"))
			quick.subscribe("1", "subscription a")
			o.awaitMembers(t, 2)
			payload := []byte(`{"data":"` + strings.Repeat("x", 30<<10) + `"}`)
			sent := 0
			for ; s.Stats().Slow == 0; sent++ {
				if sent == 10_000 {
					t.Fatal("300 MB were sent to a client that does not read")
				}
				s.publish(t, "subscription a", payload, mode)
				if _, err := quick.hear(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond) // much shorter than WriteTimeout
			}
			o.awaitMembers(t, 1)
			s.awaitSockets(1)
			s.publish(t, "subscription a", payload, mode)
			if _, err := quick.hear(); err != nil {
				t.Fatal(err)
			}
			slow.expectEnd()
		})
	}
}

// TestSlowClientGetsTheLastEvent checks that the server sends at most 1 MiB to a client that does not read. When the client reads,
// it must get the last event.
func TestSlowClientGetsTheLastEvent(t *testing.T) {
	o := newOperator()
	s := serve(t, graphqlws.Config{}, o)
	slow, quick := s.raw(), s.initialised()
	slow.say(initialise, subscribing("1", "subscription a"))
	quick.subscribe("1", "subscription a")
	o.awaitMembers(t, 2)
	const size, events = 8 << 10, 1000
	padding := strings.Repeat("x", size)
	for i := range events {
		s.publish(t, "subscription a", fmt.Appendf(nil, `{"data":"%d %s"}`, i, padding), follow.Replace)
		if _, err := quick.hear(); err != nil {
			t.Fatal(err)
		}
	}
	taken := (events - int(o.hub.Stats().Conflated)) * size
	t.Logf("%d KB were sent to a client that does not read", taken>>10)
	if taken > 1<<20 {
		t.Errorf("%d KB were sent to a client that does not read, want at most 1,024 KB", taken>>10)
	}
	for last := fmt.Sprintf("\"%d ", events-1); ; {
		_, payload, err := slow.hear()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(payload, []byte(last)) {
			break
		}
	}
}

// TestFlood checks that the server reads messages at the allowed rate, and only while the client reads the replies.
func TestFlood(t *testing.T) {
	for name, ping := range map[string][]byte{"messages": frame(opText, pinging), "WebSocket pings": frame(opPing, ""), "WebSocket pongs": frame(opPong, "")} {
		t.Run("pace of "+name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, graphqlws.Config{MessagesPerSecond: 100, MessageBurst: 10}, newOperator())
			r := s.raw()
			began := time.Now()
			r.send(append(bytes.Repeat(ping, 50), frame(opText, `{"type":"ping","payload":{"last":1}}`)...))
			for {
				_, payload, err := r.hear()
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(payload), "last") {
					break
				}
			}
			if took := time.Since(began); took < 390*time.Millisecond {
				t.Errorf("51 messages took %v; with a burst of 10 and 100 messages a second, they must take at least 390ms", took)
			}
		})
	}
	for name, message := range map[string]string{
		"pings":      `{"type":"ping","payload":{"a":"` + strings.Repeat("x", 900) + `"}}`,
		"subscribes": subscribing("1", "refused") + strings.Repeat(" ", 900),
		"operations": subscribing("1", "slow") + strings.Repeat(" ", 900),
	} {
		t.Run("unread "+name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, graphqlws.Config{MessagesPerSecond: 1e9, MessageBurst: 1e9, Operations: 10, WriteTimeout: time.Hour, Ping: time.Hour}, newOperator())
			r := s.raw()
			r.say(initialise)
			wrote, i := 0, 0
			for ; wrote < 100<<20; i++ {
				m := message
				if name != "pings" {
					m = strings.Replace(message, `"1"`, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("y", 100)), 1)
				}
				_ = r.SetWriteDeadline(time.Now().Add(time.Second))
				n, err := r.Write(frame(opText, m))
				if wrote += n; err != nil {
					break // the server has stopped reading
				}
			}
			if wrote > 32<<20 {
				t.Errorf("the server read %d MB from a client that does not read, want at most 32 MB", wrote>>20)
			}
		})
	}
}

// TestBrokenConnections checks that the server ends the socket and the operations of a broken connection.
func TestBrokenConnections(t *testing.T) {
	o := newOperator()
	s := serve(t, graphqlws.Config{}, o)
	for name, say := range map[string]func(r *raw){
		"before connection_init":         func(*raw) {},
		"after connection_init":          func(r *raw) { r.say(initialise) },
		"with running operations":        func(r *raw) { r.say(initialise, subscribing("1", "subscription a"), subscribing("2", "slow")) },
		"inside a frame":                 func(r *raw) { r.send(frame(opText, initialise)[:10]) },
		"inside a frame header":          func(r *raw) { r.send(frame(opText, strings.Repeat("x", 1000))[:3]) },
		"inside a message of two frames": func(r *raw) { r.send(frame(0x01, `{"type":`)) },
		"with a half close":              func(r *raw) { r.say(initialise); _ = r.Conn.(*net.TCPConn).CloseWrite(); r.expectClose(1002) },
		"with a reset instead of a close": func(r *raw) {
			r.say(initialise, subscribing("1", "subscription a"))
			_ = r.Conn.(*net.TCPConn).SetLinger(0)
		},
		"without an answer to a close frame": func(r *raw) { r.say("violation"); r.expectClose(4400) },
	} {
		t.Run(name, func(t *testing.T) {
			r := s.raw()
			r.t = t
			say(r)
			_ = r.Close()
			s.t = t
			s.awaitSockets(0)
			o.awaitMembers(t, 0)
		})
	}
}

// TestEndlessFrame checks that the server disconnects a client that answers a close frame with an endless frame.
func TestEndlessFrame(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // takes five seconds
	s := serve(t, graphqlws.Config{}, newOperator())
	r := s.raw()
	r.say("violation")
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(r.endless)
	r.expectClose(4400)
	s.awaitSockets(0)
}

// endless sends an endless frame until the connection breaks.
func (r *raw) endless() {
	head := binary.BigEndian.AppendUint64([]byte{opText, 0xff}, 1<<40)
	_, err := r.Write(append(head, 0, 0, 0, 0))
	for err == nil {
		_, err = r.Write(make([]byte, 1<<10))
	}
}

// TestDrain checks that a drain closes each socket as soon as the socket has no running query. A drain must also refuse new
// clients.
func TestDrain(t *testing.T) {
	o := newOperator()
	s := serve(t, graphqlws.Config{}, o)
	busy, idle, fresh := s.initialised(), s.initialised(), s.dial()
	busy.subscribe("slow", "slow")
	busy.subscribe("s", "subscription a")
	idle.subscribe("s", "subscription a")
	receive(t, o.started)
	o.awaitMembers(t, 2)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.Drain(context.Background())
	}()
	if before := idle.expectClose(1012); len(before) != 0 {
		t.Errorf("before the close, the idle client got %q, want nothing", before)
	}
	fresh.expectClose(1012)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, resp, err := websocket.Dial(ctx, s.http.URL, nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a new connection during a drain: error %v, want the status 503 with Retry-After", err)
	}
	busy.settled()
	s.publish(t, "subscription a", []byte(`{"data":1}`), follow.Append) // a socket with a running query still gets events
	busy.expect(`{"id":"s","type":"next","payload":{"data":1}}`)
	busy.subscribe("late", "query") // gets no response, because the server is draining
	busy.settled()
	select {
	case <-drained:
		t.Fatal("Drain returned while an operation was executing")
	default:
	}
	send(t, o.release, struct{}{})
	want := []string{`{"id":"slow","type":"next","payload":{"data":{"slow":true}}}`, `{"id":"slow","type":"complete"}`}
	if before := busy.expectClose(1012); fmt.Sprint(before) != fmt.Sprint(want) {
		t.Errorf("before the close, the busy client got %q, want %q", before, want)
	}
	receive(t, drained)
}

// TestDrainCompleted checks that a drain does not wait for an operation that the client completes.
func TestDrainCompleted(t *testing.T) {
	o := newOperator()
	s := serve(t, graphqlws.Config{}, o)
	c := s.initialised()
	c.subscribe("slow", "slow")
	receive(t, o.started)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.Drain(context.Background())
	}()
	await(t, "a subscribe message that the draining server ignores", func() bool {
		c.subscribe("1", "subscription a")
		c.say(`{"type":"complete","id":"1"}`)
		c.settled()
		return o.hub.Stats().Members == 0
	})
	c.say(`{"type":"complete","id":"slow"}`)
	c.expectClose(1012)
	receive(t, drained)
}

// TestDrainEnds checks that Drain returns soon after its context ends. Drain must not wait for a running operation, or for a client
// that does not answer, does not read, or sends an endless frame.
func TestDrainEnds(t *testing.T) {
	o := newOperator()
	s := serve(t, graphqlws.Config{}, o)
	c := s.initialised()
	c.subscribe("slow", "slow")
	receive(t, o.started)

	mute := s.raw()
	mute.say(initialise)
	deaf := s.raw()
	deaf.say(initialise, subscribing("1", "subscription a"))
	o.awaitMembers(t, 1)
	for o.hub.Stats().Lost == 0 { // until the kernel's buffers are full
		s.publish(t, "subscription a", bytes.Repeat([]byte("x"), 32<<10), follow.Delta)
	}
	endless := s.raw()
	endless.say(initialise, "violation")
	var senders sync.WaitGroup
	defer senders.Wait()
	senders.Go(endless.endless)
	endless.expectClose(4400)

	ctx, cancel := context.WithCancel(context.Background())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.Drain(ctx)
	}()
	mute.expectClose(1012)
	cancel()
	select {
	case <-drained:
	case <-time.After(patience / 2):
		t.Errorf("Drain did not return within %v after its context had ended", patience/2)
	}
	c.expectClose(1012)
	if _, err := io.Copy(io.Discard, deaf.in); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection of a client that does not read is still open")
	}
}

// TestServeWhileDraining checks that the server refuses or closes a client that connects during a drain.
func TestServeWhileDraining(t *testing.T) {
	o := newOperator()
	s := serve(t, graphqlws.Config{}, o)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			conn, in, err := handshake(s.http.Listener.Addr().String())
			if err != nil {
				return // the server has refused the client
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, _ = conn.Write(append(frame(opText, initialise), frame(opText, subscribing("1", "query"))...))
			for {
				first, payload, err := readFrame(in, nil)
				var late net.Error
				switch {
				case errors.As(err, &late) && late.Timeout():
					t.Error("the server neither refused nor closed a client that connected during a drain")
					return
				case err != nil:
					return
				case first == opClose:
					if code := binary.BigEndian.Uint16(payload); code != 1012 {
						t.Errorf("the close code is %d, want 1012", code)
					}
					_, _ = conn.Write(frame(opClose, string(payload[:2])))
				}
			}
		})
	}
	s.Drain(context.Background())
	wg.Wait()
}
