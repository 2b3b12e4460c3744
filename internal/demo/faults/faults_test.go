package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"oddsgraph/internal/demo/faults"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const body = `{"rows":[{"id":"a","n":1},{"id":"b","n":2}],"more":null}`

// answer is the handler of a venue that answers each call with body.
func answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

func get(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

func set(t testing.TB, p *faults.Proxy, rules ...faults.Fault) {
	t.Helper()
	if err := p.Set(rules); err != nil {
		t.Fatal(err)
	}
}

// TestStale checks that a call gets the answer of an equal call with the same credentials until that answer is too old, and that
// errors are not repeated.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		p := faults.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n++; r.URL.Path == "/bad" {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = fmt.Fprint(w, n)
		}))
		set(t, p, faults.Fault{Kind: faults.Stale, DelayMs: 5000})
		ask := func(target, key, body, want string) {
			t.Helper()
			r, w := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)), httptest.NewRecorder()
			r.Header.Set("X-Api-Credentials", key)
			if p.ServeHTTP(w, r); w.Body.String()+" "+w.Header().Get("Age") != want {
				t.Errorf("%s with %q and %q: got %s, age %q, want %s", target, key, body, w.Body, w.Header().Get("Age"), want)
			}
		}
		ask("/a", "", "", "1 0")
		ask("/a?x", "", "", "2 0")
		ask("/a", "k", "", "3 0")
		ask("/a", "", "body", "4 0")
		time.Sleep(4001 * time.Millisecond)
		ask("/a", "", "", "1 5") // the proxy rounds Age up to whole seconds
		ask("/a", "", "body", "4 5")
		time.Sleep(999 * time.Millisecond)
		ask("/a", "", "", "7 0")
		ask("/bad", "", "", "8 ")
		ask("/bad", "", "", "9 ")
		set(t, p)
		ask("/a", "", "", "10 ")
	})
}

// TestAnswers checks what each kind of fault makes of an answer.
func TestAnswers(t *testing.T) {
	p := faults.New(http.HandlerFunc(answer))
	for _, c := range []struct {
		fault  faults.Fault
		status int
		body   string
	}{
		{faults.Fault{Kind: faults.Status}, 500, `{"success":false,"error":"a fault"}`},
		{faults.Fault{Kind: faults.Status, Status: 200, Body: "<p>"}, 200, "<p>"},
		{faults.Fault{Kind: faults.Delay, DelayMs: 1}, 200, body},
		{faults.Fault{Kind: faults.Truncate}, 200, body[:len(body)/2]},
		{faults.Fault{Kind: faults.Drip, DelayMs: 1}, 200, body},
		{faults.Fault{Kind: faults.JSON}, 200, `{"more":["unexpected"],"rows":[{"id":{"unexpected":["a"]},"n":{"unexpected":[1]}},{"id":{"unexpected":["b"]},"n":{"unexpected":[2]}}]}`},
		{faults.Fault{Kind: faults.JSON, Contains: []string{"b"}}, 200, `{"more":null,"rows":[{"id":"a","n":1},{"id":{"unexpected":["b"]},"n":{"unexpected":[2]}}]}`},
	} {
		set(t, p, c.fault)
		if w := get(p, "/rows?ids=a,b"); w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%+v: got %d %s, want %d %s", c.fault, w.Code, w.Body, c.status, c.body)
		}
	}
	set(t, p)
	if w := get(p, "/"); w.Body.String() != body {
		t.Errorf("without faults: got %s", w.Body)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	for kind, sent := range map[faults.Kind]int{faults.Reset: len(body) / 2, faults.Refuse: 0} {
		set(t, p, faults.Fault{Kind: kind})
		response, err := server.Client().Get(server.URL)
		got := []byte(nil)
		if err == nil {
			got, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		if err == nil || len(got) != sent {
			t.Errorf("%s: got %d bytes and the error %v, want %d bytes and an error", kind, len(got), err, sent)
		}
	}
}

// TestDelays checks when answers arrive, on the clock of a bubble.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := faults.New(http.HandlerFunc(answer))
		for _, c := range []struct {
			fault faults.Fault
			want  time.Duration
		}{
			{faults.Fault{Kind: faults.Delay, DelayMs: 250}, 250 * time.Millisecond},
			{faults.Fault{Kind: faults.Drip, DelayMs: 20}, time.Duration(len(body)) * 20 * time.Millisecond},
			{faults.Fault{Kind: faults.Delay}, time.Hour},
		} {
			set(t, p, c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			began := time.Now()
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			if cancel(); time.Since(began) != c.want {
				t.Errorf("%+v: the answer took %v, want %v", c.fault, time.Since(began), c.want)
			}
		}
	})
}

