package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/content"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// streamCompiler returns a compiler for a few fields. Its queries panic outside of all fields. Its subscriptions send an event for
// each number in the channel from. If from is nil, they panic. The function show returns the JSON value of an event.
func streamCompiler(t testing.TB, from <-chan int, show func(n int) string) *exec.Compiler {
	field := map[string]exec.FieldOf{"serviceStatus": {Number: 1}, "tokenPrices": {Number: 2}, "version": {Number: 1}, "price": {Number: 1}, "state": {Number: 1}}
	types := map[string]exec.Type{
		"Query": {Fields: field}, "ServiceStatus": {Fields: field}, "TokenPrice": {Fields: field}, "StreamStatus": {Fields: field},
		"Subscription": {Fields: map[string]exec.FieldOf{"streamStatusChanged": {Number: 1}}},
	}
	return exec.NewCompiler(testConfig(t).Compiler.Schema(), types, func(*exec.Execution, *exec.Selection) bool { panic("canary") },
		func(x *exec.Execution, f *exec.Field) exec.Events {
			if from == nil {
				panic("canary")
			}
			return exec.EventsOf(from, func(x *exec.Execution, f *exec.Field, n int) bool {
				x.Buf = append(x.Buf, show(n)...)
				return true
			})
		})
}

// jumpy panics in the n-th call of Check.
type jumpy struct {
	noRefusals
	n atomic.Int64
}

func (j *jumpy) Check(netip.Addr, auth.Key) error {
	if j.n.Add(-1) == 0 {
		panic("canary")
	}
	return nil
}

func jumpyAt(n int64) func(cfg *Config) {
	return func(cfg *Config) {
		j := &jumpy{}
		j.n.Store(n)
		cfg.Refusals = j
	}
}

// journal collects log lines. It is safe for concurrent use.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// converse sends messages on a WebSocket and collects the received messages. It returns their text as soon as the text contains the
// given mark. If the WebSocket is closed earlier, the text ends with the error.
func converse(t *testing.T, url, mark string, messages ...string) string {
	t.Helper()
	return converseAs(t, url, encodedCredentials, mark, messages...)
}

// converseAs is like converse, but sends the given credentials.
func converseAs(t *testing.T, url, credentials, mark string, messages ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for _, m := range append([]string{`{"type":"connection_init","payload":{"` + CredentialsHeader + `":"` + credentials + `"}}`}, messages...) {
		_ = conn.Write(ctx, websocket.MessageText, []byte(m))
	}
	var received strings.Builder
	for !strings.Contains(received.String(), mark) {
		_, b, err := conn.Read(ctx)
		if err != nil {
			fmt.Fprint(&received, err)
			break
		}
		received.Write(b)
		received.WriteByte('\n')
	}
	return received.String()
}

// answerFrom posts a request to a server and returns the body of the response. The headers are alternating names and values.
func answerFrom(t *testing.T, url, body string, header ...string) io.ReadCloser {
	t.Helper()
	r := requestFor(t.Context(), http.MethodPost, url, body, append(header, "Content-Type", content.JSON)...)
	r.RequestURI = "" // a client must not set it
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return http.NoBody
	}
	return response.Body
}

