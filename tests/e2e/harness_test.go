package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/app"
	"oddsgraph/httpapi"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
	"oddsgraph/tests/tool"
)

// programDir is the directory in which buildProgram builds the shipped program. TestMain removes the directory.
var programDir string

// TestMain runs the tests in the module's root, where they find the documentation and the examples.
func TestMain(m *testing.M) {
	root, err := tool.ModuleRoot()
	if err == nil {
		err = os.Chdir(root)
	}
	if err == nil {
		programDir, err = os.MkdirTemp("", "oddsgraph-e2e-")
	}
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(programDir)
		os.Exit(code)
	}))
}

// These are the addresses of the demo accounts with 3, 50 and 2,000 positions, and the address of a wallet without a demo account.
const (
	addressOf3    = "0x1111111111111111111111111111111111111111"
	addressOf50   = "0x2222222222222222222222222222222222222222"
	addressOf2000 = "0x3333333333333333333333333333333333333333"
	addressOfAny  = "0xabcdef0123456789abcdef0123456789abcdef01"
)

var (
	keyOf3    = credentials("demo-3")
	keyOf50   = credentials("demo-50")
	keyOf2000 = credentials("demo-2000")
	keyOfAny  = credentials("demo")
)

// anonymous means a request without credentials.
const anonymous = ""

// credentials returns the credentials header of a demo account. The parameter more alternates between the name and the value of an
// additional member of the JSON object. The secret and the passphrase come from the README, because with --demo-strict the demo
// venue accepts only these.
func credentials(key string, more ...string) string {
	text := fmt.Sprintf(`{"apiKey":%q,"secret":"demo","passphrase":"demo"`, key)
	for i := 0; i+1 < len(more); i += 2 {
		text += fmt.Sprintf(`,%q:%q`, more[i], more[i+1])
	}
	return base64.StdEncoding.EncodeToString([]byte(text + "}"))
}

// logBuffer collects a service's log. It is safe for concurrent use.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// service is the whole program in the test's process. It listens on a port and has an HTTP client.
type service struct {
	*app.App
	// venue is the demo venue that the service calls. It is nil if the service calls a venue that the test started.
	venue  *demo.Venue
	faults *faults.Proxy // stands in front of the venue
	clock  *tool.Clock
	client *http.Client
	log    *logBuffer
}

// startTime is the time at which the clocks of most tests start.
var startTime = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// start runs the program with these flags until the test ends. The program listens on free ports. The clock and the market move
// only when the test moves them.
func start(t testing.TB, args ...string) *service {
	t.Helper()
	return startAt(t, startTime, args...)
}

// startAt is like start, but the clock starts at the given time.
func startAt(t testing.TB, now time.Time, args ...string) *service {
	t.Helper()
	return startRigged(t, now, nil, args...)
}

// startRigged is like startAt. If rig is not nil, startRigged also calls rig, which may change the program's wiring.
func startRigged(t testing.TB, now time.Time, rig func(*app.Wiring), args ...string) *service {
	t.Helper()
	s := openRigged(t, now, rig, args...)
	s.serveUntilEnd(t)
	return s
}

// openRigged wires a service with a clock that only the test advances, and binds its ports. It does not serve yet.
func openRigged(t testing.TB, now time.Time, rig func(*app.Wiring), args ...string) *service {
	t.Helper()
	args = append([]string{
		"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0", "--demo-control", "--demo-still", "--demo-stream=false", "--log-level=debug",
		"--trusted-proxies=127.0.0.1",
	}, args...)
	if rig == nil {
		rig = keepWiring
	}
	clock := tool.NewClock(now)
	s := openAt(t, clock, rig, args...)
	s.clock = clock
	return s
}