// TestRules checks which calls a rule matches, when it ends, and which rules are refused.
func TestRules(t *testing.T) {
	p := faults.New(http.HandlerFunc(answer))
	set(t, p, faults.Fault{Path: "/prices", Contains: []string{"a"}, Kind: faults.Status, Status: 503, Count: 2}, faults.Fault{Kind: faults.Status, Count: 1})
	for i, c := range []struct {
		target string
		want   int
	}{{"/prices?ids=b,a", 503}, {"/books?ids=a", 500}, {"/books?ids=a", 200}, {"/prices?ids=x", 200}, {"/prices?ids=a", 503}, {"/prices?ids=a", 200}} {
		if got := get(p, c.target).Code; got != c.want {
			t.Errorf("request %d: got status %d, want %d", i, got, c.want)
		}
	}
	if left := p.Faults(); len(left) > 0 {
		t.Errorf("the rules %+v are left, want none", left)
	}
	draw := func(seed uint64) (codes []int) {
		set(t, p, faults.Fault{Kind: faults.Status, Probability: 0.5, Seed: seed})
		for range 100 {
			codes = append(codes, get(p, "/").Code)
		}
		return codes
	}
	if a := draw(1); !slices.Equal(a, draw(1)) || slices.Equal(a, draw(2)) || !slices.Contains(a, 200) || !slices.Contains(a, 500) {
		t.Error("equal seeds spoil different answers, different seeds the same, or all answers are equal")
	}
	for name, f := range map[string]faults.Fault{
		"on": {On: "disks", Kind: faults.Status}, "no kind": {}, "kind": {Kind: "odd"}, "kind of frames": {Kind: faults.Drop}, "kind of calls": {On: faults.OnFrames, Kind: faults.Status},
		"kind of openings": {On: faults.OnOpens, Kind: faults.Drip}, "count": {Kind: faults.JSON, Count: -1}, "status": {Kind: faults.Status, Status: 99},
		"delay": {Kind: faults.Delay, DelayMs: 1 << 30}, "header": {Kind: faults.Status, RetryAfter: "1\r\nX: y"}, "probability": {Kind: faults.JSON, Probability: 1.1},
		"negative": {Kind: faults.JSON, Probability: -0.1}, "code": {On: faults.OnFrames, Kind: faults.Close, Code: 1006}, "behind": {On: faults.OnFrames, Kind: faults.Reorder, Behind: 101},
	} {
		if p.Set([]faults.Fault{{Kind: faults.JSON}, f}) == nil {
			t.Errorf("%s: %+v was accepted", name, f)
		}
	}
	if p.Set(make([]faults.Fault, 101)) == nil {
		t.Error("too many faults were accepted")
	}
}

// venue streams each message that it gets back to the client, in a frame of its own. It is one of 60,000 bytes after "long".
func venue(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	for {
		_, message, err := ws.Read(context.Background())
		if err != nil {
			return
		}
		if string(message) == "long" {
			message = []byte(strings.Repeat("x", 60_000))
		}
		if ws.Write(context.Background(), websocket.MessageText, message) != nil {
			return
		}
	}
}

// client is a client of a stream.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	t.Cleanup(func() { _ = ws.CloseNow() })
	return &client{t, ws}
}

