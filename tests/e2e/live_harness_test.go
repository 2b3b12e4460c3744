package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/httpapi"
	"oddsgraph/internal/market"
)

// patience is the time limit for every wait of a test. It is far longer than a working service needs.
const patience = 90 * time.Second

// startLive is like start, but with the stream and the system's clock. The market moves only when the test moves it.
func startLive(t testing.TB, args ...string) *service {
	t.Helper()
	s, _ := startStoppable(t, args...)
	return s
}

// startStoppable is like startLive, but also returns a function that stops the service and waits until it has ended.
func startStoppable(t testing.TB, args ...string) (s *service, stop func() error) {
	t.Helper()
	return startLiveRigged(t, keepWiring, args...)
}

// startLiveRigged is like startStoppable, but calls rig to change the program's wiring.
func startLiveRigged(t testing.TB, rig func(*app.Wiring), args ...string) (s *service, stop func() error) {
	t.Helper()
	args = append([]string{
		"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0", "--demo-control", "--demo-still", "--demo-markets=300", "--log-level=debug",
	}, args...)
	s = openAt(t, market.SystemClock{}, func(w *app.Wiring) {
		w.Stream.Backoff = market.Backoff{Min: time.Second, Max: 2 * time.Second} // shortens tests that break the stream often
		rig(w)
	}, args...)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	stop = sync.OnceValue(func() error {
		s.client.CloseIdleConnections()
		cancel()
		return <-served
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the service ended with the error: %v", err)
		}
	})
	return s, stop
}

// event is one result of a subscription, or its end.
type event struct {
	data   any
	errors []graphError
	// ended is true if the event is the end of the subscription. refused is true if a message of the type "error" ended the
	// subscription.
	ended, refused bool
}

// events holds those events of a subscription that the test has not taken yet.
type events struct {
	name string
	came chan event
	stop func()
}

func newEvents(name string) *events { return &events{name: name, came: make(chan event, 4096)} }

// wait waits for an event, at most for the duration patience. It reports whether an event came.
func (e *events) wait() (ev event, ok bool) {
	select {
	case ev = <-e.came:
		return ev, true
	case <-time.After(patience):
		return ev, false
	}
}

// next waits for an event and fails the test if none comes.
func (e *events) next(t testing.TB) event {
	t.Helper()
	ev, ok := e.wait()
	if !ok {
		t.Fatalf("%s: no event came", e.name)
	}
	return ev
}

// value waits for an event without errors and returns the value of its only field.
func (e *events) value(t testing.TB) any {
	t.Helper()
	return e.valueOf(t, e.next(t))
}

// try is like value, but returns false if no event comes. The test can then report details.
func (e *events) try(t testing.TB) (v any, ok bool) {
	t.Helper()
	ev, ok := e.wait()
	if !ok {
		return nil, false
	}
	return e.valueOf(t, ev), true
}

func (e *events) valueOf(t testing.TB, ev event) any {
	t.Helper()
	if ev.ended || len(ev.errors) > 0 {
		t.Fatalf("%s: got %+v, want a value", e.name, ev)
	}
	for _, v := range ev.data.(map[string]any) {
		return v
	}
	t.Fatalf("%s: got an event without a field", e.name)
	return nil
}

// reason waits for an event and checks its reason.
func (e *events) reason(t testing.TB, want string) any {
	t.Helper()
	v := e.value(t)
	if got := text(v, "reason"); got != want {
		t.Fatalf("%s: the reason is %s, want %s, in %s", e.name, got, want, asJSON(v))
	}
	return v
}

// change waits for the next event with the reason CHANGE, and drops all events before this event.
func (e *events) change(t testing.TB) any {
	t.Helper()
	return e.until(t, "a change", func(v any) bool { return text(v, "reason") == "CHANGE" })
}

// until waits for the first event that the filter accepts, and drops all events before this event.
func (e *events) until(t testing.TB, what string, filter func(v any) bool) any {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		v := e.value(t)
		if filter(v) {
			return v
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s did not come", e.name, what)
		}
	}
}

