package e2e

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// scraped is a scrape of /metrics.
type scraped struct {
	t       testing.TB
	text    string
	samples map[string]float64 // maps a name with labels, as in the text, to a value
	checked map[string]bool    // maps a family of metrics to true if the test has compared it
}

func (s *service) scrape(t testing.TB) *scraped {
	t.Helper()
	got := s.askAdmin(t, http.MethodGet, "/metrics")
	if got.status != http.StatusOK {
		t.Fatalf("/metrics: %d %.300s", got.status, got.body)
	}
	return readScrape(t, got.body)
}

// readScrape reads the text format of Prometheus.
func readScrape(t testing.TB, text string) *scraped {
	t.Helper()
	m := &scraped{t: t, text: text, samples: map[string]float64{}, checked: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			m.checked[name] = false
			continue
		}
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			value, err := strconv.ParseFloat(line[i+1:], 64)
			if err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			m.samples[line[:i]] = value
		}
	}
	return m
}

// check records that the test has compared the family of a series.
func (m *scraped) check(series string) {
	name, _, _ := strings.Cut(series, "{")
	for _, family := range []string{name, strings.TrimSuffix(name, "_count"), strings.TrimSuffix(name, "_sum"), strings.TrimSuffix(name, "_bucket")} {
		if _, ok := m.checked[family]; ok {
			m.checked[family] = true
		}
	}
}

// want compares a series with an independent count. The parameter series is the metric's name with its labels.
func (m *scraped) want(series string, want float64) {
	m.t.Helper()
	m.check(series)
	if got, ok := m.samples[series]; !ok || got != want {
		m.t.Errorf("%s is %v (in the scrape: %t), want %v", series, got, ok, want)
	}
}

// wantAll is like want, but compares all series of a metric. The parameter want maps the labels of each series to its independent
// count. A series whose count is 0 may be missing.
func (m *scraped) wantAll(metric string, want map[string]float64) {
	m.t.Helper()
	m.check(metric)
	for series, got := range m.samples {
		if name, labels, _ := strings.Cut(series, "{"); name == metric && got != want[strings.TrimSuffix(labels, "}")] {
			m.t.Errorf("%s is %v, want %v", series, got, want[strings.TrimSuffix(labels, "}")])
		}
	}
	for labels, n := range want {
		if _, ok := m.samples[metric+"{"+labels+"}"]; !ok && n != 0 {
			m.t.Errorf("%s{%s} is not in the scrape, want %v", metric, labels, n)
		}
	}
}

// wantBetween checks that the value of a series lies between least and most, inclusive.
func (m *scraped) wantBetween(series string, least, most float64) {
	m.t.Helper()
	m.check(series)
	if got, ok := m.samples[series]; !ok || got < least || got > most {
		m.t.Errorf("%s is %v (in the scrape: %t), want %v to %v", series, got, ok, least, most)
	}
}

// sum adds up the series of a metric that have all given labels.
func (m *scraped) sum(metric string, labels ...string) (n float64) {
	for series, value := range m.samples {
		name, has, _ := strings.Cut(series, "{")
		if name == metric && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(has, l) }) {
			n += value
		}
	}
	return n
}

// tally counts the operations that the test has sent, by type, name and outcome.
type tally map[string]float64

func (c tally) add(kind, name, outcome string) {
	c[fmt.Sprintf("name=%q,outcome=%q,type=%q", name, outcome, kind)]++
}

