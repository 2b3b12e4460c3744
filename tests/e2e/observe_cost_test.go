//go:build unix

package e2e

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/graph"
	"oddsgraph/httpapi"
	"oddsgraph/httpapi/auth"
	"oddsgraph/internal/config"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/telemetry"
	"oddsgraph/resolvers"
	"oddsgraph/tests/tool"
)

// observedHandler returns an HTTP handler that shares the service's cache. If metrics is true, the handler counts metrics and logs
// at most maxLines lines a second.
func (s *service) observedHandler(t testing.TB, maxLines int, metrics bool, args ...string) http.Handler {
	t.Helper()
	cfg, err := config.Parse(args, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	root := &resolvers.Resolver{Venues: []resolvers.Venue{{Scope: s.Venue.Cache.Scope}}, Feeds: []*feed.Feed{s.Venue.Live.Feed}, Sources: app.Sources(s.Venue.Cache, 0), Status: s.Status, Clock: s.clock}
	log := telemetry.NewLogger(io.Discard, slog.LevelError, "json")
	if metrics {
		w := telemetry.NewWriter(io.Discard, app.LogLines)
		t.Cleanup(func() { w.Close(time.Minute) })
		log = telemetry.NewLogger(w, slog.LevelInfo, "json")
	}
	front, err := app.NewFront(cfg, nil, graph.Config{Resolvers: root}, log)
	if err != nil {
		t.Fatal(err)
	}
	front.Documents, front.Sources, front.Clock = s.Files.Documents, app.Sources(s.Venue.Cache, 0), s.clock
	front.Refusals, front.Ready = auth.NewRefusals(s.clock), s.Ready
	if metrics {
		front.Observer = app.Observer(telemetry.NewMetrics("test"), telemetry.NewOperations(log, maxLines), nil)
	}
	api := httpapi.New(front)
	t.Cleanup(func() { api.Drain(context.Background()) })
	return telemetry.Requests(log, maxLines, api)
}

// newSender returns a function that sends the same request to the handler h each time.
func newSender(t testing.TB, h http.Handler, body, credentials string) func() {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, httpapi.PathGraphQL, nil)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(httpapi.CredentialsHeader, credentials)
	reader, w := bytes.NewReader(nil), &discardWriter{header: http.Header{}}
	once := func() {
		reader.Reset([]byte(body))
		r.Body, r.ContentLength = io.NopCloser(reader), int64(len(body))
		clear(w.header)
		h.ServeHTTP(w, r)
	}
	if once(); w.status != http.StatusOK || w.bytes < 5000 {
		t.Fatalf("got status %d and %d bytes, want 200 and at least 5000 bytes", w.status, w.bytes)
	}
	return once
}

// discardWriter is a response writer that discards bodies and counts the bytes of all bodies.
type discardWriter struct {
	header        http.Header
	status, bytes int
}

func (n *discardWriter) Header() http.Header             { return n.header }
func (n *discardWriter) WriteHeader(status int)          { n.status = status }
func (n *discardWriter) SetReadDeadline(time.Time) error { return nil }

func (n *discardWriter) SetWriteDeadline(time.Time) error { return nil }

func (n *discardWriter) Write(b []byte) (int, error) {
	n.bytes += len(b)
	return len(b), nil
}

// waysOfAnswering lists two ways to respond to a query whose data are cached: from the response cache, and by an execution.
var waysOfAnswering = []struct {
	name string
	args []string
}{
	{"kept", nil},
	{"executed", []string{"--cache-responses=0"}},
}

// portfolioBody queries a portfolio of 50 positions.
var portfolioBody = asJSON(vars{"query": portfolioQuery, "variables": vars{"address": addressOf50}})

// TestObservingAllocatesLittle limits the allocations that metrics and logging add to an operation.
func TestObservingAllocatesLittle(t *testing.T) {
	most := 8.0 // allocations of metrics and logging together
	if tool.Raced {
		most = 16 // the race detector drops items of sync.Pools
	}
	s := start(t)
	for _, way := range waysOfAnswering {
		off := newSender(t, s.observedHandler(t, 0, false, way.args...), portfolioBody, keyOf50)
		on := newSender(t, s.observedHandler(t, 1_000_000, true, way.args...), portfolioBody, keyOf50)
		with, without := testing.AllocsPerRun(100, on), testing.AllocsPerRun(100, off)
		t.Logf("%s: %.0f allocations with metrics and log, %.0f without", way.name, with, without)
		if with > without+most {
			t.Errorf("%s: metrics and log add %.0f allocations, want at most %.0f", way.name, with-without, most)
		}
	}
}

// BenchmarkObservability compares an operation with and without metrics and log. cpu-ns/op is the CPU time of the whole process,
// including the goroutine that writes the log.
func BenchmarkObservability(b *testing.B) {
	s := start(b)
	for _, way := range waysOfAnswering {
		for _, on := range []struct {
			name    string
			observe bool
			lines   int
		}{{"off", false, 0}, {"on", true, 500}, {"every-line", true, 1_000_000_000}} {
			b.Run(way.name+"/"+on.name, func(b *testing.B) {
				once := newSender(b, s.observedHandler(b, on.lines, on.observe, way.args...), portfolioBody, keyOf50)
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					once()
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// cpuTime returns the process's user and system time in nanoseconds.
func cpuTime() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
