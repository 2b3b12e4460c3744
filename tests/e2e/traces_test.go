package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"oddsgraph/app"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
)

// traceCollector is a server that receives spans by OTLP over HTTP.
type traceCollector struct {
	*httptest.Server

	mu    sync.Mutex
	spans map[string]*otlp.Span // the spans by their ids
	raw   []byte
}

// collectTraces starts a collector. Every service that the test starts later sends all its traces to the collector.
func collectTraces(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{spans: map[string]*otlp.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return c
}

func (c *traceCollector) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans[hex.EncodeToString(span.SpanId)] = span
			}
		}
	}
}

// all waits for at least n spans and returns all spans.
func (c *traceCollector) all(t *testing.T, n int) map[string]*otlp.Span {
	t.Helper()
	have := func() map[string]*otlp.Span {
		c.mu.Lock()
		defer c.mu.Unlock()
		return maps.Clone(c.spans)
	}
	eventually(t, fmt.Sprint("the collector has at least ", n, " spans"), func() bool { return len(have()) >= n })
	return have()
}

// text returns all bytes that the collector has received.
func (c *traceCollector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.raw)
}

// attribute returns an attribute of a span as a string, or "" if the span lacks the attribute.
func attribute(span *otlp.Span, key string) string {
	for _, a := range span.Attributes {
		if a.Key == key {
			if s := a.Value.GetStringValue(); s != "" {
				return s
			}
			return fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return ""
}

// links returns the sorted ids of the spans that a span links to.
func links(span *otlp.Span) []string {
	ids := []string{}
	for _, l := range span.Links {
		ids = append(ids, hex.EncodeToString(l.SpanId))
	}
	slices.Sort(ids)
	return ids
}

// linkedTo reports whether a span links to any span of the given trace.
func linkedTo(span *otlp.Span, trace string) bool {
	return slices.ContainsFunc(span.Links, func(l *otlp.Span_Link) bool { return hex.EncodeToString(l.TraceId) == trace })
}

// blockedPrices is a transport that records the trace headers of calls for prices. Each of these calls waits until the test sends a
// value to permits.
type blockedPrices struct {
	http.RoundTripper
	permits chan struct{}

	mu      sync.Mutex
	headers []string // the values of Traceparent
}

func (g *blockedPrices) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/prices") {
		g.mu.Lock()
		g.headers = append(g.headers, r.Header.Get("Traceparent"))
		g.mu.Unlock()
		select {
		case <-g.permits:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return g.RoundTripper.RoundTrip(r)
}

func (g *blockedPrices) traceHeaders() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.headers)
}

// startBlocked is like start, but the service calls the venue through blockedPrices, with one call for each kind of data at a time.
func startBlocked(t *testing.T, args ...string) (*service, *blockedPrices) {
	t.Helper()
	g := &blockedPrices{RoundTripper: &http.Transport{}, permits: make(chan struct{})}
	s := startRigged(t, startTime, func(w *app.Wiring) { w.Client.Transport, w.Reads.InFlight = g, 1 }, args...)
	t.Cleanup(g.RoundTripper.(*http.Transport).CloseIdleConnections)
	return s, g
}

