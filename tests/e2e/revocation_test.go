package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
)

// dialBearer opens a socket with a bearer token.
func (s *service) dialBearer(t testing.TB, token string) *socket {
	t.Helper()
	k := s.dialWithPayload(t, vars{"Authorization": "Bearer " + token})
	go k.listen()
	return k
}

// sseBearer starts an operation over server-sent events with a bearer token.
func (s *service) sseBearer(t testing.TB, token, query string, variables vars) *events {
	t.Helper()
	r := s.request(t, asJSON(vars{"query": query, "variables": variables}), anonymous)
	r.Header.Set("Authorization", "Bearer "+token)
	return s.stream(t, query, r)
}

// waitClosed waits until a socket is closed and returns the close code.
func (k *socket) waitClosed(t testing.TB) websocket.StatusCode {
	t.Helper()
	select {
	case <-k.done:
		return websocket.CloseStatus(k.err)
	case <-time.After(patience):
		t.Fatal("the socket stays open")
		return 0
	}
}

// slowVenue is a proxy in front of the demo venue. It can hold the requests to a path, and counts the REST calls.
type slowVenue struct {
	*httptest.Server
	demo   *demo.Venue
	faults *faults.Proxy // stands in front of demo
	mu     sync.Mutex
	held   map[string]chan struct{}
	// waiting receives the path of each held request.
	waiting chan string
	// calls counts the calls by endpoint and status, such as "prices 200". keys counts the requested keys by endpoint.
	calls, keys map[string]float64
}

func newSlowVenue(t testing.TB) *slowVenue { return newSlowVenueOf(t, demo.Config{Markets: 300}) }

func newSlowVenueOf(t testing.TB, cfg demo.Config) *slowVenue {
	v := demo.New(cfg)
	d := &slowVenue{
		demo: v, faults: faults.New(v), held: map[string]chan struct{}{}, waiting: make(chan string, 64),
		calls: map[string]float64{}, keys: map[string]float64{},
	}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() {
		d.demo.Close()
		d.Close()
	})
	return d
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// ServeHTTP implements http.Handler.
func (d *slowVenue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == demo.StreamPath {
		d.faults.ServeHTTP(w, r)
		return
	}
	d.mu.Lock()
	held := d.held[r.URL.Path]
	d.mu.Unlock()
	if held != nil {
		d.waiting <- r.URL.Path
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	recorder := &statusRecorder{w, http.StatusOK}
	d.faults.ServeHTTP(recorder, r)
	endpoint, keys := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], 1
	for _, name := range []string{"tokenIds", "ids"} {
		if list := r.URL.Query().Get(name); list != "" {
			keys = strings.Count(list, ",") + 1
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[endpoint+" "+strconv.Itoa(recorder.status)]++
	d.keys[endpoint] += float64(keys)
}

// total returns the number of calls to an endpoint, or of all calls if endpoint is empty.
func (d *slowVenue) total(endpoint string) (n float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for call, count := range d.calls {
		if endpoint == "" || strings.HasPrefix(call, endpoint+" ") {
			n += count
		}
	}
	return n
}

// hold keeps requests to a path waiting until release is called.
func (d *slowVenue) hold(path string) (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	released := make(chan struct{})
	d.held[path] = released
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		close(released)
		delete(d.held, path)
	})
}

// args returns the flags for a service that calls this venue without a rate limit.
func (d *slowVenue) args() []string {
	return []string{
		"--venue-url=" + d.URL, "--stream-url=" + strings.Replace(d.URL, "http", "ws", 1) + demo.StreamPath,
		"--venue-public-per-minute=0", "--venue-key-per-minute=0",
	}
}

// patientArgs is like args, but calls and requests do not time out while a test holds a call and does other work.
func (d *slowVenue) patientArgs() []string {
	return append(d.args(), "--venue-timeout=5m", "--request-timeout=10m")
}