// wantEnd waits for the end of the subscription and compares the codes of all errors. Before the end, no event may have data.
func (e *events) wantEnd(t testing.TB, codes ...string) {
	t.Helper()
	got := []string{}
	for {
		ev := e.next(t)
		for _, err := range ev.errors {
			got = append(got, err.Extensions.Code)
			if err.Message == "" {
				t.Errorf("%s: got an error without a message", e.name)
			}
		}
		if ev.data != nil {
			t.Errorf("%s: got the event %s before the end", e.name, asJSON(ev.data))
		}
		if ev.ended {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(codes) {
		t.Errorf("%s: got the error codes %v, want %v", e.name, got, codes)
	}
}

// wantNoEvent fails the test if an event has arrived.
func (e *events) wantNoEvent(t testing.TB) {
	t.Helper()
	select {
	case ev := <-e.came:
		t.Fatalf("%s: got %+v, want nothing", e.name, ev)
	default:
	}
}

// frame is a message of graphql-transport-ws.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// socket is a client of graphql-transport-ws.
type socket struct {
	conn *websocket.Conn

	mu   sync.Mutex
	subs map[string]*events
	// err is the read error that ended listen. It is set before done is closed.
	err  error
	done chan struct{}
}

// dialUnread opens a socket and reads only the acknowledgement from it.
func (s *service) dialUnread(t testing.TB, credentials string) *socket {
	t.Helper()
	payload := vars{}
	if credentials != anonymous {
		payload[httpapi.CredentialsHeader] = credentials
	}
	return s.dialWithPayload(t, payload)
}

// dialWithPayload is like dialUnread, but sends the given payload in connection_init.
func (s *service) dialWithPayload(t testing.TB, payload vars) *socket {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(s.URL(), "http", "ws", 1)+httpapi.PathGraphQL, &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: s.client,
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	k := &socket{conn: conn, subs: make(map[string]*events), done: make(chan struct{})}
	k.send(t, frame{Type: "connection_init", Payload: json.RawMessage(asJSON(payload))})
	if f, err := k.read(ctx); err != nil || f.Type != "connection_ack" {
		t.Fatalf("connection_init got the message %+v and the error %v, want connection_ack", f, err)
	}
	t.Cleanup(k.close)
	return k
}

// dial opens a socket with the given credentials and starts to read from it.
func (s *service) dial(t testing.TB, credentials string) *socket {
	t.Helper()
	k := s.dialUnread(t, credentials)
	go k.listen()
	return k
}

func (k *socket) read(ctx context.Context) (f frame, err error) {
	_, b, err := k.conn.Read(ctx)
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	return f, err
}

// listen answers pings and passes all other messages to their subscriptions, until the socket is closed.
func (k *socket) listen() {
	defer close(k.done)
	for {
		f, err := k.read(context.Background())
		if err != nil {
			k.err = err
			return
		}
		if f.Type == "ping" {
			_ = k.write(frame{Type: "pong"})
			continue
		}
		k.mu.Lock()
		sub := k.subs[f.ID]
		k.mu.Unlock()
		if sub != nil {
			sub.came <- eventOf(f.Type, f.Payload)
		}
	}
}

// eventOf decodes a message of a subscription.
func eventOf(kind string, payload []byte) event {
	ev := event{ended: kind != "next", refused: kind == "error"}
	d := json.NewDecoder(strings.NewReader(string(payload)))
	d.UseNumber()
	var err error
	switch kind {
	case "next":
		var p struct {
			Data   any          `json:"data"`
			Errors []graphError `json:"errors"`
		}
		err = d.Decode(&p)
		ev.data, ev.errors = p.Data, p.Errors
	case "error":
		err = d.Decode(&ev.errors)
	}
	if err != nil {
		ev.errors = append(ev.errors, graphError{Message: "unreadable: " + err.Error()})
	}
	return ev
}

func (k *socket) write(f frame) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return k.conn.Write(ctx, websocket.MessageText, []byte(asJSON(f)))
}

func (k *socket) send(t testing.TB, f frame) {
	t.Helper()
	if err := k.write(f); err != nil {
		t.Fatal(err)
	}
}

func (k *socket) subscribe(t testing.TB, query string, variables vars) *events {
	t.Helper()
	k.mu.Lock()
	id := fmt.Sprint(len(k.subs) + 1)
	e := newEvents(strings.TrimSpace(query))
	k.subs[id] = e
	k.mu.Unlock()
	e.stop = func() { k.send(t, frame{ID: id, Type: "complete"}) }
	k.send(t, frame{ID: id, Type: "subscribe", Payload: json.RawMessage(asJSON(vars{"query": query, "variables": variables}))})
	return e
}

func (k *socket) close() { _ = k.conn.CloseNow() }

// sse starts a subscription over server-sent events.
func (s *service) sse(t testing.TB, query string, variables vars, credentials string) *events {
	t.Helper()
	return s.stream(t, query, s.request(t, asJSON(vars{"query": query, "variables": variables}), credentials))
}

// stream sends a request and receives the response as server-sent events.
func (s *service) stream(t testing.TB, name string, r *http.Request) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r = r.WithContext(ctx)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := s.client.Do(r)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	e, done := newEvents(strings.TrimSpace(name)), make(chan struct{})
	go func() {
		defer close(done)
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		kind := ""
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch {
			case name == "event" && value == "complete":
				e.came <- event{ended: true}
			case name == "event":
				kind = value
			case name == "data":
				e.came <- eventOf(kind, []byte(value))
			}
		}
	}()
	e.stop = func() { cancel(); <-done }
	t.Cleanup(e.stop)
	return e
}

// eventually waits until a condition holds. It fails the test if this takes longer than the duration patience.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !until(patience, condition) {
		t.Fatalf("still not true after %v: %s", patience, what)
	}
}

// until waits until a condition holds, for at most the duration d. It reports whether the condition holds.
func until(d time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(d); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// waitForStream waits until the stream is open.
func (s *service) waitForStream(t testing.TB) {
	t.Helper()
	eventually(t, "the stream is live", func() bool { return s.Venue.Live.Status().State == "LIVE" })
}

// goroutines returns the number of goroutines once it has stopped changing.
func goroutines(t testing.TB) int {
	t.Helper()
	last, same := 0, 0
	eventually(t, "the number of goroutines settles", func() bool {
		n := runtime.NumGoroutine()
		if n != last {
			last, same = n, 0
		}
		same++
		return same == 10
	})
	return last
}