// sharedMetrics compares the metrics whose names begin with oddsgraph_shared_ with the commands that Redis executes and with the
// calls to the venue. It marks these metrics in m as checked.
func sharedMetrics(t *testing.T, m *scraped) {
	t.Helper()
	server := tool.StartRedis(t)
	proxy := newSlowVenueOf(t, demo.Config{Markets: 300, Latency: 400 * time.Millisecond}) // a claim lasts longer if calls take long
	server.OpenLedger(t, proxy.URL)
	commands := server.Monitor(t)
	replica := func() *service {
		s, _ := startLiveRigged(t, withoutRetries, "--venue-url="+proxy.URL, "--venue-public-per-minute=100", "--cache-price-fresh=1h",
			"--shared-url="+server.URL(), "--shared-timeout=1s", "--shared-replicas=2")
		s.venue, s.faults = proxy.demo, proxy.faults
		eventually(t, "the replica is connected", func() bool { return s.scrape(t).samples["oddsgraph_shared_connected"] == 1 })
		return s
	}
	a, b := replica(), replica()
	ids := b.openTokens(10)
	const prices = `query($t: [String!]!) { tokenPrices(tokenIds: $t) { price } }`
	ask := func(s *service, tokens ...string) { s.query(t, prices, vars{"t": tokens}, anonymous) }

	// Replica a reads three prices from the venue. Replica b gets these three prices from Redis, and reads a fourth from the venue.
	// Then replica b requests a price for which replica a has a call in flight.
	ask(a, ids[:3]...)
	eventually(t, "the prices are shared", func() bool { return len(server.Records(t, "*:price:*")) == 3 })
	ask(b, ids[:4]...)
	release := proxy.hold("/api/exchange/prices")
	var both sync.WaitGroup
	both.Go(func() { ask(a, ids[4]) })
	<-proxy.waiting
	both.Go(func() { ask(b, ids[4]) })
	eventually(t, "replica b waits for the call of replica a", func() bool {
		return b.scrape(t).samples[`oddsgraph_shared_cache_claims_total{kind="price",result="theirs"}`] == 1
	})
	release()
	both.Wait()

	var sa, sb *scraped
	eventually(t, "each call to Redis and each replica is counted", func() bool {
		before := callsToRedis(t, commands())
		sa, sb = a.scrape(t), b.scrape(t)
		if sa.samples["oddsgraph_shared_replicas"] != 2 || sb.samples["oddsgraph_shared_replicas"] != 2 {
			return false
		}
		for command, n := range callsToRedis(t, commands()) {
			label := fmt.Sprintf("command=%q", command)
			counted := sa.sum("oddsgraph_shared_calls_total", label) + sb.sum("oddsgraph_shared_calls_total", label)
			if n != before[command] || counted != n || n == 0 {
				return false
			}
		}
		return true
	})
	for _, s := range []*scraped{sa, sb} {
		s.want("oddsgraph_shared_replicas", 2)
		s.want("oddsgraph_shared_replicas_max", 2)
		s.want("oddsgraph_shared_disconnects_total", 0)
		s.want("oddsgraph_shared_hold_seconds", 0)
		s.want("oddsgraph_shared_reserve_left", 47) // half of the 95 calls that two replicas may make
		s.want(`oddsgraph_shared_cache_claims_total{kind="price",result="found"}`, 0)
		for _, command := range []string{"tick", "ask", "get", "claim"} {
			s.want(fmt.Sprintf("oddsgraph_shared_call_duration_seconds_count{command=%q}", command), s.sum("oddsgraph_shared_calls_total", fmt.Sprintf("command=%q", command)))
		}
		s.want(`oddsgraph_shared_grants_total{result="unanswered"}`, 0)
	}
	sa.want(`oddsgraph_shared_cache_requests_total{kind="price",verdict="hit"}`, 0)
	sa.want(`oddsgraph_shared_cache_requests_total{kind="price",verdict="miss"}`, 3+1)
	sb.want(`oddsgraph_shared_cache_requests_total{kind="price",verdict="hit"}`, 3)
	sb.want(`oddsgraph_shared_cache_requests_total{kind="price",verdict="miss"}`, 1+1)
	sa.want(`oddsgraph_shared_cache_claims_total{kind="price",result="ours"}`, 3+1)
	sb.want(`oddsgraph_shared_cache_claims_total{kind="price",result="ours"}`, 1)
	if n := sb.sum("oddsgraph_shared_cache_waits_total", `kind="price"`); n != 1 {
		t.Errorf("replica b waited for %v keys, want 1", n)
	}
	granted := sa.samples[`oddsgraph_shared_grants_total{result="granted"}`] + sb.samples[`oddsgraph_shared_grants_total{result="granted"}`]
	if want := grantedCalls(commands()); granted != want || granted < proxy.total("prices") {
		t.Errorf("the metrics show %v granted calls, but Redis granted %v, and the venue received %v", granted, want, proxy.total("prices"))
	}
	sb.wantBetween("oddsgraph_shared_grants_left", 95-granted, 95-2)

	// The venue refuses a call. Then Redis dies.
	a.setFaults(t, faults.Fault{Path: "/api/exchange/spreads", Kind: faults.Status, Status: http.StatusTooManyRequests, RetryAfter: "60"})
	a.query(t, `query($t: [String!]!) { spreads(tokenIds: $t) { bestAsk } }`, vars{"t": ids[6:7]}, anonymous)
	sa = a.scrape(t)
	sa.wantBetween("oddsgraph_shared_hold_seconds", 1, 60)
	server.Kill()
	eventually(t, "the circuit to Redis opens", func() bool { return a.scrape(t).samples["oddsgraph_shared_connected"] == 0 })
	ask(a, ids[7])
	sa = a.scrape(t)
	sa.want("oddsgraph_shared_connected", 0)
	sa.want("oddsgraph_shared_disconnects_total", 1)
	sa.want("oddsgraph_shared_replicas", 0)
	if n := sa.sum("oddsgraph_shared_calls_total", `result="failed"`) + sa.sum("oddsgraph_shared_calls_total", `result="timeout"`); n < 5 {
		t.Errorf("%v calls to Redis failed before the circuit opened, want 5 or more", n)
	}
	if n := sa.samples[`oddsgraph_shared_calls_total{command="get",result="refused"}`]; n != 1 {
		t.Errorf("the open circuit refused %v lookups, want 1", n)
	}
	sb.check("oddsgraph_shared_calls_total")
	sb.check("oddsgraph_shared_cache_waits_total")
	m.addChecked(sb, "oddsgraph_shared_")
	m.addChecked(sa, "oddsgraph_shared_")
}