// ask sends messages and then "end", and returns the frames before the end.
func (c *client) ask(messages ...string) (frames []string) {
	c.t.Helper()
	for _, m := range append(messages, "end") {
		if err := c.ws.Write(c.t.Context(), websocket.MessageText, []byte(m)); err != nil {
			c.t.Fatal(err)
		}
	}
	for {
		_, frame, err := c.ws.Read(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if string(frame) == "end" {
			return frames
		}
		frames = append(frames, string(frame))
	}
}

// TestFrames checks what each kind of fault makes of the frames of a stream, before a venue in the process and before a real one.
func TestFrames(t *testing.T) {
	real := httptest.NewServer(http.HandlerFunc(venue))
	t.Cleanup(real.Close)
	to, err := url.Parse(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, handler := range map[string]http.Handler{
		"embedded": http.HandlerFunc(venue), "real": &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := faults.New(handler)
			server := httptest.NewServer(p)
			t.Cleanup(server.Close)
			only := func(f faults.Fault) faults.Fault {
				f.On, f.Contains, f.Count = faults.OnFrames, []string{"a", "2"}, 1
				return f
			}
			for _, c := range []struct {
				fault faults.Fault
				want  string
			}{
				{faults.Fault{Kind: faults.Drop}, "a1 a3 a2"},
				{faults.Fault{Kind: faults.Duplicate}, "a1 a2 a2 a3 a2"},
				{faults.Fault{Kind: faults.Reorder}, "a1 a3 a2 a2"},
				{faults.Fault{Kind: faults.Truncate}, "a1 a a3 a2"},
				{faults.Fault{Kind: faults.JSON}, "a1 a2 a3 a2"},
				{faults.Fault{Kind: faults.Freeze}, "a1 a3"},
				{faults.Fault{Frames: func(frame []byte) [][]byte { return [][]byte{[]byte("new"), frame} }}, "a1 new a2 a3 a2"},
			} {
				set(t, p, only(c.fault))
				ws := dial(t, server.URL+"/ws")
				if got := strings.Join(ws.ask("a1", "a2", "a3", "a2"), " "); got != c.want {
					t.Errorf("%s: got the frames %s, want %s", c.fault.Kind, got, c.want)
				}
				if got := ws.ask("long", "b"); len(got) != 2 || len(got[0]) != 60_000 || got[1] != "b" {
					t.Errorf("%s: later frames are spoiled, too", c.fault.Kind)
				}
			}
			set(t, p, faults.Fault{On: faults.OnFrames, Kind: faults.Freeze, Contains: []string{"a"}})
			frozen := dial(t, server.URL)
			if got := frozen.ask("a1", "b"); strings.Join(got, " ") != "b" {
				t.Errorf("a frozen stream sends %v", got)
			}
			if p.Reset(); strings.Join(frozen.ask("a1"), " ") != "a1" {
				t.Error("a stream is frozen after Reset")
			}
			set(t, p, only(faults.Fault{Kind: faults.Delay, DelayMs: 1}))
			ws := dial(t, server.URL)
			if early := ws.ask("a2"); len(early) == 0 {
				if _, late, err := ws.ws.Read(t.Context()); err != nil || string(late) != "a2" {
					t.Errorf("got the frame %s and the error %v, want the delayed frame", late, err)
				}
			}
			for _, code := range []int{0, 1000, 1011, 3000, 4003} {
				set(t, p, only(faults.Fault{Kind: faults.Close, Code: code}))
				ws := dial(t, server.URL)
				if err := ws.ws.Write(t.Context(), websocket.MessageText, []byte("a2")); err != nil {
					t.Fatal(err)
				}
				if code == 0 {
					code = 1012
				}
				if _, _, err := ws.ws.Read(t.Context()); int(websocket.CloseStatus(err)) != code {
					t.Errorf("the stream ended with %v, want the code %d", err, code)
				}
			}
			for _, code := range []int{4003, 0} {
				ws := dial(t, server.URL)
				ws.ask("b")
				p.CloseStreams(code)
				_, _, err := ws.ws.Read(t.Context())
				if got := int(websocket.CloseStatus(err)); err == nil || got != code && code != 0 {
					t.Errorf("the stream ended with %v, want the code %d", err, code)
				}
			}
		})
	}
}