// TestRevocation checks that the service closes the sockets and event streams of a token that is removed from the accounts file.
// Clients with another token for the same account must not be affected.
func TestRevocation(t *testing.T) {
	f := newAccountsFile(t)
	f.write(t, map[string]string{"lost": "demo-50", "kept": "demo-50", "other": "demo-3"})
	s, _ := startLiveRigged(t, func(w *app.Wiring) { w.Linger = time.Hour }, "--accounts-file="+f.path, "--trusted-proxies=127.0.0.1")
	s.waitForStream(t)
	token := s.openTokens(1)[0]
	topics := func() int64 { return s.venue.Stats().Stream.Subscriptions["user"] }
	before := topics()

	lost := s.dialBearer(t, "lost")
	idle := s.dialBearer(t, "lost")
	public := lost.subscribe(t, subPrices, vars{"ids": []string{token}})
	public.value(t)
	lost.subscribe(t, subPortfolio, vars{"a": addressOf50}).reason(t, "INITIAL")
	stream := s.sseBearer(t, "lost", subOrders, vars{"a": addressOf50})
	stream.reason(t, "INITIAL")
	kept := s.dialBearer(t, "kept")
	keptBalance := kept.subscribe(t, subBalance, vars{"a": addressOf50})
	keptBalance.reason(t, "INITIAL")
	other := s.dialBearer(t, "other")
	otherBalance := other.subscribe(t, subBalance, vars{"a": addressOf3})
	otherBalance.reason(t, "INITIAL")
	keptPortfolio := s.sseBearer(t, "kept", subPortfolio, vars{"a": addressOf50}) // joins the execution that the revoked client started
	keptPortfolio.reason(t, "INITIAL")
	groups := s.API.Stats().Groups.Groups
	eventually(t, "the venue has a subscription to each of the two accounts", func() bool { return topics() == before+2 })

	f.write(t, map[string]string{"kept": "demo-50", "other": "demo-3"})
	if err := s.Files.Accounts.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, k := range []*socket{lost, idle} {
		if code := k.waitClosed(t); code != 4403 {
			t.Errorf("the socket was closed with the code %d, want 4403", code)
		}
	}
	stream.wantEnd(t, "UNAUTHENTICATED")
	if got := s.bearer(t, "lost", viewerQuery); got.status != http.StatusUnauthorized {
		t.Errorf("the revoked token got %+v, want status 401", got)
	}
	// The revoked client's executions for prices and orders must end. The execution for the portfolio must continue, because
	// another client uses it.
	eventually(t, "the groups for prices and orders have ended", func() bool { return s.API.Stats().Groups.Groups == groups-2 })

	held := s.venue.Positions(addressOf50)[0].TokenID
	if err := s.venue.Trade(addressOf50, held, demo.Buy, 1_000_000); err != nil {
		t.Fatal(err)
	}
	keptBalance.reason(t, "CHANGE")
	keptPortfolio.until(t, "a change", func(v any) bool { return text(v, "reason") == "CHANGE" })
	otherBalance.wantNoEvent(t)
	if got := s.bearer(t, "kept", viewerQuery); got.status != http.StatusOK {
		t.Errorf("the other token of the account got %+v, want status 200", got)
	}

	// When the last token of the account is revoked, the service must stop reading the account.
	f.write(t, map[string]string{"other": "demo-3"})
	if err := s.Files.Accounts.Reload(); err != nil {
		t.Fatal(err)
	}
	if code := kept.waitClosed(t); code != 4403 {
		t.Errorf("the socket was closed with the code %d, want 4403", code)
	}
	for {
		ev := keptPortfolio.next(t)
		if ev.ended {
			break
		}
		if len(ev.errors) > 0 && ev.errors[0].Extensions.Code != "UNAUTHENTICATED" {
			t.Errorf("the event stream got %+v, want no error other than UNAUTHENTICATED", ev)
		}
	}
	// Linger keeps a topic without watches for an hour in this test, but a revocation closes the topic at once.
	eventually(t, "the venue has no subscription to the account", func() bool { return topics() == before+1 })
	otherBalance.wantNoEvent(t)
}

