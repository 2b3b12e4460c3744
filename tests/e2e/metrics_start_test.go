package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestCountersExistFromTheStart checks that each counter of docs/metrics.md has a series before the first event, and that its value
// is 0. Otherwise Prometheus would miss the first event. The metrics of Redis need Redis, so TestMetricsAreTrue has them.
func TestCountersExistFromTheStart(t *testing.T) {
	s := start(t, "--demo-stream", "--demo-public-per-minute=100")
	m := s.scrape(t)
	reference, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range metricName.FindAllString(string(reference), -1) {
		if strings.HasPrefix(name, "oddsgraph_shared_") || !strings.HasSuffix(name, "_total") || name == "go_memstats_mallocs_total" || strings.HasPrefix(name, "oddsgraph_log_") {
			continue
		}
		found := false
		for series, value := range m.samples {
			if family, _, _ := strings.Cut(series, "{"); family == name {
				found = true
				if value != 0 && !strings.Contains(series, "stream_frames") && !strings.Contains(series, "stream_snapshots") {
					t.Errorf("%s is %v before the first event, want 0", series, value)
				}
			}
		}
		if !found {
			t.Errorf("%s has no series before the first event", name)
		}
	}
	for _, series := range []string{
		`oddsgraph_operations_total{name="",outcome="internal_server_error",type="query"}`, `oddsgraph_guard_rejections_total{rule="calls"}`,
		`oddsgraph_stream_disconnects_total{reason="dial"}`, `oddsgraph_subscription_event_failures_total{code="upstream_timeout"}`,
		`oddsgraph_venue_calls_total{endpoint="prices",outcome="upstream_unavailable",status="none"}`,
	} {
		m.want(series, 0)
	}
	families := strings.Count(m.text, "# TYPE ")
	if other := families - strings.Count(m.text, "# TYPE oddsgraph_"); other > 12 || strings.Contains(m.text, "promhttp_") {
		t.Errorf("the scrape has %d families of the Go runtime and the process, want at most 12", other)
	}
}

// TestReadyMetric checks that the metric of readiness agrees with /readyz, and that a scrape does not make the service call the
// venue.
func TestReadyMetric(t *testing.T) {
	venue := newStub(t, nil)
	s := start(t, "--venue-url="+venue.URL)
	s.scrape(t).want("oddsgraph_ready", 0)
	venue.mu.Lock()
	calls := len(venue.counts)
	venue.mu.Unlock()
	if calls > 0 {
		t.Errorf("the venue got calls to %d endpoints, want none", calls)
	}
	eventually(t, "the process is ready", func() bool { return s.get(t, "/readyz").status == http.StatusOK })
	s.scrape(t).want("oddsgraph_ready", 1)
}
