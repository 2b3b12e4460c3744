//go:build unix

// Package fleet tests several replicas as real processes, with a real redis-server and the demo venue.
package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// asProgram is an environment variable that makes the test binary run as the program.
const asProgram = "RUN_AS_REPLICA"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		flag.Parse()
		if err := flag.Set("test.parallel", "16"); err != nil { // the tests wait most of the time
			panic(err)
		}
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the test process ends
		os.Exit(2)
	}()
	app.Main("")
}

// request is one call to the venue.
type request struct {
	at     time.Time
	path   string
	query  string
	status int
}

// venue is the demo venue. It records each request with the status of the response.
type venue struct {
	*httptest.Server
	demo   *demo.Venue
	faults *faults.Proxy // stands in front of demo

	mu       sync.Mutex
	requests []request
	// held is a suffix of a path. The next response for a path with this suffix waits until release is closed. arrived is closed
	// when this response is ready.
	held             string
	arrived, release chan struct{}
	// While away is true, the venue closes each connection without a response.
	away atomic.Bool
}

// hold delays the venue's next response for a path with the given suffix until release is called. The returned channel is closed
// when this response is ready.
func (v *venue) hold(path string) (arrived <-chan struct{}, release func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held, v.arrived, v.release = path, make(chan struct{}), make(chan struct{})
	end := v.release
	return v.arrived, sync.OnceFunc(func() { close(end) })
}

// serve answers a request and returns the status.
func (v *venue) serve(w http.ResponseWriter, r *http.Request) int {
	v.mu.Lock()
	arrived, release := v.arrived, v.release
	held := v.held != "" && strings.HasSuffix(r.URL.Path, v.held)
	if held {
		v.held = ""
	}
	v.mu.Unlock()
	answer := &recorder{w, http.StatusOK}
	if !held {
		v.faults.ServeHTTP(answer, r)
		return answer.status
	}
	made := httptest.NewRecorder()
	v.faults.ServeHTTP(made, r)
	close(arrived)
	<-release
	maps.Copy(w.Header(), made.Header())
	w.WriteHeader(made.Code)
	_, _ = w.Write(made.Body.Bytes())
	return made.Code
}

// recorder records the status of a response.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the venue's stream take over the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func openVenue(t *testing.T, cfg demo.Config) *venue {
	t.Helper()
	tool.CheckTier(t)
	d := demo.New(cfg)
	v := &venue{demo: d, faults: faults.New(d)}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v.away.Load() {
			panic(http.ErrAbortHandler) // closes the connection
		}
		at := time.Now()
		status := v.serve(w, r)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.requests = append(v.requests, request{at, r.URL.Path, r.URL.RawQuery, status})
	}))
	t.Cleanup(func() {
		v.demo.Close()
		v.Close()
	})
	return v
}

// log returns the calls so far.
func (v *venue) log() []request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.requests)
}

// peakCalls returns the greatest number of calls in any minute, and how many of all calls were refused.
func (v *venue) peakCalls() (most, refused int) {
	calls := v.log()
	slices.SortFunc(calls, func(a, b request) int { return a.at.Compare(b.at) })
	for i, first := 0, 0; i < len(calls); i++ {
		for calls[i].at.Sub(calls[first].at) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
		if calls[i].status == http.StatusTooManyRequests {
			refused++
		}
	}
	return most, refused
}

// replica is the program in a separate process.
type replica struct {
	cmd        *exec.Cmd
	url, admin string
	log        *logs
	ended      chan struct{}
}

