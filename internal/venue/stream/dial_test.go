package stream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/wire"
)

// patience is the timeout of tests with a real network.
const patience = 30 * time.Second

// serve starts a WebSocket server and returns its URL.
func serve(t *testing.T, handle func(ctx context.Context, ws *websocket.Conn)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.CloseNow() }()
		handle(r.Context(), ws)
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// forward is a Handler that sends a text to calls for each call of its methods, except Acknowledged and Heartbeat.
type forward struct{ calls chan string }

func (f *forward) Up(topics []messages.Topic)              { f.calls <- "up " + label(topics) }
func (f *forward) Acknowledged([]messages.Topic)           {}
func (f *forward) Down(topics []messages.Topic, err error) { f.calls <- "down " + label(topics) }
func (f *forward) Message(m *messages.Message) {
	f.calls <- "message " + label([]messages.Topic{m.Topic})
}
func (f *forward) Refused(t messages.Topic, err error) {
	f.calls <- "refused " + label([]messages.Topic{t})
}
func (f *forward) Heartbeat(string, map[messages.Topic]uint64) {}

func (f *forward) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-f.calls:
			if got != w {
				t.Fatalf("the handler was called with %q, want %q", got, w)
			}
		case <-time.After(patience):
			t.Fatalf("the handler was not called with %q", w)
		}
	}
}

// TestRealSocket checks messages, a close code, a reconnect and the end of Run over a real network.
func TestRealSocket(t *testing.T) {
	var connections atomic.Int32
	farewell := make(chan error, 10)
	address := serve(t, func(ctx context.Context, ws *websocket.Conn) {
		connections.Add(1)
		if err := ws.Write(ctx, websocket.MessageText, []byte(helloFrame)); err != nil {
			return
		}
		for {
			_, frame, err := ws.Read(ctx)
			if err != nil {
				farewell <- err
				return
			}
			if strings.Contains(string(frame), "subscribe") {
				_ = ws.Write(ctx, websocket.MessageText, []byte(`{"type":"orderbook_snapshot","tokenId":"T1","seq":41,"bids":[],"asks":[]}`))
				if connections.Load() == 1 {
					_ = ws.Close(4002, "too slow")
					return
				}
			}
		}
	})
	h := &forward{calls: make(chan string, 100)}
	c, err := New(Config{URL: address, Protocol: testProtocol()}, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	if err := c.Watch(book("T1"), nil); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "up orderbook:T1", "message orderbook:T1", "down orderbook:T1", "up orderbook:T1", "message orderbook:T1")
	cancel()
	h.expect(t, "down orderbook:T1")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := <-farewell; websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the server read the error %v, want a normal closure", err)
	}
	if s := c.Stats(); s.Reconnects != 1 || s.Connections != 0 || s.State != StateDisconnected {
		t.Errorf("the stats after Run are %+v; want one reconnect, no connection and the state DISCONNECTED", s)
	}
}

// TestDialErrors checks the fields Status and RetryAfter of each HandshakeError. No error may contain a secret part of the URL.
func TestDialErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/closed":
			w.Header().Set("Retry-After", "Fri, 31 Dec 2100 23:59:59 GMT")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/elsewhere":
			http.Redirect(w, r, "/canary-target", http.StatusFound)
		case "/ok":
			w.WriteHeader(http.StatusOK)
		case "/half":
			w.Header().Set("Upgrade", "tea")
			w.WriteHeader(http.StatusSwitchingProtocols)
		default:
			t.Errorf("the client requested the path %s", r.URL.Path)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for path, want := range map[string]HandshakeError{
		host + "/busy":           {Status: 429, RetryAfter: 7 * time.Second},
		host + "/closed":         {Status: 503, RetryAfter: wire.MaxWait},
		host + "/elsewhere":      {Status: 302},
		host + "/ok":             {Status: 200},
		host + "/half":           {},
		"127.0.0.1:1":            {}, // nothing listens on this port
		"venue.invalid/canary-p": {},
	} {
		_, err := dialer{}.Dial(t.Context(), "ws://u:canary-password@"+path+"?key=canary-query", nil)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("Dial of %s returns %v, want an error without secrets", path, err)
		}
		var h *HandshakeError
		if want.Status == 0 {
			if errors.As(err, &h) {
				t.Errorf("Dial of %s returns the HandshakeError %v, want another error", path, err)
			}
		} else if !errors.As(err, &h) || *h != want {
			t.Errorf("Dial of %s returns %v, want %+v", path, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (dialer{}).Dial(ctx, "ws://"+host+"/ok?key=canary", nil); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "canary") {
		t.Errorf("Dial with a cancelled context returns %v, want context.Canceled without secrets", err)
	}
}

// TestFrameLimit checks that a frame of more than maxFrameBytes bytes makes Read fail.
func TestFrameLimit(t *testing.T) {
	address := serve(t, func(ctx context.Context, ws *websocket.Conn) {
		_ = ws.Write(ctx, websocket.MessageText, make([]byte, maxFrameBytes))
		_ = ws.Write(ctx, websocket.MessageText, make([]byte, maxFrameBytes+1))
		_, _, _ = ws.Read(ctx)
	})
	c, err := dialer{}.Dial(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(0) }()
	if frame, err := c.Read(t.Context()); err != nil || len(frame) != maxFrameBytes {
		t.Errorf("the first frame has %d bytes and the error %v, want %d bytes", len(frame), err, maxFrameBytes)
	}
	if _, err := c.Read(t.Context()); !errors.Is(err, websocket.ErrMessageTooBig) {
		t.Errorf("Read of the second frame returns %v, want ErrMessageTooBig", err)
	}
}

// TestCloseCode checks that the error of Read contains the venue's close code, but not the text in the venue's close frame.
func TestCloseCode(t *testing.T) {
	address := serve(t, func(ctx context.Context, ws *websocket.Conn) {
		_ = ws.Close(closeRestart, "canary")
	})
	c, err := dialer{}.Dial(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(0) }()
	if _, err := c.Read(t.Context()); codeOf(err) != closeRestart || strings.Contains(err.Error(), "canary") {
		t.Errorf("Read returns %v, want an error with the code %d and without the venue's text", err, closeRestart)
	}
}

// TestDeadPeer checks that Close ends pending calls of Read and Write even if the peer neither reads nor answers.
func TestDeadPeer(t *testing.T) {
	for _, code := range []int{0, closeNormal} {
		release := make(chan struct{})
		address := serve(t, func(context.Context, *websocket.Conn) { <-release })
		opened, err := dialer{}.Dial(t.Context(), address, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := opened.(*conn)
		c.closeWithin = time.Millisecond
		var ended sync.WaitGroup
		ended.Go(func() {
			if _, err := c.Read(t.Context()); err == nil {
				t.Error("Read returned a frame")
			}
		})
		if code == 0 { // with another code, Close sends a close frame, which would wait for the pending write
			started := make(chan struct{})
			ended.Go(func() {
				var err error
				for first := true; err == nil; first = false {
					if err = c.Write(t.Context(), make([]byte, 1<<20)); first {
						close(started)
					}
				}
			})
			<-started
		}
		begun := time.Now()
		_ = c.Close(code)
		ended.Wait()
		if took := time.Since(begun); took > 4*time.Second { // without the close of conn.raw, coder/websocket takes 5 s
			t.Errorf("Close(%d) took %s, want at most 4s", code, took)
		}
		close(release)
	}
}