// TestRevocationOfQueries checks that a waiting query fails, over every transport, when its token is removed from the accounts
// file. A query with another token for the account must succeed.
func TestRevocationOfQueries(t *testing.T) {
	f := newAccountsFile(t)
	f.write(t, map[string]string{"lost": "demo-50", "kept": "demo-50"})
	venue := newSlowVenue(t)
	s := startLive(t, append(venue.patientArgs(), "--accounts-file="+f.path)...)
	s.waitForStream(t)
	release := venue.hold("/api/user/history")
	defer release()
	const query = `query($a: Address!) { user(address: $a) { history { nodes { kind } } } }`
	posted := make(chan response, 2)
	for _, token := range []string{"lost", "kept"} {
		go func() {
			r := s.request(t, asJSON(vars{"query": query, "variables": vars{"a": addressOf50}}), anonymous)
			r.Header.Set("Authorization", "Bearer "+token)
			got := s.do(t, r)
			got.header.Set("Token", token)
			posted <- got
		}()
	}
	socket := s.dialBearer(t, "lost")
	onSocket := socket.subscribe(t, query, vars{"a": addressOf50})
	stream := s.sseBearer(t, "lost", query, vars{"a": addressOf50})
	<-venue.waiting
	eventually(t, "the queries over the WebSocket and the event stream are waiting", func() bool { return s.API.Stats().Sockets.Operations == 1 && s.API.Stats().Streams == 1 })
	f.write(t, map[string]string{"kept": "demo-50"})
	if err := s.Files.Accounts.Reload(); err != nil {
		t.Fatal(err)
	}
	got := <-posted
	if got.header.Get("Token") != "lost" || !strings.Contains(got.body, `"UNAUTHENTICATED"`) || !strings.Contains(got.body, "revoked") {
		t.Errorf("the first response is %+v, want the error UNAUTHENTICATED for the token \"lost\"", got)
	}
	if code := socket.waitClosed(t); code != 4403 {
		t.Errorf("the socket was closed with the code %d, want 4403", code)
	}
	onSocket.wantNoEvent(t)
	for {
		ev := stream.next(t)
		if ev.ended {
			break
		}
		if len(ev.errors) == 0 || ev.errors[0].Extensions.Code != "UNAUTHENTICATED" {
			t.Errorf("the event stream got %+v, want the error UNAUTHENTICATED", ev)
		}
	}
	release()
	if got := <-posted; got.header.Get("Token") != "kept" || !strings.Contains(got.body, `"kind"`) || strings.Contains(got.body, "errors") {
		t.Errorf("the second response is %+v, want the history for the token \"kept\"", got)
	}
}

func TestTheAccountsFileIsReadAgain(t *testing.T) {
	t.Parallel()
	f := newAccountsFile(t)
	f.write(t, map[string]string{"old": "demo-50"})
	s := startLive(t, "--accounts-file="+f.path, "--trusted-proxies=127.0.0.1")
	works := func(token string) bool { return s.bearer(t, token, `{ viewer { address } }`).status == http.StatusOK }
	if !works("old") || works("new") {
		t.Fatal("want only the token of the first file to work")
	}
	oldSocket := s.dialBearer(t, "old")
	f.write(t, map[string]string{"old": "demo-50", "new": "demo-3"})
	eventually(t, "a new token works", func() bool { return works("new") })

	f.write(t, map[string]string{"new": "demo-3"})
	if code := oldSocket.waitClosed(t); code != 4403 {
		t.Errorf("the socket was closed with the code %d, want 4403", code)
	}
	if !works("new") || works("old") {
		t.Error("want only the token of the last file to work")
	}
}

func TestManifestsAreReadAgain(t *testing.T) {
	t.Parallel()
	manifest := filepath.Join(t.TempDir(), "manifest.json")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(manifest+".next", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(manifest+".next", manifest); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"one":"query One { __typename }"}`)
	s := start(t, "--documents-trusted=require", "--documents-manifest="+manifest)
	const found = `{"data":{"__typename":"Query"}}`
	if got := s.getQuery(t, "/one"); got.body != found {
		t.Fatalf("the response to the document in the manifest is %+v, want %s", got, found)
	}
	write(`{"two":"query Two { __typename }"}`)
	eventually(t, "a new document is known", func() bool { return s.getQuery(t, "/two").body == found })
	if got := s.getQuery(t, "/one"); !strings.Contains(got.body, "PERSISTED_QUERY_NOT_FOUND") {
		t.Errorf("the response to the document of the old manifest is %+v, want PERSISTED_QUERY_NOT_FOUND", got)
	}
	// The manifest must also apply to WebSockets and event streams.
	forbidden := s.sse(t, `subscription { streamStatusChanged { state } }`, nil, anonymous)
	forbidden.wantEnd(t, "FORBIDDEN")
	s.dial(t, anonymous).subscribe(t, `query One { __typename }`, nil).wantEnd(t, "FORBIDDEN")
	if got := s.dial(t, anonymous).subscribe(t, "query Two { __typename }", nil).next(t); asJSON(got.data) != `{"__typename":"Query"}` {
		t.Errorf("the event for the document of the new manifest is %+v over a WebSocket, want the data of the document", got)
	}
}