// openAt wires a service from its flags and a clock, and binds its ports. It does not serve yet.
func openAt(t testing.TB, clock market.Clock, rig func(*app.Wiring), args ...string) *service {
	t.Helper()
	cfg, err := config.Parse(args, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{client: newClient(), log: &logBuffer{}}
	if s.App, err = app.Open(cfg, telemetry.NewLogger(s.log, cfg.Log.Level, cfg.Log.Format), clock, withUnusedLimit, withTable, rig); err != nil {
		t.Fatal(err)
	}
	if s.Demo != nil {
		s.venue, s.faults = s.Demo.Venue, s.Demo.Faults
	}
	return s
}

// newClient returns a client that requests no compression, because compression is slow under the race detector.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
}

func (s *service) serveUntilEnd(t testing.TB) {
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			t.Errorf("the service ended with the error: %v", err)
		}
	})
}

// keepWiring is a function for the parameter rig that changes nothing.
func keepWiring(*app.Wiring) {}

// withoutRetries makes each call to the venue once.
func withoutRetries(w *app.Wiring) { w.Client.Retries = -1 }

// withoutStale is like withoutRetries, and the cache serves no stale values.
func withoutStale(w *app.Wiring) {
	withoutRetries(w)
	for _, kind := range []*cache.TTL{&w.Reads.Price, &w.Reads.Book, &w.Reads.Spread, &w.Reads.Market, &w.Reads.Search, &w.Reads.History} {
		kind.Stale = 0
	}
}

// withUnusedLimit makes the service assume that no calls were made before its start, so the service may use the venue's whole rate
// limit.
func withUnusedLimit(w *app.Wiring) { w.Fresh = true }

// demoTable says how a venue is asked that serves what the demo venue serves.
var demoTable = []string{
	"market-id:marketId", "market-ids:ids", "market-tokens:tokenIds", "spreads:tokenIds", "search-options:yes", "search-paging:cursor",
	"account-options:yes", "max-url:2048",
}

// toldFlag is demoTable as a flag.
var toldFlag = "--venue-table=" + strings.Join(demoTable, ",")

// withTable tells the service demoTable. Otherwise the service would probe the venues of tests, which count calls.
func withTable(w *app.Wiring) {
	if len(w.Client.Table) == 0 && w.Client.Driver == "generic" {
		w.Client.Table = demoTable
	}
}

// awaitProbe waits until a service that is told nothing has probed its venue.
func (s *service) awaitProbe(t testing.TB) {
	t.Helper()
	eventually(t, "the venue has been probed", func() bool { return strings.Contains(s.log.String(), "the venue has been probed") })
}

// graphError is an element of "errors" in a response.
type graphError struct {
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code         string `json:"code"`
		RetryAfterMs int64  `json:"retryAfterMs"`
	} `json:"extensions"`
}

// String returns "path CODE", which is what most tests compare.
func (e graphError) String() string {
	parts := make([]string, len(e.Path))
	for i, p := range e.Path {
		parts[i] = fmt.Sprint(p)
	}
	return strings.Join(parts, ".") + " " + e.Extensions.Code
}

// response is an HTTP response with its whole body.
type response struct {
	status int
	header http.Header
	body   string
}

// do sends a request and reads the response.
func (s *service) do(t testing.TB, r *http.Request) response {
	t.Helper()
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(body)}
}

// request returns a POST with this body.
func (s *service) request(t testing.TB, body string, credentials string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+httpapi.PathGraphQL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	// Each request comes from a different address, because the service blocks addresses that often send bad credentials.
	n := requests.Add(1)
	r.Header.Set("X-Forwarded-For", netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String())
	if credentials != anonymous {
		r.Header.Set(httpapi.CredentialsHeader, credentials)
	}
	return r
}

// requests counts the requests that tests have built.
var requests atomic.Uint32

// vars are the variables of a query.
type vars map[string]any

// query executes a query. Numbers in the data are json.Number.
func (s *service) query(t testing.TB, query string, variables vars, credentials string) (data any, errors []graphError) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	resp := s.do(t, s.request(t, string(body), credentials))
	var out struct {
		Data   any          `json:"data"`
		Errors []graphError `json:"errors"`
	}
	decode(t, resp.body, &out)
	return out.Data, out.Errors
}