// TestOperationsAndCallsAreLinked checks that the span of a call links to the spans of all its operations.
func TestOperationsAndCallsAreLinked(t *testing.T) {
	c := collectTraces(t)
	s, prices := startBlocked(t)
	const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tokens := s.openTokens(7)
	var answered sync.WaitGroup
	ask := func(name, token string, header ...string) {
		r := s.request(t, asJSON(vars{"query": fmt.Sprintf(`query %s { tokenPrices(tokenIds: [%q]) { price timestamp basis } }`, name, token)}), anonymous)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answered.Go(func() {
			resp, err := s.client.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %v, %v", name, resp, err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	priceStats := func() (misses, coalesced uint64) {
		for _, k := range s.Venue.Cache.Stats() {
			if k.Kind == "price" {
				return k.Misses, k.Coalesced
			}
		}
		return 0, 0
	}
	ask("A0", tokens[0])
	eventually(t, "the first call is under way", func() bool { return len(prices.traceHeaders()) == 1 })
	lookups, _ := priceStats() // the number of cache lookups that one operation makes
	ask("A1", tokens[0])
	eventually(t, "a second operation waits for the first call", func() bool { _, coalesced := priceStats(); return coalesced == 1 })
	for i, token := range tokens[1:] {
		header := []string{}
		if i == 2 {
			header = []string{"Traceparent", client, "Baggage", "secret=1"}
		}
		ask(fmt.Sprint("B", i), token, header...)
	}
	eventually(t, "six more operations wait for a call", func() bool { misses, _ := priceStats(); return misses == 8*lookups })
	over := make(chan struct{})
	go func() { // permits all calls, including the calls for operations that came too late for the shared call
		for {
			select {
			case prices.permits <- struct{}{}:
			case <-over:
				return
			}
		}
	}()
	answered.Wait()
	close(over)

	spans := c.all(t, 8+len(prices.traceHeaders()))
	operations, calls := map[string]string{}, []*otlp.Span{}
	for id, span := range spans {
		if name := attribute(span, "graphql.operation.name"); name != "" {
			operations[name] = id
		} else {
			calls = append(calls, span)
		}
	}
	if len(operations) != 8 || len(calls) != len(prices.traceHeaders()) {
		t.Fatalf("got %d spans, from %d operations and %d calls; want 8 operations and %d calls", len(spans), len(operations), len(calls), len(prices.traceHeaders()))
	}
	slices.SortFunc(calls, func(a, b *otlp.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	most, linked := 0, 0
	for i, call := range calls {
		own := links(call)
		for name, id := range operations {
			if slices.Contains(own, id) {
				linked++
				if strings.HasPrefix(name, "A") != (i == 0) {
					t.Errorf("call %d links to operation %s; want call 0 to link to A0 and A1, and later calls to the other operations", i, name)
				}
			}
		}
		wantKeys := len(own)
		if i == 0 { // both operations of call 0 wait for the same token
			wantKeys = 1
		}
		most = max(most, len(own))
		if call.Name != "GET prices" || attribute(call, "http.response.status_code") != "200" || attribute(call, "oddsgraph.keys") != fmt.Sprint(wantKeys) {
			t.Errorf("call %d has the span %v, want GET prices with status 200 and %d keys", i, call, wantKeys)
		}
		if header := fmt.Sprintf("00-%x-%x-01", call.TraceId, call.ParentSpanId); prices.traceHeaders()[i] != header {
			t.Errorf("call %d has the trace header %q, want %q", i, prices.traceHeaders()[i], header)
		}
		if parent := spans[hex.EncodeToString(call.ParentSpanId)]; parent == nil || string(parent.TraceId) != string(call.TraceId) || !slices.Contains(own, hex.EncodeToString(call.ParentSpanId)) {
			t.Errorf("the parent of call %d is %x, want one of the operations that the call links to", i, call.ParentSpanId)
		}
	}
	if most < 3 || linked != 8 {
		t.Errorf("at most %d operations share a call, and the calls have %d links to operations; want at least 3, and 8", most, linked)
	}
	continued := spans[operations["B2"]]
	if hex.EncodeToString(continued.TraceId) != client[3:35] || hex.EncodeToString(continued.ParentSpanId) != client[36:52] {
		t.Errorf("the span of operation B2 has the trace %x and the parent %x, want those of the client", continued.TraceId, continued.ParentSpanId)
	}
	var events []string
	for _, e := range continued.Events {
		events = append(events, e.Name)
	}
	if slices.Sort(events); !slices.Equal(events, []string{"batch", "cache"}) || continued.Name != "query" || continued.Kind != otlp.Span_SPAN_KIND_SERVER ||
		attribute(continued, "oddsgraph.outcome") != "ok" || attribute(continued, "oddsgraph.upstream.calls") != "1" || len(attribute(continued, "oddsgraph.document")) != 64 {
		t.Errorf("operation B2 has the events %v and the span %v, want a successful query with one cache event and one batch", events, continued)
	}
	if strings.Contains(c.text(), tokens[0]) || strings.Contains(c.text(), "tokenPrices") {
		t.Error("the traces contain a token id or the text of a document")
	}
}

// TestTracesOverWebSocket checks that an operation's span links to the trace in the operation's message, or else to the trace in
// connection_init. The service does not continue these traces, because no proxy checks the trace context of a message.
func TestTracesOverWebSocket(t *testing.T) {
	c := collectTraces(t)
	s := startLive(t, "--trusted-proxies=127.0.0.1")
	s.waitForStream(t)
	const connection, operation = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
	k := s.dialWithPayload(t, vars{"traceparent": "00-" + connection + "-b7ad6b7169203331-01"})
	k.send(t, frame{ID: "1", Type: "subscribe", Payload: json.RawMessage(`{"query":"query One { __typename }"}`)})
	k.send(t, frame{ID: "2", Type: "subscribe", Payload: json.RawMessage(`{"query":"query Two { __typename }","extensions":{"traceparent":"00-` + operation + `-b7ad6b7169203331-01"}}`)})
	k.send(t, frame{ID: "3", Type: "subscribe", Payload: json.RawMessage(`{"query":"subscription Three { streamStatusChanged { state } }"}`)})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for seen := ""; !strings.Contains(seen, "1 complete") || !strings.Contains(seen, "2 complete") || !strings.Contains(seen, "3 next"); {
		f, err := k.read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		seen += f.ID + " " + f.Type + "\n"
	}
	k.send(t, frame{ID: "3", Type: "complete"})
	want := map[string]string{"One": connection, "Two": operation, "Three": connection}
	found := func() int {
		n := 0
		for _, span := range c.all(t, 0) {
			name := attribute(span, "graphql.operation.name")
			if trace, ok := want[name]; ok && hex.EncodeToString(span.TraceId) != trace && linkedTo(span, trace) && attribute(span, "oddsgraph.transport") == "websocket" && (name == "Three") == (span.Name == "subscription") {
				n++
			}
		}
		return n
	}
	eventually(t, "all three operations link to their traces", func() bool { return found() == 3 })
}

// TestNoTracesUnlessWanted checks the number of spans without a collector, with traces switched off, and with sampling.
func TestNoTracesUnlessWanted(t *testing.T) {
	c := collectTraces(t)
	const sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, test := range []struct {
		name      string
		env       map[string]string
		proxy     string // address of the trusted proxy
		wantSpans int
	}{
		{"no collector", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, "127.0.0.1", 0},
		{"tracing disabled", map[string]string{"OTEL_SDK_DISABLED": "true"}, "127.0.0.1", 0},
		{"exporter none", map[string]string{"OTEL_TRACES_EXPORTER": "none"}, "127.0.0.1", 0},
		{"never sampled", map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, "127.0.0.1", 0},
		{"sampled by a trusted proxy", map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, "127.0.0.1", 2},
		{"sampled by a client", map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, "", 0},
		{"sampled by another proxy", map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, "192.0.2.1", 0},
		{"default settings with a proxy", nil, "127.0.0.1", 4},
		{"default settings without a proxy", nil, "", 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			c.mu.Lock()
			clear(c.spans)
			c.mu.Unlock()
			var headers []string
			t.Run("serve", func(t *testing.T) { // at the end of the subtest, the service sends the remaining spans
				s, prices := startBlocked(t, "--trusted-proxies="+test.proxy)
				for i, id := range s.openTokens(2) {
					r := s.request(t, asJSON(vars{"query": fmt.Sprintf(`{ tokenPrices(tokenIds: [%q]) { price } }`, id)}), anonymous)
					if i == 0 {
						r.Header.Set("Traceparent", sampled)
					}
					go func() { prices.permits <- struct{}{} }()
					if resp := s.do(t, r); resp.status != http.StatusOK || (s.Tracer == nil) != (test.wantSpans == 0 && test.env["OTEL_TRACES_SAMPLER"] == "") {
						t.Errorf("got status %d and %s (the service has a tracer: %t); want status 200, and a tracer unless traces are switched off", resp.status, resp.body, s.Tracer != nil)
					}
				}
				headers = prices.traceHeaders()
			})
			withHeader := 0
			for _, parent := range headers {
				if parent != "" {
					withHeader++
				}
			}
			if got := len(c.all(t, 0)); got != test.wantSpans || withHeader != test.wantSpans/2 {
				t.Errorf("got %d spans and %d calls with a trace header, want %d and %d; the headers are %q", got, withHeader, test.wantSpans, test.wantSpans/2, headers)
			}
		})
	}
}

// TestACollectorThatHangs checks that a collector that never responds delays neither requests nor the shutdown.
func TestACollectorThatHangs(t *testing.T) {
	asked, release := make(chan struct{}, 1000), make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-release
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hanging.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "600000")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	s, stop := startStoppable(t, "--shutdown-timeout=1s")
	query := func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r := s.request(t, `{"query":"{ serviceStatus { version } }"}`, anonymous).WithContext(ctx)
		if resp := s.do(t, r); resp.status != http.StatusOK {
			t.Fatal(resp.body)
		}
	}
	query()
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("the collector received no request")
	}
	for range 50 {
		query()
	}
	start := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > patience { // the collector's timeout is ten minutes
		t.Errorf("the shutdown took %s, want at most %s", took, patience)
	}
}

