package fleet

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/tests/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logs is a log buffer that is safe for concurrent use.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// join returns a replica that is closed when the test ends.
func join(t *testing.T, cfg Config) *Fleet {
	t.Helper()
	if cfg.Venue == "" {
		cfg.Venue = "https://venue.example"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second // a long timeout, because the machine that runs the test may be busy
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

func connected(t *testing.T, f *Fleet) {
	t.Helper()
	eventually(t, "the replica is connected", func() bool { return f.Stats().Connected })
}

// TestOpenWithoutRedis checks that Open succeeds before Redis runs. The replica must grant no calls until Redis runs, and then
// connect.
func TestOpenWithoutRedis(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	server.Kill()
	f := join(t, Config{URL: server.URL()})
	if got := ask(t, f, 10, 1); len(got.calls) != 0 || got.again <= 0 {
		t.Errorf("without Redis an Ask was answered %+v; want no calls and a time to ask again", got)
	}
	eventually(t, "the attempt has failed", func() bool { return f.Stats().LastError != "" })
	if s := f.Stats(); s.Connected || s.LastError != "no connection to Redis" || s.Since.IsZero() {
		t.Errorf("the state without Redis is %+v", s)
	}
	server.Start(t)
	connected(t, f)
	other := join(t, Config{URL: server.URL()})
	connected(t, other)
	eventually(t, "both replicas are counted", func() bool { return f.Stats().Replicas == 2 })
}

// observed counts calls to Redis by command and result.
type observed struct {
	mu sync.Mutex
	n  map[string]int
}

func (o *observed) note(command, result string, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = map[string]int{}
	}
	o.n[command+" "+result]++
	if took < 0 || took == 0 && result != ResultRefused {
		o.n["without a duration"]++
	}
}

func (o *observed) count(call string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n[call]
}

// TestCircuit checks that a replica stops waiting for a Redis that hangs, and uses Redis again when Redis responds.
func TestCircuit(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	var log logs
	var calls observed
	f := join(t, Config{URL: server.URL(), Timeout: 25 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)), Observe: calls.note})
	connected(t, f)
	if s := f.Stats(); s.LastError != "" || s.Opened > 0 || s.Since.IsZero() || time.Since(s.Since) > time.Minute {
		t.Errorf("the state of a connected replica is %+v", s)
	}
	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the circuit opens", func() bool { ask(t, f, 10, 1); return !f.Stats().Connected })
	if s := f.Stats(); s.LastError != "Redis did not answer in time" || s.Opened != 1 || s.Replicas != 0 {
		t.Errorf("the state without Redis is %+v", s)
	}
	timeouts, refused, unanswered := calls.count("ask timeout"), calls.count("ask refused"), f.Stats().Unanswered
	for range 100 {
		ask(t, f, 10, 3)
	}
	if n := calls.count("ask timeout"); n != timeouts || timeouts < 1 {
		t.Errorf("%d asks timed out while the circuit opened, and %d of 100 when it was open; want some and none", timeouts, n-timeouts)
	}
	if n := calls.count("ask refused") - refused; n != 100 {
		t.Errorf("%d of 100 asks are observed as refused", n)
	}
	if n := f.Stats().Unanswered - unanswered; n != 300 {
		t.Errorf("%d unanswered calls are counted; want 300", n)
	}
	if err := server.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	connected(t, f)
	if n := calls.count("without a duration"); n > 0 {
		t.Errorf("%d calls have no duration", n)
	}
	if s := f.Stats(); s.LastError != "" || s.Opened != 1 {
		t.Errorf("the state of a replica that is connected again is %+v", s)
	}
	f.Close()
	for line, want := range map[string]int{"Redis does not answer": 1, "Redis answers": 2, "level=": 3} {
		if n := strings.Count(log.String(), line); n != want {
			t.Errorf("the log has %d lines with %q; want %d:\n%s", n, line, want, log.String())
		}
	}
}

// TestAnswersArrive checks that each of many concurrent calls gets its response.
func TestAnswersArrive(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	var calls observed
	f := join(t, Config{URL: server.URL(), Observe: calls.note})
	connected(t, f)
	var g sync.WaitGroup
	// There are so many goroutines that some wait for a processor.
	for range 16 {
		g.Go(func() {
			for range 500 {
				f.Get(t.Context(), "price", []string{"k"}, nil)
			}
		})
	}
	g.Wait()
	if n := calls.count("get ok"); n != 16*500 {
		t.Errorf("%d of %d calls were answered, %d failed", n, 16*500, calls.count("get failed"))
	}
}

// TestCloseWhileRedisHangs checks that Close returns while Redis does not respond.
func TestCloseWhileRedisHangs(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	f, err := Open(Config{URL: server.URL(), Venue: "https://venue.example"})
	if err != nil {
		t.Fatal(err)
	}
	connected(t, f)
	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.Ask("", 10, 1, func([]string, int, time.Duration, time.Duration) {})
	f.Close()
	f.Close() // a second Close must also return
	if err := server.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// TestAccount checks that a replica can connect as a user with a password, and that neither a correct nor a wrong password is
// logged.
func TestAccount(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	server.CLI(t, "ACL", "SETUSER", "odds", "on", ">right-password", "~og:*", "&og:*", "+@read", "+@write", "+@connection", "+@scripting", "+time", "+info")
	server.CLI(t, "ACL", "SETUSER", "default", "off")
	var log logs
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, test := range []struct {
		password  string
		connected bool
	}{{"right-password", true}, {"wrong-password", false}} {
		f := join(t, Config{URL: "unix://odds:" + test.password + "@" + server.Socket(), Log: logger})
		if test.connected {
			connected(t, f)
			if got := ask(t, f, 10, 0); got.again <= 0 {
				t.Errorf("an ask was answered %+v; want the time when the new ledger opens", got)
			}
		} else {
			eventually(t, "a wrong password is logged", func() bool { return strings.Contains(log.String(), "cannot be reached") })
			if got := f.Stats().LastError; got != "Redis refused the user or the password" {
				t.Errorf("the last error is %q", got)
			}
		}
	}
	if strings.Contains(log.String(), "right-") || strings.Contains(log.String(), "wrong-") {
		t.Errorf("the log has the password:\n%s", log.String())
	}
}

func TestCheckURL(t *testing.T) {
	for _, url := range []string{
		"redis://localhost:6379", "rediss://user:secret@redis.example:6380/2", "unix:///run/redis.sock", "valkey://127.0.0.1",
		"redis://sentinel-1:26379?addr=sentinel-2:26379&master_set=odds",
	} {
		if err := CheckURL(url); err != nil {
			t.Errorf("CheckURL(%q) = %v", url, err)
		}
	}
	for _, url := range []string{"", "localhost:6379", "http://user:secret@localhost", "redis://user:secret@localhost/x", "redis://user:secret@local host"} {
		err := CheckURL(url)
		if err == nil {
			t.Errorf("CheckURL(%q) = nil; want an error", url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("CheckURL(%q): the error contains the password: %v", url, err)
		}
	}
}