// stuck is a connection to a client that does not read: a write waits until its deadline, which passes at once. It is the
// [http.ResponseWriter] of the stream, too.
type stuck struct {
	net.Conn
	http.ResponseWriter
	writing, passed chan struct{}
	noDeadline      bool
}

func (c *stuck) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return c, bufio.NewReadWriter(bufio.NewReader(nil), bufio.NewWriter(nil)), nil
}

func (c *stuck) Write([]byte) (int, error) {
	close(c.writing)
	<-c.passed
	return 0, os.ErrDeadlineExceeded
}

func (c *stuck) SetWriteDeadline(t time.Time) error {
	if c.noDeadline = t.IsZero(); !c.noDeadline {
		close(c.passed)
	}
	return nil
}

func (*stuck) Close() error { return nil }

// TestResetOfStuckStream checks that Reset does not wait for a client that does not read, and leaves no deadline behind.
func TestResetOfStuckStream(t *testing.T) {
	ended := make(chan struct{})
	p := faults.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.Write([]byte{0x81, 1, 'x'})
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the write ended with %v", err)
		}
	}))
	c := &stuck{writing: make(chan struct{}), passed: make(chan struct{})}
	r := httptest.NewRequest(http.MethodGet, "/ws", nil)
	r.Header.Set("Upgrade", "websocket")
	go p.ServeHTTP(c, r)
	<-c.writing
	reset := make(chan struct{})
	go func() {
		defer close(reset)
		p.Reset()
	}()
	select {
	case <-reset:
		<-ended
	case <-time.After(time.Minute):
		t.Fatal("Reset waits for a client that does not read")
	}
	if !c.noDeadline {
		t.Error("the stream still has the deadline of Reset")
	}
}

// TestOpenings checks that faults make the opening of streams fail, and nothing else.
func TestOpenings(t *testing.T) {
	p := faults.New(http.HandlerFunc(venue))
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		fault  faults.Fault
		status int
	}{
		{faults.Fault{Kind: faults.Status, Status: 503, RetryAfter: "7"}, 503}, {faults.Fault{Kind: faults.Status, Status: 200, Body: "<p>"}, 200},
		{faults.Fault{Kind: faults.Reset}, 0}, {faults.Fault{Kind: faults.Refuse}, 0},
	} {
		c.fault.On, c.fault.Count = faults.OnOpens, 1
		set(t, p, c.fault)
		_, response, err := websocket.Dial(t.Context(), server.URL, nil)
		if status := 0; err == nil || response != nil && response.StatusCode != c.status && c.status > 0 || response == nil && c.status != status {
			t.Errorf("%+v: got the response %v and the error %v, want the status %d", c.fault, response, err, c.status)
		} else if response != nil && response.Header.Get("Retry-After") != c.fault.RetryAfter {
			t.Errorf("%+v: got the header %v", c.fault, response.Header)
		}
		dial(t, server.URL).ask("b")
	}
	set(t, p, faults.Fault{On: faults.OnOpens, Kind: faults.Delay, DelayMs: 1}, faults.Fault{Kind: faults.Status})
	dial(t, server.URL).ask("b")
}

// TestJSON checks that a rule survives its JSON form, which the control endpoints use.
func TestJSON(t *testing.T) {
	const text = `{"on":"frames","kind":"reorder","path":"/ws","contains":["a","b"],"count":3,"probability":0.5,"seed":7,"behind":2}`
	var f faults.Fault
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(f); err != nil || string(b) != text {
		t.Errorf("got %s and the error %v, want %s", b, err, fmt.Sprint(text))
	}
}
