package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func compare(t *testing.T, m *Metrics, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestVenueMetrics(t *testing.T) {
	m := NewMetrics("v1").ForVenue("")
	m.Call("/api/exchange/prices", 40, 200, "ok", 20*time.Millisecond)
	m.Call("prices", 1, 200, "ok", 20*time.Millisecond)
	m.Call("/prefix/api/user/balance", 1, 0, "UPSTREAM_TIMEOUT", 2*time.Second)
	m.Call("/../../etc/passwd", 1, 999, "", time.Second)
	m.Drift("/api/exchange/prices", "price unreadable")
	compare(t, m, `
# HELP oddsgraph_venue_calls_total HTTP calls to the venue, including retries. status is none if there was no response.
# TYPE oddsgraph_venue_calls_total counter
oddsgraph_venue_calls_total{endpoint="balance",outcome="upstream_timeout",status="none"} 1
oddsgraph_venue_calls_total{endpoint="other",outcome="other",status="other"} 1
oddsgraph_venue_calls_total{endpoint="prices",outcome="ok",status="200"} 2
# HELP oddsgraph_venue_drift_total Invalid parts of the venue's responses that were left out, by kind of fault.
# TYPE oddsgraph_venue_drift_total counter
oddsgraph_venue_drift_total{endpoint="prices",what="price_unreadable"} 1
`, "oddsgraph_venue_calls_total", "oddsgraph_venue_drift_total")
	text := scrape(t, m)
	for _, want := range []string{
		`oddsgraph_venue_call_duration_seconds_count{endpoint="prices"} 2`,
		`oddsgraph_venue_call_duration_seconds_bucket{endpoint="prices",le="0.025"} 2`,
		`oddsgraph_venue_call_keys_sum{endpoint="prices"} 41`,
		`oddsgraph_venue_call_keys_bucket{endpoint="prices",le="30"} 1`,
		`oddsgraph_venue_call_keys_bucket{endpoint="prices",le="40"} 2`,
		"go_goroutines ", "process_start_time_seconds ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
}

func TestOperationMetrics(t *testing.T) {
	m := NewMetrics("v1")
	m.Operation("query", "", "ok", "", time.Millisecond)
	m.Operation("query", "Board", "ok", "", time.Millisecond)
	m.Operation("query", "", "BAD_USER_INPUT", "depth", time.Millisecond)
	m.Operation("unknown", "", "BAD_USER_INPUT", "depth", time.Millisecond)
	m.Operation("subscription", "", "ok", "", time.Hour)
	m.Operation("nonsense", "", "ok", "", time.Millisecond)
	m.EventFailed([]string{"UPSTREAM_TIMEOUT", "RATE_LIMITED"})
	m.EventFailed([]string{"UPSTREAM_TIMEOUT"})
	compare(t, m, `
# HELP oddsgraph_subscription_event_failures_total Subscription events with an error in some field, by code. An event that equal subscriptions share counts once.
# TYPE oddsgraph_subscription_event_failures_total counter
oddsgraph_subscription_event_failures_total{code="rate_limited"} 1
oddsgraph_subscription_event_failures_total{code="upstream_timeout"} 2
`, "oddsgraph_subscription_event_failures_total")
	compare(t, m, `
# HELP oddsgraph_guard_rejections_total Operations that were refused because they exceed a limit, by rule.
# TYPE oddsgraph_guard_rejections_total counter
oddsgraph_guard_rejections_total{rule="depth"} 2
# HELP oddsgraph_operations_total GraphQL operations that have ended, including refused ones, by type, name of the trusted document and outcome.
# TYPE oddsgraph_operations_total counter
oddsgraph_operations_total{name="",outcome="bad_user_input",type="query"} 1
oddsgraph_operations_total{name="",outcome="bad_user_input",type="unknown"} 1
oddsgraph_operations_total{name="",outcome="ok",type="other"} 1
oddsgraph_operations_total{name="",outcome="ok",type="query"} 1
oddsgraph_operations_total{name="",outcome="ok",type="subscription"} 1
oddsgraph_operations_total{name="Board",outcome="ok",type="query"} 1
`, "oddsgraph_operations_total", "oddsgraph_guard_rejections_total")
	text := scrape(t, m)
	for _, want := range []string{
		`oddsgraph_operation_duration_seconds_count{name="",type="query"} 2`, `oddsgraph_operation_duration_seconds_bucket{name="Board",type="query",le="0.001"} 1`,
		`oddsgraph_build_info{goversion="` + runtime.Version() + `",version="v1"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
	if strings.Contains(text, `oddsgraph_operation_duration_seconds_count{name="",type="subscription"}`) {
		t.Error("the scrape has durations of subscriptions")
	}
}

func TestStreamMetrics(t *testing.T) {
	m := NewMetrics("v1").ForVenue("")
	s := m.Stream()
	s.Frame("price_update")
	s.Frame("price_update")
	s.Frame("garbage")
	s.Drift("no hello")
	s.Reconnect("dial")
	s.Lag(20 * time.Millisecond)
	s.Lag(-time.Second)
	compare(t, m, `
# HELP oddsgraph_stream_disconnects_total Connections of the stream that were lost or could not be opened, by reason.
# TYPE oddsgraph_stream_disconnects_total counter
oddsgraph_stream_disconnects_total{reason="dial"} 1
# HELP oddsgraph_stream_drift_total Deviations of the venue's stream from its documented protocol, by kind.
# TYPE oddsgraph_stream_drift_total counter
oddsgraph_stream_drift_total{what="no_hello"} 1
# HELP oddsgraph_stream_frames_total Frames of the venue's stream, by type. unknown counts frames of unknown types, garbage counts frames that are not JSON.
# TYPE oddsgraph_stream_frames_total counter
oddsgraph_stream_frames_total{type="garbage"} 1
oddsgraph_stream_frames_total{type="price_update"} 2
`, "oddsgraph_stream_disconnects_total", "oddsgraph_stream_drift_total", "oddsgraph_stream_frames_total")
	text := scrape(t, m)
	for _, want := range []string{`oddsgraph_stream_lag_seconds_count 2`, `oddsgraph_stream_lag_seconds_sum 0.02`, `oddsgraph_stream_lag_seconds_bucket{le="0.01"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
}

// TestVenues checks that each of several venues has its own series, and that a single venue has no label.
func TestVenues(t *testing.T) {
	const calls, state = "oddsgraph_venue_calls_total", "oddsgraph_state"
	show := func(m *Metrics, names ...string) (out string) {
		for i, name := range names {
			of := m.ForVenue(name)
			for range i + 1 {
				of.Call("prices", 40, 200, "ok", time.Millisecond)
			}
			Register(of, func() int { return i }, Family[int]{Kind: Gauge, Name: state, Help: "S.", Read: Single(func(n int) float64 { return float64(n) })})
		}
		m.Operation("query", "Board", "ok", "", time.Millisecond)
		for line := range strings.Lines(scrape(t, m)) {
			if strings.HasPrefix(line, calls) || strings.HasPrefix(line, state) || strings.HasPrefix(line, "oddsgraph_operations_total") {
				out += line
			}
		}
		return out
	}
	const operation = `oddsgraph_operations_total{name="Board",outcome="ok",type="query"} 1` + "\n"
	if got, want := show(NewMetrics("v1"), ""), operation+state+" 0\n"+calls+`{endpoint="prices",outcome="ok",status="200"} 1`+"\n"; got != want {
		t.Errorf("one venue has the series\n%s\nwant\n%s", got, want)
	}
	want := operation + state + `{venue="a"} 0` + "\n" + state + `{venue="b"} 1` + "\n" +
		calls + `{endpoint="prices",outcome="ok",status="200",venue="a"} 1` + "\n" + calls + `{endpoint="prices",outcome="ok",status="200",venue="b"} 2` + "\n"
	if got := show(NewMetrics("v1"), "a", "b"); got != want {
		t.Errorf("two venues have the series\n%s\nwant\n%s", got, want)
	}
}

// TestRegister checks that all metric families of a scrape are read from one snapshot.
func TestRegister(t *testing.T) {
	m := NewMetrics("v1")
	taken := 0
	Register(m, func() int { taken++; return taken },
		Family[int]{Kind: Counter, Name: "a_total", Help: "A.", Read: Single(func(n int) float64 { return float64(n) })},
		Family[int]{Kind: Gauge, Name: "b", Help: "B.", Labels: []string{"kind"}, Read: func(n int, sample func(float64, ...string)) {
			sample(float64(10*n), "x")
			sample(float64(100*n), "y")
		}})
	for n := 1; n <= 2; n++ {
		want := fmt.Sprintf("# HELP a_total A.\n# TYPE a_total counter\na_total %d\n# HELP b B.\n# TYPE b gauge\nb{kind=\"x\"} %d\nb{kind=\"y\"} %d\n", n, 10*n, 100*n)
		compare(t, m, want, "a_total", "b")
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	m := NewMetrics("v1")
	v := m.ForVenue("")
	count := func() {
		m.Operation("query", "Board", "ok", "", time.Millisecond)
		v.Stream().Frame("price_update")
		v.Call("prices", 40, 200, "ok", time.Millisecond)
	}
	count()
	if n := testing.AllocsPerRun(1000, count); n > 0 {
		t.Errorf("counting costs %v allocations, want none", n)
	}
}

// TestSeriesAreBounded checks that the number of series is limited for any number of different label values.
func TestSeriesAreBounded(t *testing.T) {
	m := NewMetrics("v1")
	v := m.ForVenue("")
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 500 {
				s := fmt.Sprintf("%d-%d\xff", w, i)
				v.Call(s, i, 1000+i, s, time.Second)
				v.Call("prices", i, -i, s, time.Second)
				v.Drift(s, s)
				m.Operation(s, s, s, s, time.Second)
				v.Stream().Frame(s)
				v.Stream().Drift(s)
				v.Stream().Reconnect(s)
			}
		})
	}
	workers.Wait()
	for name, most := range map[string]int{
		"oddsgraph_venue_calls_total": 3 * 65, "oddsgraph_venue_drift_total": 2 * 65, "oddsgraph_venue_call_keys": 2, "oddsgraph_operations_total": 101 * 65,
		"oddsgraph_operation_duration_seconds": 101, "oddsgraph_guard_rejections_total": 65, "oddsgraph_stream_frames_total": 65,
		"oddsgraph_stream_drift_total": 65, "oddsgraph_stream_disconnects_total": 65,
	} {
		n, err := testutil.GatherAndCount(m.registry, name)
		if err != nil || n == 0 || n > most {
			t.Errorf("%s: got %d series and error %v, want 1 to %d series", name, n, err, most)
		}
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("a scrape: got status %d, error %v and body %s", resp.StatusCode, err, bytes.TrimSpace(body))
	}
	return string(body)
}
