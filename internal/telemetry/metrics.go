package telemetry

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const other = "other"

// maxLabels bounds the values of a label that is not a fixed set.
const maxLabels = 64

// endpoints are the venue's endpoints by the last part of their path.
var endpoints = map[string]bool{
	"prices": true, "orderbook": true, "price-history": true, "spreads": true, "market-search": true, "market-details": true,
	"balance": true, "positions": true, "orders": true, "trades": true, "history": true,
}

var operations = map[string]bool{"query": true, "mutation": true, "subscription": true}

// Metrics are the service's figures in a Prometheus registry of their own. Its methods may be called at the same time.
// Labels come from fixed or bounded sets, whatever is passed in: what does not fit is counted as "other".
type Metrics struct {
	registry *prometheus.Registry

	venueCalls    *prometheus.CounterVec
	venueDuration *prometheus.HistogramVec
	venueKeys     *prometheus.HistogramVec
	venueDrift    *prometheus.CounterVec
	operations    *prometheus.CounterVec
	duration      *prometheus.HistogramVec

	outcomes, drifts, results bounded
}

// NewMetrics returns a registry with the metrics of the venue client, of operations, of the Go runtime and of the
// process. Those of the cache come with RegisterCache.
func NewMetrics() *Metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry:      prometheus.NewRegistry(),
		venueCalls:    counter("oddsgraph_venue_calls_total", "HTTP calls to the venue, each attempt counted; status is none without an answer.", "endpoint", "status", "outcome"),
		venueDuration: histogram("oddsgraph_venue_call_duration_seconds", "Time of one HTTP call to the venue.", []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "endpoint"),
		venueKeys:     histogram("oddsgraph_venue_call_keys", "Ids asked for in one HTTP call to the venue.", []float64{1, 2, 5, 10, 20, 30, 40, 50}, "endpoint"),
		venueDrift:    counter("oddsgraph_venue_drift_total", "Parts of the venue's answers that could not be used while the rest was, by what was wrong.", "endpoint", "what"),
		operations:    counter("oddsgraph_operations_total", "GraphQL operations, by type and outcome.", "type", "outcome"),
		duration:      histogram("oddsgraph_operation_duration_seconds", "Time of one GraphQL operation.", []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "type"),
	}
	m.registry.MustRegister(m.venueCalls, m.venueDuration, m.venueKeys, m.venueDrift, m.operations, m.duration,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics in the formats that Prometheus asks for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.InstrumentMetricHandler(m.registry, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry: m.registry, EnableOpenMetrics: true, MaxRequestsInFlight: 4,
	}))
}

// Registry is where further collectors are registered.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Call counts one HTTP call to the venue that carried this many ids. endpoint is a path or its last part; status is 0
// when no answer came; outcome is a short word such as ok or an error code.
func (m *Metrics) Call(endpoint string, keys, status int, outcome string, elapsed time.Duration) {
	endpoint = endpointLabel(endpoint)
	m.venueCalls.WithLabelValues(endpoint, statusLabel(status), m.outcomes.label(outcome)).Inc()
	m.venueDuration.WithLabelValues(endpoint).Observe(elapsed.Seconds())
	m.venueKeys.WithLabelValues(endpoint).Observe(float64(keys))
}

// Drift counts a part of an answer that could not be used while the rest was.
func (m *Metrics) Drift(endpoint, what string) {
	m.venueDrift.WithLabelValues(endpointLabel(endpoint), m.drifts.label(what)).Inc()
}

// Operation counts one GraphQL operation. kind is query, mutation or subscription; outcome is a short word such as ok
// or the first error's code.
func (m *Metrics) Operation(kind, outcome string, elapsed time.Duration) {
	if !operations[kind] {
		kind = other
	}
	m.operations.WithLabelValues(kind, m.results.label(outcome)).Inc()
	m.duration.WithLabelValues(kind).Observe(elapsed.Seconds())
}

