//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/httpapi"
)

func (p *program) terminate(t testing.TB) {
	t.Helper()
	if err := p.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// wantExit waits until the program has exited and checks its exit code.
func (p *program) wantExit(t testing.TB, code int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatal("the program does not end")
	}
	got := 0
	if exit, ok := p.status.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if p.status != nil {
		got = -1
	}
	if got != code {
		t.Errorf("exit code %d, want %d: %s", got, code, p.log.String()[max(0, len(p.log.String())-1000):])
	}
}

// waitRefusing waits until the service refuses new connections.
func (s *service) waitRefusing(t testing.TB) {
	t.Helper()
	eventually(t, "connections are refused", func() bool {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

// wholeAnswer sends a request and returns a channel for the complete response. If an error ends the response early, the body in the
// channel is the part that arrived, followed by the error. If awaited is not empty, wholeAnswer waits until the body contains this
// text or the response has ended.
func (p *program) wholeAnswer(t testing.TB, body, accept, awaited string) <-chan response {
	t.Helper()
	r := p.request(t, body, keyOf50)
	r.Header.Set("Accept", accept)
	out := make(chan response, 1)
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	if awaited == "" {
		begin()
	}
	go func() {
		defer begin()
		resp, err := p.client.Do(r)
		if err != nil {
			out <- response{body: err.Error()}
			return
		}
		defer resp.Body.Close()
		var b []byte
		for buf := make([]byte, 4096); err == nil; {
			var n int
			n, err = resp.Body.Read(buf)
			if b = append(b, buf[:n]...); bytes.Contains(b, []byte(awaited)) {
				begin()
			}
		}
		if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			b = append(b, err.Error()...)
		}
		out <- response{resp.StatusCode, resp.Header, string(b)}
	}()
	<-began
	return out
}

// TestTerminationLosesNothing checks that, over every transport, open queries get complete responses when the program is stopped.
// Subscriptions must end in a way that makes their clients reconnect.
func TestTerminationLosesNothing(t *testing.T) {
	venue := newSlowVenue(t)
	p := runProgram(t, append(venue.patientArgs(), "--shutdown-timeout=5m")...)
	const query = `query($a: Address!) { user(address: $a) { history(first: 1) { nodes { kind } } } }`
	const subscription = `subscription { streamStatusChanged { state } }`
	slow := asJSON(vars{"query": query, "variables": vars{"a": addressOf50}})
	release := venue.hold("/api/user/history")
	defer release()

	idle := p.dial(t, anonymous)
	subscriber := p.dial(t, anonymous)
	events := subscriber.subscribe(t, subscription, nil)
	events.value(t)
	asker := p.dial(t, keyOf50)
	asked := asker.subscribe(t, query, vars{"a": addressOf50})
	beside := asker.subscribe(t, subscription, nil)
	beside.value(t)
	posted := p.wholeAnswer(t, slow, "application/json", "")
	streamed := p.wholeAnswer(t, slow, "text/event-stream", ":")
	subscribed := p.wholeAnswer(t, asJSON(vars{"query": subscription}), "text/event-stream", "event: next")
	<-venue.waiting // the venue gets one call, because equal queries share their calls

	p.terminate(t)
	p.waitRefusing(t)
	for name, k := range map[string]*socket{"an idle socket": idle, "a socket with a subscription": subscriber} {
		if code := k.waitClosed(t); code != websocket.StatusServiceRestart {
			t.Errorf("%s is closed with code %d, want %d", name, code, websocket.StatusServiceRestart)
		}
	}
	events.wantNoEvent(t) // a message of the type complete would tell the client not to reconnect
	if got := <-subscribed; got.status != http.StatusOK || !strings.Contains(got.body, "event: next") || strings.Contains(got.body, "complete") || strings.Contains(got.body, "EOF") {
		t.Errorf("a subscription over SSE got %+v, want an event and the end of the body, but no event complete", got)
	}
	select {
	case got := <-posted:
		t.Fatalf("the query was answered before the venue had responded: %+v", got)
	case <-p.ended:
		t.Fatal("the program has ended before it has answered")
	default:
	}
	asked.wantNoEvent(t)

	release()
	if got := <-posted; got.status != http.StatusOK || !strings.Contains(got.body, `"kind"`) || strings.Contains(got.body, "errors") {
		t.Errorf("a query by POST got %+v, want the history", got)
	}
	if got := <-streamed; got.status != http.StatusOK || !strings.Contains(got.body, `"kind"`) || !strings.HasSuffix(got.body, "event: complete\ndata:\n\n") {
		t.Errorf("a query over SSE got %+v, want the history and an event complete", got)
	}
	if ev := asked.next(t); text(ev.data, "user.history.nodes.0.kind") == "" {
		t.Errorf("a query on a socket got %+v, want the history", ev)
	}
	if ev := asked.next(t); !ev.ended || ev.refused {
		t.Errorf("a query on a socket ended with %+v, want the message complete", ev)
	}
	if code := asker.waitClosed(t); code != websocket.StatusServiceRestart {
		t.Errorf("the socket of the query is closed with code %d, want %d", code, websocket.StatusServiceRestart)
	}
	beside.wantNoEvent(t)
	p.wantExit(t, 0)
}

// TestDraining stops a service with a drain delay. During the delay, the public and the admin address must report that the service
// is not ready. The service must still respond to requests. The admin address must close last.
func TestDraining(t *testing.T) {
	venue := newSlowVenue(t)
	s, stop := startStoppable(t, append(venue.patientArgs(), "--drain-delay=7s", "--shutdown-timeout=5m")...)
	paused, goOn := make(chan time.Duration), make(chan struct{})
	s.Pause = func(d time.Duration) { paused <- d; <-goOn }
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	if d := <-paused; d != 7*time.Second {
		t.Errorf("the service accepts new connections for another %s, want 7s", d)
	}
	wantDraining := func(got response) {
		t.Helper()
		if got.status != http.StatusServiceUnavailable || got.body != "draining\n" || got.header.Get("Retry-After") == "" {
			t.Errorf("/readyz got %+v, want status 503, the body draining and Retry-After", got)
		}
	}
	wantDraining(s.get(t, httpapi.PathReady))
	wantDraining(s.askAdmin(t, http.MethodGet, httpapi.PathReady))
	if got := s.get(t, httpapi.PathHealth); got.status != http.StatusOK {
		t.Errorf("/healthz got %+v, want status 200", got)
	}
	s.ask(t, `{ searchMarkets(first: 1) { totalCount } }`, nil, anonymous)

	release := venue.hold("/api/user/history")
	defer release()
	answered := make(chan any, 1)
	go func() {
		data, _ := s.query(t, `query($a: Address!) { user(address: $a) { history(first: 1) { nodes { kind } } } }`, vars{"a": addressOf50}, keyOf50)
		answered <- data
	}()
	<-venue.waiting
	close(goOn)
	s.waitRefusing(t)
	wantDraining(s.askAdmin(t, http.MethodGet, httpapi.PathReady))
	release()
	if kind := text(<-answered, "user.history.nodes.0.kind"); kind == "" {
		t.Error("the query in flight got no answer")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", s.Admin.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("the admin address still accepts connections")
	}
}

// TestTerminationTimesOut checks that the program exits with code 1 if the venue does not respond within the shutdown timeout. The
// program must first close the connections of clients.
func TestTerminationTimesOut(t *testing.T) {
	t.Parallel()
	venue := newSlowVenue(t)
	p := runProgram(t, append(venue.args(), "--shutdown-timeout=200ms")...)
	release := venue.hold("/api/user/history")
	defer release()
	const query = `query($a: Address!) { user(address: $a) { history(first: 1) { nodes { kind } } } }`
	slow := asJSON(vars{"query": query, "variables": vars{"a": addressOf50}})
	posted := p.wholeAnswer(t, slow, "application/json", "")
	streamed := p.wholeAnswer(t, slow, "text/event-stream", ":")
	socket := p.dial(t, keyOf50)
	socket.subscribe(t, query, vars{"a": addressOf50})
	p.dialUnread(t, anonymous) // this client does not answer the close frame
	<-venue.waiting
	p.terminate(t)
	<-posted
	<-streamed
	if code := socket.waitClosed(t); code != websocket.StatusServiceRestart {
		t.Errorf("the socket is closed with code %d, want %d", code, websocket.StatusServiceRestart)
	}
	p.wantExit(t, 1)
	if log := p.log.String(); !strings.Contains(log, "waiting for requests under way") {
		t.Errorf("the log does not say that requests were under way: %s", log)
	}
}

// TestHangup checks that SIGHUP changes the log level without a restart. If the configuration file is invalid, the program must log
// the error, keep its log level, and continue to run.
func TestHangup(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=info\nODDSGRAPH_DEMO_MARKETS=20")
	p := runProgram(t, "--config="+file)
	hangup := func(wants ...string) {
		t.Helper()
		before := len(p.log.String())
		if err := p.process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			eventually(t, "the log contains "+want, func() bool { return strings.Contains(p.log.String()[before:], want) })
		}
	}
	write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=debug\nODDSGRAPH_DEMO_MARKETS=20")
	hangup(`"log_level":"DEBUG"`)
	write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=loud\nODDSGRAPH_DEMO_MARKETS=20")
	hangup("oddsgraph.env:1: ODDSGRAPH_LOG_LEVEL", `"log_level":"DEBUG"`)
	p.ask(t, `{ __typename }`, nil, anonymous)
	p.terminate(t)
	p.wantExit(t, 0)
}

// TestCanaryOnDisk checks that the program writes no files. It must also write no secrets into its log and metrics, except the
// secrets in request ids and names of operations.
func TestCanaryOnDisk(t *testing.T) {
	t.Parallel()
	p := runProgram(t, "--demo-markets=20", "--log-level=debug")
	var secrets []string
	for _, place := range canaryPlaces() {
		secret := newCanary()
		place.send(t, p.service, secret)
		if place.name != "a request id" && !place.named {
			secrets = append(secrets, secret)
		}
		own := credentials("demo-3", "note", secret)
		p.do(t, p.request(t, asJSON(vars{"query": strings.ReplaceAll(everything, addressOfAny, addressOf3)}), own))
	}
	for _, secret := range secrets {
		p.search(t, secret)
	}
	if log := p.log.String(); !strings.Contains(log, `"level":"DEBUG"`) {
		t.Error("the log has no lines of the level DEBUG")
	}
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if path != p.dir {
			t.Errorf("the program has written %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
