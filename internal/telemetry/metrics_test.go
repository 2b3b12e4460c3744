package telemetry_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"oddsgraph/internal/telemetry"
)

func compare(t *testing.T, m *telemetry.Metrics, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(m.Registry(), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestVenueMetrics(t *testing.T) {
	m := telemetry.NewMetrics()
	m.Call("/api/exchange/prices", 40, 200, "ok", 20*time.Millisecond)
	m.Call("prices", 1, 200, "ok", 20*time.Millisecond)
	m.Call("/prefix/api/user/balance", 1, 0, "UPSTREAM_TIMEOUT", 2*time.Second)
	m.Call("/../../etc/passwd", 1, 999, "", time.Second)
	m.Drift("/api/exchange/prices", "price unreadable")
	compare(t, m, `
# HELP oddsgraph_venue_calls_total HTTP calls to the venue, each attempt counted; status is none without an answer.
# TYPE oddsgraph_venue_calls_total counter
oddsgraph_venue_calls_total{endpoint="balance",outcome="upstream_timeout",status="none"} 1
oddsgraph_venue_calls_total{endpoint="other",outcome="other",status="other"} 1
oddsgraph_venue_calls_total{endpoint="prices",outcome="ok",status="200"} 2
# HELP oddsgraph_venue_drift_total Parts of the venue's answers that could not be used while the rest was, by what was wrong.
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
	m := telemetry.NewMetrics()
	m.Operation("query", "ok", time.Millisecond)
	m.Operation("query", "BAD_USER_INPUT", time.Millisecond)
	m.Operation("nonsense", "ok", time.Millisecond)
	compare(t, m, `
# HELP oddsgraph_operations_total GraphQL operations, by type and outcome.
# TYPE oddsgraph_operations_total counter
oddsgraph_operations_total{outcome="bad_user_input",type="query"} 1
oddsgraph_operations_total{outcome="ok",type="other"} 1
oddsgraph_operations_total{outcome="ok",type="query"} 1
`, "oddsgraph_operations_total")
}

func TestCacheMetrics(t *testing.T) {
	m := telemetry.NewMetrics()
	stats := []telemetry.CacheStats{{Kind: "price", Hits: 1, Stale: 2, Misses: 3, NotFound: 4, Coalesced: 5, Calls: 6, Keys: 7, Evictions: 8, Entries: 9}}
	m.RegisterCache(func() []telemetry.CacheStats { return stats })
	compare(t, m, `
# HELP oddsgraph_cache_coalesced_keys_total Keys that joined an upstream call that was queued or in flight already.
# TYPE oddsgraph_cache_coalesced_keys_total counter
oddsgraph_cache_coalesced_keys_total{kind="price"} 5
# HELP oddsgraph_cache_entries Entries in the cache, remembered absences included.
# TYPE oddsgraph_cache_entries gauge
oddsgraph_cache_entries{kind="price"} 9
# HELP oddsgraph_cache_evictions_total Entries that left the cache before their time to make room.
# TYPE oddsgraph_cache_evictions_total counter
oddsgraph_cache_evictions_total{kind="price"} 8
# HELP oddsgraph_cache_requests_total Keys looked up in the cache, by what was found; not_found is a remembered absence.
# TYPE oddsgraph_cache_requests_total counter
oddsgraph_cache_requests_total{kind="price",verdict="hit"} 1
oddsgraph_cache_requests_total{kind="price",verdict="miss"} 3
oddsgraph_cache_requests_total{kind="price",verdict="not_found"} 4
oddsgraph_cache_requests_total{kind="price",verdict="stale"} 2
# HELP oddsgraph_cache_upstream_calls_total Upstream calls that the cache made.
# TYPE oddsgraph_cache_upstream_calls_total counter
oddsgraph_cache_upstream_calls_total{kind="price"} 6
# HELP oddsgraph_cache_upstream_keys_total Keys that the cache asked upstream for.
# TYPE oddsgraph_cache_upstream_keys_total counter
oddsgraph_cache_upstream_keys_total{kind="price"} 7
`, "oddsgraph_cache_coalesced_keys_total", "oddsgraph_cache_entries", "oddsgraph_cache_evictions_total", "oddsgraph_cache_requests_total",
		"oddsgraph_cache_upstream_calls_total", "oddsgraph_cache_upstream_keys_total")
	stats[0].Entries = 10
	if text := scrape(t, m); !strings.Contains(text, `oddsgraph_cache_entries{kind="price"} 10`) {
		t.Error("a scrape does not read the cache anew")
	}
}

// TestSeriesAreBounded sends what a hostile venue or client could make of every label, from several goroutines.
func TestSeriesAreBounded(t *testing.T) {
	m := telemetry.NewMetrics()
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 500 {
				s := fmt.Sprintf("%d-%d\xff", w, i)
				m.Call(s, i, 1000+i, s, time.Second)
				m.Call("prices", i, -i, s, time.Second)
				m.Drift(s, s)
				m.Operation(s, s, time.Second)
			}
		})
	}
	workers.Wait()
	for _, name := range []string{"oddsgraph_venue_calls_total", "oddsgraph_venue_drift_total", "oddsgraph_operations_total", "oddsgraph_venue_call_keys"} {
		n, err := testutil.GatherAndCount(m.Registry(), name)
		if err != nil || n == 0 || n > 3*65 {
			t.Errorf("%s has %d series, %v; want at most 195", name, n, err)
		}
	}
}

func TestMetricNames(t *testing.T) {
	m := telemetry.NewMetrics()
	m.RegisterCache(func() []telemetry.CacheStats { return []telemetry.CacheStats{{Kind: "price"}} })
	m.Call("prices", 1, 200, "ok", time.Second)
	m.Drift("prices", "a")
	m.Operation("query", "ok", time.Second)
	scrape(t, m)
	problems, err := testutil.GatherAndLint(m.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestHandlerTwice(t *testing.T) {
	m := telemetry.NewMetrics()
	if !strings.Contains(scrape(t, m), "promhttp_metric_handler_requests_total") || scrape(t, m) == "" {
		t.Error("the handler does not count scrapes")
	}
}

func scrape(t *testing.T, m *telemetry.Metrics) string {
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
		t.Fatalf("scraping gives %d, %v: %s", resp.StatusCode, err, bytes.TrimSpace(body))
	}
	return string(body)
}