// logs is the log of a replica or of HAProxy.
type logs struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan [2]string // the client URL and the admin URL of the replica
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for line := range bytes.Lines(p) {
		var entry struct{ Msg, URL, Admin string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "oddsgraph is ready" {
			l.ready <- [2]string{entry.URL, entry.Admin}
		}
	}
	return len(p), nil
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts a replica that uses a venue. The replica is killed when the test ends.
func start(t *testing.T, v *venue, args ...string) *replica {
	t.Helper()
	return startIn(t, nil, v, args...)
}

// told says how the venue is asked. Otherwise each replica would probe the venue, whose calls the tests count.
const told = "--venue-table=market-id:marketId,market-ids:ids,market-tokens:tokenIds,spreads:tokenIds,search-options:yes,search-paging:cursor,account-options:yes,max-url:2048"

// startIn is like start, but adds environment variables.
func startIn(t *testing.T, env []string, v *venue, args ...string) *replica {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{log: &logs{ready: make(chan [2]string, 1)}, ended: make(chan struct{})}
	r.cmd = exec.Command(exe, append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--log-format=json", "--venue-url=" + v.URL, told}, args...)...)
	r.cmd.Dir = t.TempDir()
	r.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "ODDSGRAPH_") }),
		asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	r.cmd.Env = append(r.cmd.Env, env...)
	r.cmd.Stderr = r.log
	if _, err = r.cmd.StdinPipe(); err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			text := r.log.String()
			t.Logf("the log of a replica ends with\n%s", text[max(len(text)-2000, 0):])
		}
	})
	select {
	case at := <-r.log.ready:
		r.url, r.admin = at[0], at[1]
	case <-r.ended:
		t.Fatalf("the replica ended:\n%s", r.log)
	case <-time.After(time.Minute):
		t.Fatalf("the replica is not ready after a minute:\n%s", r.log)
	}
	return r
}

// kill ends a replica at once.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
}

// signal sends a signal to the process of a replica or of a server.
func signal(t *testing.T, p *os.Process, s os.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Errorf("the signal %v could not be sent: %v", s, err)
	}
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: time.Minute}

// post returns a request with a query. The arguments in header are names and values of headers, in turn.
func post(ctx context.Context, url, query string, header ...string) *http.Request {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// ask executes a query and returns the body of the response.
func (r *replica) ask(query string, header ...string) (string, error) {
	resp, err := client.Do(post(context.Background(), r.url, query, header...))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// get returns a page of the replica's admin address.
func (r *replica) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := client.Get(r.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sharedFlags returns the flags of a replica that uses the given Redis server. The flag --shared-timeout has its greatest
// allowed value, because the machine may be busy.
func sharedFlags(server *tool.Redis, args ...string) []string {
	return append([]string{"--shared-url=" + server.URL(), "--shared-timeout=1s"}, args...)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not true after a minute: %s", what)
		}
	}
}

// waitConnected waits until a replica uses Redis.
func (r *replica) waitConnected(t *testing.T) *replica {
	t.Helper()
	eventually(t, "the replica is connected to Redis", func() bool { return strings.Contains(r.log.String(), "Redis answers") })
	return r
}

// crowd sends three queries a second to each replica until end is called. All queries differ.
type crowd struct {
	// query has a verb for the number of the query. It needs a call of the venue.
	query   string
	stop    chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	serial  int
}

func newCrowd() *crowd {
	return &crowd{query: `{ searchMarkets(query: "different %d", first: 1) { nodes { id } } }`, stop: make(chan struct{})}
}

// join starts to send searches to a replica.
func (c *crowd) join(r *replica) {
	c.running.Go(func() {
		tick := time.NewTicker(time.Second / 3)
		defer tick.Stop()
		for {
			select {
			case <-c.stop:
				return
			case <-r.ended:
				return
			case <-tick.C:
			}
			c.mu.Lock()
			c.serial++
			q := fmt.Sprintf(c.query, c.serial)
			c.mu.Unlock()
			c.running.Go(func() {
				answer, err := r.ask(q)
				if err == nil && strings.Contains(answer, "GRAPHQL_") {
					panic("the query is wrong: " + answer)
				}
			})
		}
	})
}

func (c *crowd) end() {
	close(c.stop)
	c.running.Wait()
}
