//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// asProgram is the name of an environment variable that makes the test binary run as the program.
const asProgram = "RUN_AS_PROGRAM"

func init() {
	if os.Getenv(asProgram) == "" {
		return
	}
	go func() {
		// For each line of input, print the figures as JSON. The input ends when the test's process ends, and then the program
		// exits.
		for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
			_ = json.NewEncoder(os.Stdout).Encode(measure(asked.Text() == "collect"))
		}
		os.Exit(2)
	}()
	app.Main("")
	os.Exit(0)
}

// figures is the resource usage of a process.
type figures struct {
	// CPU is the processor time since the start.
	CPU time.Duration
	// Peak is the peak resident memory in bytes.
	Peak uint64
	// Heap is the heap in use, in bytes.
	Heap uint64
	// Goroutines is the number of goroutines. Open is the number of open files.
	Goroutines, Open int
}

// measure returns the usage of this process. If collect is true, it first collects the garbage.
func measure(collect bool) figures {
	if collect {
		runtime.GC()
		debug.FreeOSMemory() // forces a second collection, which empties the sync.Pools
	}
	var u syscall.Rusage
	var m runtime.MemStats
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	runtime.ReadMemStats(&m)
	peak := uint64(u.Maxrss)
	if runtime.GOOS == "linux" {
		peak <<= 10
	}
	open, _ := os.ReadDir("/dev/fd")
	return figures{time.Duration(u.Utime.Nano() + u.Stime.Nano()), peak, m.HeapAlloc, runtime.NumGoroutine(), len(open)}
}

// program is the whole program in its own process, so its resource usage is separate from the test's. The App is in that process,
// so a test can call a method of service only if the method uses the network.
type program struct {
	*service
	process *os.Process
	dir     string

	mu        sync.Mutex
	questions io.Writer
	answers   *json.Decoder
	// ended is closed when the process has ended.
	ended chan struct{}
	// status is the error of exec.Cmd.Wait for the process. It is set before ended is closed.
	status error
}

// remoteListener is a listener of another process. Only the method Addr works.
type remoteListener struct {
	net.Listener
	addr net.Addr
}

func (e remoteListener) Addr() net.Addr { return e.addr }

// runProgram runs the test binary as the program, in an empty directory and with the given flags. The process is killed when the
// test ends.
func runProgram(t testing.TB, args ...string) *program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return runBinary(t, exe, args...)
}

// buildProgram builds the program as it is shipped, without the race detector. It returns the path of the binary. All tests of a
// process share the binary.
func buildProgram(t testing.TB) string {
	t.Helper()
	tool.CheckTier(t)
	exe, err := shippedProgram()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

var shippedProgram = sync.OnceValues(func() (string, error) {
	exe := filepath.Join(programDir, "oddsgraph")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return exe, nil
})

// runBinary is like runProgram, but runs the binary exe.
func runBinary(t testing.TB, exe string, args ...string) *program {
	t.Helper()
	return runBinaryIn(t, nil, exe, args...)
}

// runBinaryIn is like runBinary, but adds environment variables.
func runBinaryIn(t testing.TB, env []string, exe string, args ...string) *program {
	t.Helper()
	tool.CheckTier(t)
	p := &program{dir: t.TempDir(), ended: make(chan struct{})}
	cmd := exec.Command(exe, append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--log-format=json", "--trusted-proxies=127.0.0.1"}, args...)...)
	cmd.Dir = p.dir
	inherited := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "ODDSGRAPH_") })
	own := []string{asProgram + "=1", "TMPDIR=" + p.dir, "HOME=" + p.dir}
	cmd.Env = slices.Concat([]string{"GORACE=atexit_sleep_ms=0"}, inherited, own, env) // by default, the race detector delays each exit by a second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	addresses := make(chan [2]string, 1)
	cmd.Stderr = io.MultiWriter(log, &addressFinder{found: addresses})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.process, p.questions, p.answers = cmd.Process, stdin, json.NewDecoder(stdout)
	go func() {
		p.status = cmd.Wait()
		close(p.ended)
	}()
	var found [2]string
	select {
	case found = <-addresses:
	case <-p.ended:
		t.Fatalf("the program ended before it was ready, with the error %v:\n%s", p.status, log)
	}
	var servers [2]*app.Server
	for i, address := range found {
		addr, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = &app.Server{Listener: remoteListener{addr: addr}}
	}
	p.service = &service{
		App:    &app.App{Server: servers[0], Admin: servers[1]},
		client: newClient(),
		log:    log,
	}
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = p.process.Kill()
		<-p.ended
		if t.Failed() && testing.Verbose() {
			t.Logf("the program's log ends with:\n%s", log.String()[max(0, len(log.String())-4000):])
		}
	})
	return p
}