// TestMetricsWhileTracesAreSent checks that the private address serves the metrics until the remaining traces have been sent.
func TestMetricsWhileTracesAreSent(t *testing.T) {
	asked, release := make(chan struct{}, 1000), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-release
	}))
	t.Cleanup(slow.Close)
	goOn := sync.OnceFunc(func() { close(release) })
	defer goOn()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", slow.URL)
	s, stop := startStoppable(t, "--shutdown-timeout=30s")
	s.ask(t, "{ serviceStatus { version } }", nil, anonymous)
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	<-asked
	eventually(t, "the demo venue has stopped", func() bool {
		conn, err := net.Dial("tcp", s.Demo.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	if got := s.askAdmin(t, http.MethodGet, "/metrics"); got.status != http.StatusOK {
		t.Errorf("the response from /metrics is %+v, want status 200", got)
	}
	goOn()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestInvalidTraceSettings checks that the error for an invalid setting names the environment variable of the setting.
func TestInvalidTraceSettings(t *testing.T) {
	cfg := config.Default()
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_EXPORTER": "zipkin"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
			t.Setenv(name, value)
			_, err := app.Open(&cfg, telemetry.NewLogger(io.Discard, cfg.Log.Level, "text"), market.SystemClock{})
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "want ") {
				t.Errorf("got the error %v, want an error that names %s and the valid values", err, name)
			}
		})
	}
}

// TestCanaryInTraces checks that traces contain a secret from a request only if the secret is the operation's name or the request's
// id.
func TestCanaryInTraces(t *testing.T) {
	c := collectTraces(t)
	venue := newEcho(t)
	s := start(t, "--venue-url="+venue.URL)
	secrets := map[string]string{}
	for _, place := range canaryPlaces() {
		secret := newCanary()
		venue.setResponse("failed")
		place.send(t, s, secret)
		s.expireCaches()
		if place.name != "a request id" && !place.named {
			secrets[secret] = place.name
		}
	}
	secret := newCanary()
	_ = s.do(t, s.request(t, asJSON(vars{"query": everything}), credentials("demo", "note", secret)))
	secrets[secret] = "credentials"
	c.all(t, len(secrets)/2)
	s.SendTraces(patience)
	text := c.text()
	for secret, place := range secrets {
		if form := findSecret(text, secret); form != "" {
			t.Errorf("the traces contain the secret from %s in the form %s", place, form)
		}
	}
	if len(text) < 10_000 {
		t.Errorf("the service sent only %d bytes of traces, want at least 10000", len(text))
	}
}