// addChecked marks families of metrics in m as checked if other has checked them and their names have the prefix.
func (m *scraped) addChecked(other *scraped, prefix string) {
	for family, checked := range other.checked {
		if strings.HasPrefix(family, prefix) {
			m.checked[family] = m.checked[family] || checked
		}
	}
}

// callsToRedis counts the commands in the output of Redis's MONITOR, by their names in the metrics.
func callsToRedis(t *testing.T, monitor string) map[string]float64 {
	count := func(script, args string) float64 {
		sum := sha1.Sum([]byte(read(t, "internal/fleet/"+script+".lua")))
		return float64(len(regexp.MustCompile(`"EVALSHA" "`+hex.EncodeToString(sum[:])+`" `+args).FindAllString(monitor, -1)))
	}
	calls := map[string]float64{"get": count("claim", `.* "0" "\d{7}" "\d{8}" `)} // this call of the script claims nothing
	for _, name := range []string{"tick", "ask", "end", "claim", "put"} {
		calls[name] = count(name, "")
	}
	calls["claim"] -= calls["get"]
	return calls
}

// grantedCalls counts the public calls to the venue that the scripts in Redis have allowed.
func grantedCalls(monitor string) float64 {
	calls := map[string]bool{}
	for _, found := range regexp.MustCompile(`lua\] "ZADD" "[^"]+:window:public" "\d+" "(\w+\.\w+\.\d+)"`).FindAllStringSubmatch(monitor, -1) {
		calls[found[1]] = true
	}
	return float64(len(calls))
}

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