// ask is like query, but fails the test if the response has errors.
func (s *service) ask(t testing.TB, query string, variables vars, credentials string) any {
	t.Helper()
	data, errors := s.query(t, query, variables, credentials)
	for _, e := range errors {
		t.Errorf("the response has the error %s: %s", e, e.Message)
	}
	if len(errors) > 0 {
		t.FailNow()
	}
	return data
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// at returns the value at a path of member names and list indexes, joined by dots. It returns nil if the path does not exist.
func at(v any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// list returns the list at a path, or nil if there is none.
func list(v any, path string) []any {
	l, _ := at(v, path).([]any)
	return l
}

// text returns the string at a path, or "" if there is none.
func text(v any, path string) string {
	s, _ := at(v, path).(string)
	return s
}

// pluck returns one value of each element of the list at path, formatted with fmt.Sprint. The parameter valuePath is the path of
// the value in an element.
func pluck(v any, path, valuePath string) []string {
	elements := list(v, path)
	out := make([]string, len(elements))
	for i, e := range elements {
		out[i] = fmt.Sprint(at(e, valuePath))
	}
	return out
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// wantJSON compares a value with JSON. The order of members does not matter.
func wantJSON(t testing.TB, what string, got any, want string) {
	t.Helper()
	var w any
	decode(t, want, &w)
	if g, w := asJSON(got), asJSON(w); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// wantErrors compares the paths and codes of errors, in order.
func wantErrors(t testing.TB, got []graphError, want ...string) {
	t.Helper()
	texts := make([]string, len(got))
	for i, e := range got {
		texts[i] = e.String()
		if e.Message == "" {
			t.Errorf("%s has no message", e)
		}
	}
	if !slices.Equal(texts, want) {
		t.Errorf("errors:\n got %q\nwant %q", texts, want)
	}
}

// calls counts the requests that the venue received, by the last segment of their path. Each value is the number of requests and
// the number of keys in these requests.
type calls map[string][2]int64

// String lists the calls, sorted by name.
func (c calls) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d/%d", name, c[name][0], c[name][1]))
	}
	return strings.Join(parts, ", ")
}

// callsDuring returns the calls that the venue received while f ran, as the venue counted them.
func (s *service) callsDuring(f func()) calls {
	before := s.venue.Stats()
	f()
	after := s.venue.Stats()
	out := calls{}
	for path, n := range after.Requests {
		if n -= before.Requests[path]; n > 0 {
			out[path[strings.LastIndexByte(path, '/')+1:]] = [2]int64{n, after.Keys[path] - before.Keys[path]}
		}
	}
	return out
}

// wantCalls fails the test if the calls differ from the expected calls.
func wantCalls(t testing.TB, got, want calls) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("calls (requests/keys): got %v, want %v", got, want)
	}
}

// expireCaches advances the clock until every cached value is too old to be served.
func (s *service) expireCaches() { s.clock.Advance(3 * time.Hour) }

// setFaults replaces the faults of the proxy in front of the demo venue.
func (s *service) setFaults(t testing.TB, rules ...faults.Fault) {
	t.Helper()
	if err := s.faults.Set(rules); err != nil {
		t.Fatal(err)
	}
}

// openTokens returns the ids of the YES tokens of the first n open markets, or of all open markets if there are fewer.
func (s *service) openTokens(n int) []string {
	var ids []string
	for _, t := range s.venue.Tokens() {
		if t.Status == "OPEN" && t.Outcome == "YES" && len(ids) < n {
			ids = append(ids, t.TokenID)
		}
	}
	return ids
}

// openMarkets returns the ids of the first n open markets, or of all open markets if there are fewer.
func (s *service) openMarkets(n int) []string {
	var ids []string
	for _, t := range s.venue.Tokens() {
		if t.Status == "OPEN" && len(ids) < n && !slices.Contains(ids, t.MarketID) {
			ids = append(ids, t.MarketID)
		}
	}
	return ids
}