// TestPanics checks that the client of an operation that panics gets an error without details, and that the next operation
// succeeds. The log must have one line for each panic, with the stack.
func TestPanics(t *testing.T) {
	const query, status = `{"query":"{ serviceStatus { version } }"}`, `{"query":"subscription { streamStatusChanged { state } }"}`
	until := func(end string) func(body string) func(t *testing.T, url string) string {
		return func(body string) func(t *testing.T, url string) string {
			return func(t *testing.T, url string) string {
				return converse(t, url, `"type":"`+end+`"`, `{"id":"1","type":"subscribe","payload":`+body+`}`)
			}
		}
	}
	say, follow := until("error"), until("complete")
	ask := func(body, accept string) func(t *testing.T, url string) string {
		return func(t *testing.T, url string) string {
			response := answerFrom(t, url, body, "Accept", accept)
			defer response.Close()
			var b bytes.Buffer
			_, _ = b.ReadFrom(response)
			return b.String()
		}
	}
	inField := func(cfg *Config) {
		*cfg = withStatusResolver(t, *cfg, func(context.Context) model.ServiceStatus { panic("canary") })
	}
	keeps := func(cfg *Config) { cfg.ResponseBytes, cfg.Clock = 1<<20, market.SystemClock{} }
	// twice makes the observer panic, too. Then another deferred recover must send the response.
	twice := func(kind string) func(cfg *Config) {
		return func(cfg *Config) {
			cfg.Observer = onEnd(func(j *request.Log) {
				if j.Type() == kind {
					panic("canary")
				}
			})
		}
	}
	early := func(cfg *Config) { cfg.Compiler = streamCompiler(t, nil, nil) }
	const prices = `{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`
	for _, test := range []struct {
		name string
		rig  []func(cfg *Config)
		run  func(t *testing.T, url string) string
		// before is a text that the client receives in addition to the error.
		before string
		// again is the number of further panics.
		again int
	}{
		{"a query over HTTP", nil, ask(query, content.Response), "", 0},
		{"a field", []func(*Config){inField}, ask(query, content.Response), "", 0},
		{"a query whose response is cached", []func(*Config){keeps}, ask(prices, content.Response), "", 0},
		{"a query whose response is cached, and the observer", []func(*Config){keeps, twice("query")}, ask(prices, content.Response), "", 1},
		{"a query on a socket", nil, follow(query), "", 0},
		{"a query on a socket, and the observer", []func(*Config){twice("query")}, follow(query), "", 1},
		{"a query as an event stream, and the observer", []func(*Config){twice("query")}, ask(query, content.Events), "", 1},
		{"an event on a socket", nil, follow(status), `"payload":{"data":{"streamStatusChanged":1}}`, 0},
		{"an event on a socket, and the observer", []func(*Config){twice("subscription")}, follow(status), `"payload":{"data":{"streamStatusChanged":1}}`, 1},
		{"an event of an event stream, and the observer", []func(*Config){twice("subscription")}, ask(status, content.Events), `data: {"data":{"streamStatusChanged":1}}`, 1},
		{"the start of a subscription, and the observer", []func(*Config){early, twice("subscription")}, say(status), "", 1},
		{"connection_init", []func(*Config){jumpyAt(1)}, func(t *testing.T, url string) string {
			return converse(t, url, "4403", "") + "INTERNAL_SERVER_ERROR test-request" // a close frame contains no error
		}, "Forbidden", 0},
		{"the start of an operation", []func(*Config){jumpyAt(2)}, say(query), "connection_ack", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log journal
			cfg := testConfig(t)
			numbers := make(chan int, 2)
			numbers <- 1
			numbers <- 2
			close(numbers)
			cfg.Compiler = streamCompiler(t, numbers, func(n int) string {
				if n > 1 {
					panic("canary")
				}
				return "1"
			})
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			for _, rig := range test.rig {
				rig(&cfg)
			}
			api := New(cfg)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				api.ServeHTTP(w, r.WithContext(withID(r.Context(), "test-request")))
			}))
			defer server.Close()
			got := test.run(t, server.URL+PathGraphQL)
			if !strings.Contains(got, "INTERNAL_SERVER_ERROR") || !strings.Contains(got, "test-request") || strings.Contains(got, "canary") || !strings.Contains(got, test.before) {
				t.Errorf("the client got %s, want INTERNAL_SERVER_ERROR with the request id, without the panic, and %q", got, test.before)
			}
			if w := post(t, api, `{"query":"{ nope }"}`); w.Code != http.StatusOK {
				t.Errorf("the next operation: got %d %s, want 200", w.Code, w.Body)
			}
			api.Drain(t.Context()) // wait for the observer, because the client gets the last message before Observer.Ended is called
			server.Close()
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if want := 1 + test.again; len(lines) != want {
				t.Errorf("the log has %d lines, want %d:\n%s", len(lines), want, log.String())
			}
			for _, line := range lines {
				if !strings.Contains(line, "canary") || !strings.Contains(line, "panics_test.go") {
					t.Errorf("a log line lacks the panic or its stack: %s", line)
				}
			}
		})
	}
}