// venueURL returns the base URL of the program's demo venue.
func (p *program) venueURL(t testing.TB) string {
	t.Helper()
	for line := range strings.Lines(p.log.String()) {
		var entry struct{ Venue string }
		if json.Unmarshal([]byte(line), &entry) == nil && strings.HasPrefix(entry.Venue, "http") { // with several venues, other lines name one
			return entry.Venue
		}
	}
	t.Fatalf("the log names no demo venue:\n%s", p.log)
	return ""
}

// addressFinder reads the program's log, and finds the addresses of the public listener and of the admin listener.
type addressFinder struct {
	line  []byte
	found chan<- [2]string
}

func (f *addressFinder) Write(p []byte) (int, error) {
	if f.found == nil {
		return len(p), nil
	}
	f.line = append(f.line, p...)
	for line := range strings.Lines(string(f.line)) {
		var entry struct{ Msg, URL, Admin string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "oddsgraph is ready" {
			f.found <- [2]string{strings.TrimPrefix(entry.URL, "http://"), strings.TrimPrefix(entry.Admin, "http://")}
			f.found = nil
		}
	}
	return len(p), nil
}

// figures returns the program's resource usage. If collect is true, the program first collects its garbage.
func (p *program) figures(t testing.TB, collect bool) (f figures) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	line := "now\n"
	if collect {
		line = "collect\n"
	}
	if _, err := io.WriteString(p.questions, line); err != nil {
		t.Fatalf("asking the program for its figures: %v", err)
	}
	if err := p.answers.Decode(&f); err != nil {
		t.Fatalf("reading the program's figures: %v", err)
	}
	return f
}

// memoryFactor multiplies the memory limits in tests. With the race detector, the test binary needs more memory.
var memoryFactor = map[bool]uint64{false: 1, true: 10}[tool.Raced]

// witness is a demo venue that records the requests that it receives.
type witness struct {
	*httptest.Server
	venue *demo.Venue

	mu       sync.Mutex
	received []*http.Request
}

func newWitness(t testing.TB) *witness {
	w := &witness{venue: demo.New(demo.Config{Markets: 300})}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.received = append(w.received, r.Clone(r.Context()))
		w.mu.Unlock()
		w.venue.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		w.venue.Close()
		w.Close()
	})
	return w
}

// take returns the requests that w has received since take was last called.
func (w *witness) take() []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	received := w.received
	w.received = nil
	return received
}

// args returns the flags for a program that calls this venue without a rate limit.
func (w *witness) args() []string {
	return []string{
		"--venue-url=" + w.URL, "--stream-url=" + strings.Replace(w.URL, "http", "ws", 1) + demo.StreamPath,
		"--venue-public-per-minute=0", "--venue-key-per-minute=0", toldFlag,
	}
}

// allowedParameters lists the parameters that the service may send, for each path of the venue.
var allowedParameters = map[string][]string{
	"/api/exchange/prices":         {"tokenIds", "tokenId"},
	"/api/exchange/orderbook":      {"tokenId", "depth"},
	"/api/exchange/price-history":  {"tokenId", "startDate", "endDate"},
	"/api/exchange/spreads":        {"tokenIds", "tokenId"},
	"/api/exchange/market-search":  {"q", "status", "category", "tag", "sort", "order", "limit", "cursor", "eventId", "eventSlug", "tokenId", "endsAfter", "endsBefore", "minLiquidity", "minVolume"},
	"/api/exchange/market-details": {"marketId", "id", "ids", "slug", "tokenId", "tokenIds"},
	"/api/user/balance":            {"address", "credentials"},
	"/api/user/positions":          {"address", "credentials", "limit", "cursor", "offset"},
	"/api/user/orders":             {"address", "credentials", "limit", "cursor", "offset"},
	"/api/user/trades":             {"address", "credentials", "cursor", "limit", "marketId", "from", "to"},
	"/api/user/history":            {"address", "credentials", "cursor", "limit", "type", "from", "to"},
	demo.StreamPath:                {},
}

// unexpectedPart returns the part of a request that the service should not send. It returns "" if there is no such part.
func unexpectedPart(r *http.Request) string {
	names, ok := allowedParameters[r.URL.EscapedPath()]
	if !ok {
		return "the path " + r.URL.EscapedPath()
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Sprintf("%v in %s", err, r.URL.RawQuery)
	}
	for name, values := range q {
		if !slices.Contains(names, name) {
			return "the parameter " + name + " on " + r.URL.Path
		}
		if len(values) > 1 {
			return "the parameter " + name + " twice on " + r.URL.Path
		}
	}
	if r.Method != http.MethodGet || r.ContentLength > 0 {
		return "the method " + r.Method + " or a body"
	}
	return ""
}
