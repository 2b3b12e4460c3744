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

	"oddsgraph/internal/market/shared"
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
	cfg.Kinds = []string{"market", "price"}
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
			t.Fatalf("not true within 30 seconds: %s", what)
		}
	}
}

func waitConnected(t *testing.T, f *Fleet) {
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
	if got := ask(t, f, 10, 1); !got.Away || len(got.Calls) != 0 || got.Again <= 0 {
		t.Errorf("without Redis: the reply of Ask got %+v, want no calls and a time to ask again", got)
	}
	eventually(t, "the attempt to connect has failed", func() bool { return f.Stats().LastError != "" })
	if s := f.Stats(); s.Connected || s.LastError != "no connection to Redis" || s.Since.IsZero() {
		t.Errorf("without Redis: got %+v, want a replica that is not connected, and the reason", s)
	}
	server.Start(t)
	waitConnected(t, f)
	other := join(t, Config{URL: server.URL()})
	waitConnected(t, other)
	eventually(t, "both replicas are counted", func() bool { return f.Stats().Replicas == 2 })
}

// observed counts calls to Redis by command and result.
type observed struct {
	mu     sync.Mutex
	counts map[string]int
}

func (o *observed) note(command, result string, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[string]int{}
	}
	o.counts[command+" "+result]++
	if took < 0 || took == 0 && result != ResultRefused {
		o.counts["without a duration"]++
	}
}

func (o *observed) count(call string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts[call]
}

// TestCircuit checks that a replica stops waiting for a Redis that hangs, and uses Redis again when Redis responds.
func TestCircuit(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	var log logs
	var calls observed
	f := join(t, Config{URL: server.URL(), Timeout: 25 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)), Observe: calls.note})
	waitConnected(t, f)
	if s := f.Stats(); s.LastError != "" || s.Opened > 0 || s.Since.IsZero() || time.Since(s.Since) > time.Minute {
		t.Errorf("connected replica: got %+v, want no error, no opened circuit and a recent Since", s)
	}
	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the circuit opens", func() bool { ask(t, f, 10, 1); return !f.Stats().Connected })
	if s := f.Stats(); s.LastError != "Redis did not answer in time" || s.Opened != 1 || s.Replicas != 0 {
		t.Errorf("without Redis: got %+v, want a replica that is not connected, and the reason", s)
	}
	timeouts, refused, unanswered := calls.count("ask timeout"), calls.count("ask refused"), f.Stats().Unanswered
	for range 100 {
		ask(t, f, 10, 3)
	}
	if n := calls.count("ask timeout"); n != timeouts || timeouts < 1 {
		t.Errorf("got %d timeouts of Ask before the circuit opened and %d timeouts afterwards, want at least 1 and 0", timeouts, n-timeouts)
	}
	if n := calls.count("ask refused") - refused; n != 100 {
		t.Errorf("Config.Observe got %d refused calls of Ask, want 100", n)
	}
	if n := f.Stats().Unanswered - unanswered; n != 300 {
		t.Errorf("Stats counts %d unanswered calls, want 300", n)
	}
	if err := server.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitConnected(t, f)
	if n := calls.count("without a duration"); n > 0 {
		t.Errorf("Config.Observe got %d calls without a duration, want 0", n)
	}
	if s := f.Stats(); s.LastError != "" || s.Opened != 1 {
		t.Errorf("replica that is connected again: got %+v, want no error and Opened 1", s)
	}
	f.Close()
	for line, want := range map[string]int{"Redis does not answer": 1, "Redis answers": 2, "level=": 3} {
		if n := strings.Count(log.String(), line); n != want {
			t.Errorf("the log contains %q %d times, want %d times:\n%s", line, n, want, log.String())
		}
	}
}

// TestConcurrentCalls checks that each of many concurrent calls gets its response.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	var calls observed
	f := join(t, Config{URL: server.URL(), Timeout: time.Minute, Observe: calls.note})
	waitConnected(t, f)
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
		t.Errorf("got %d successful and %d failed calls, want %d and 0", n, calls.count("get failed"), 16*500)
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
	waitConnected(t, f)
	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.Ask("", 10, 1, func(shared.Grant) {})
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
	server.CLI(t, "ACL", "SETUSER", "odds", "on", ">right-password", "~og:*", "&og:*", "+@read", "+@write", "+@connection", "+@scripting", "+time")
	server.CLI(t, "ACL", "SETUSER", "default", "off")
	var log logs
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, test := range []struct {
		password  string
		connected bool
	}{{"right-password", true}, {"wrong-password", false}} {
		f := join(t, Config{URL: "unix://odds:" + test.password + "@" + server.Socket(), Log: logger})
		if test.connected {
			waitConnected(t, f)
			if got := ask(t, f, 10, 1); len(got.Calls) != 1 {
				t.Errorf("the reply of Ask got %+v, want a call", got)
			}
		} else {
			eventually(t, "a wrong password is logged", func() bool { return strings.Contains(log.String(), "cannot be reached") })
			if got := f.Stats().LastError; got != "Redis refused the user or the password" {
				t.Errorf("got last error %q, want %q", got, "Redis refused the user or the password")
			}
		}
	}
	if strings.Contains(log.String(), "right-") || strings.Contains(log.String(), "wrong-") {
		t.Errorf("the log contains a password:\n%s", log.String())
	}
}

func TestCheckURL(t *testing.T) {
	for _, url := range []string{
		"redis://localhost:6379", "rediss://user:secret@redis.example:6380/2", "unix:///run/redis.sock", "valkey://127.0.0.1",
		"redis://sentinel-1:26379?addr=sentinel-2:26379&master_set=odds",
	} {
		if err := CheckURL(url); err != nil {
			t.Errorf("CheckURL(%q) = %v, want nil", url, err)
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
