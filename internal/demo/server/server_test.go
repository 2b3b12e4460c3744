package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"oddsgraph/internal/demo/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLimiter checks the calls of two clients, with and without a queue, and that the number of clients is bounded.
func TestLimiter(t *testing.T) {
	l := server.Limiter{Span: time.Minute}
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	take := func(client string, queue bool, want string) {
		t.Helper()
		wait, left, reset := l.Take(client, 2, now, queue)
		if got := fmt.Sprint(wait, left, reset); got != want {
			t.Errorf("%s: got %s, want %s", client, got, want)
		}
	}
	take("a", false, "0s 1 1m0s")
	now = now.Add(10 * time.Second)
	take("a", false, "0s 0 50s")
	take("a", false, "50s 0 50s")
	take("a", false, "50s 0 50s") // a call that must wait does not count
	take("b", true, "0s 1 1m0s")
	take("b", true, "0s 0 1m0s")
	take("b", true, "1m0s 0 1m0s")
	take("b", true, "1m0s 0 1m0s")
	take("b", true, "2m0s 0 1m0s") // the calls before it wait for a minute
	now = now.Add(time.Hour)
	for i := range 10_000 {
		take(fmt.Sprint("c", i), false, "0s 1 1m0s")
	}
	take("late", false, "1m0s 0 1m0s")
	now = now.Add(time.Minute)
	take("late", false, "0s 1 1m0s")
}

// flood is a client that gets a million bytes at once for each message.
type flood struct{ *server.Socket }

func (f flood) Begin() {}
func (f flood) Beat()  {}
func (f flood) End()   {}
func (f flood) Receive([]byte, bool) {
	for range 100 {
		f.Push(server.Frame{Kind: "flood", Data: bytes.Repeat([]byte("x"), 10_000)})
	}
}

// TestSlowClient checks that a stream whose queue is full ends with the code for slow clients, and that Close ends the others.
func TestSlowClient(t *testing.T) {
	s := server.Sockets{Limits: server.StandardLimits, Counts: &server.Counts{}}
	s.Limits.Queue, s.Limits.Slow, s.Limits.Connections = 1000, 4002, 2
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Serve(w, r, func(c *server.Socket) server.Client { return flood{c} }) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer ts.Close()
	dial := func() *websocket.Conn {
		ws, _, err := websocket.Dial(t.Context(), ts.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		ws.SetReadLimit(-1)
		return ws
	}
	slow, quick := dial(), dial()
	if _, response, err := websocket.Dial(t.Context(), ts.URL, nil); err == nil || response.StatusCode != 503 {
		t.Errorf("a stream beyond the limit got the error %v, want the status 503", err)
	}
	defer func() { _ = slow.CloseNow() }()
	for range 100 {
		if err := slow.Write(t.Context(), websocket.MessageText, []byte("more")); err != nil {
			break // the stream has ended already
		}
	}
	for err := error(nil); err == nil; {
		if _, _, err = slow.Read(t.Context()); err != nil && websocket.CloseStatus(err) != 4002 {
			t.Errorf("the slow client's stream ended with %v, want the code 4002", err)
		}
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := quick.Read(t.Context())
		done <- err
	}()
	s.Close()
	if err := <-done; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("after Close: got %v, want the code 1001", err)
	}
	if n := s.Counts.Stats(&s); n.Stream.Opened != 2 || n.Stream.Connections != 0 || n.Stream.Closes["4002"] != 1 || n.Stream.Closes["1001"] != 1 {
		t.Errorf("got the counts %+v", n.Stream)
	}
}