func endpointLabel(endpoint string) string {
	last := endpoint[strings.LastIndexByte(endpoint, '/')+1:]
	if endpoints[last] {
		return last
	}
	return other
}

func statusLabel(status int) string {
	switch {
	case status == 0:
		return "none"
	case http.StatusText(status) == "":
		return other
	}
	return strconv.Itoa(status)
}

// bounded lets through the first maxLabels different words; its zero value is ready.
type bounded struct {
	mu    sync.RWMutex
	words map[string]string
}

// label returns word in lower case with '_' for what is no letter, digit or '-', or "other" when it comes too late.
func (b *bounded) label(word string) string {
	b.mu.RLock()
	label, ok := b.words[word]
	b.mu.RUnlock()
	if ok {
		return label
	}
	if word == "" || len(word) > 48 {
		return other
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.words) >= maxLabels {
		return other
	}
	if b.words == nil {
		b.words = make(map[string]string, maxLabels)
	}
	label = strings.Map(wordRune, word)
	b.words[strings.Clone(word)] = label
	return label
}

func wordRune(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r | 0x20
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
		return r
	}
	return '_'
}

// CacheStats are the counters of one kind of cached data since the start. Hits, Stale, Misses and NotFound are disjoint
// and count keys by what a look-up gave; NotFound are absences that were remembered. Coalesced are keys that joined a
// call under way. The fields are those of the cache's own statistics in the same order, so that one converts to the other.
type CacheStats struct {
	Kind                                                             string
	Hits, Stale, Misses, NotFound, Coalesced, Calls, Keys, Evictions uint64
	// Entries is the number of entries now.
	Entries int
}

// RegisterCache adds the metrics of the cache, read by snapshot at each scrape. snapshot lists each kind once and may be
// called at the same time. A second call panics.
func (m *Metrics) RegisterCache(snapshot func() []CacheStats) {
	m.registry.MustRegister(cacheCollector(snapshot))
}

type cacheCollector func() []CacheStats

var (
	cacheRequests = prometheus.NewDesc("oddsgraph_cache_requests_total", "Keys looked up in the cache, by what was found; not_found is a remembered absence.", []string{"kind", "verdict"}, nil)
	cacheMetrics  = []struct {
		desc  *prometheus.Desc
		value func(*CacheStats) float64
		kind  prometheus.ValueType
	}{
		{kindDesc("oddsgraph_cache_coalesced_keys_total", "Keys that joined an upstream call that was queued or in flight already."), func(s *CacheStats) float64 { return float64(s.Coalesced) }, prometheus.CounterValue},
		{kindDesc("oddsgraph_cache_upstream_calls_total", "Upstream calls that the cache made."), func(s *CacheStats) float64 { return float64(s.Calls) }, prometheus.CounterValue},
		{kindDesc("oddsgraph_cache_upstream_keys_total", "Keys that the cache asked upstream for."), func(s *CacheStats) float64 { return float64(s.Keys) }, prometheus.CounterValue},
		{kindDesc("oddsgraph_cache_evictions_total", "Entries that left the cache before their time to make room."), func(s *CacheStats) float64 { return float64(s.Evictions) }, prometheus.CounterValue},
		{kindDesc("oddsgraph_cache_entries", "Entries in the cache, remembered absences included."), func(s *CacheStats) float64 { return float64(s.Entries) }, prometheus.GaugeValue},
	}
)

func kindDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"kind"}, nil)
}

// Describe implements prometheus.Collector.
func (c cacheCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- cacheRequests
	for _, m := range cacheMetrics {
		descs <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c cacheCollector) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range c() {
		for _, v := range []struct {
			verdict string
			count   uint64
		}{{"hit", s.Hits}, {"stale", s.Stale}, {"miss", s.Misses}, {"not_found", s.NotFound}} {
			metrics <- prometheus.MustNewConstMetric(cacheRequests, prometheus.CounterValue, float64(v.count), s.Kind, v.verdict)
		}
		for _, m := range cacheMetrics {
			metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s), s.Kind)
		}
	}
}
