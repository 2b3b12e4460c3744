package telemetry

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Metrics are the service's metrics in their own Prometheus registry. They are safe for concurrent use.
//
// The methods of Metrics count frequent events. Each label of these metrics has a bounded number of values; further values are
// counted as "other". Register adds metrics that other packages count. The registry reads such metrics at each scrape.
type Metrics struct {
	registry   *prometheus.Registry
	registerer prometheus.Registerer

	operations operations
	venue      venueCalls
	stream     Stream
	shared     sharedCalls
}

// NewMetrics returns the metrics of operations, the Go runtime and the process. It also adds a metric with the version.
func NewMetrics(version string) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{registry: registry, registerer: registry}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.gauge("oddsgraph_build_info", "What runs; always 1.", prometheus.Labels{"version": version, "goversion": runtime.Version()}).Set(1)
	m.operations.register(m)
	return m
}

// ForVenue returns metrics in the registry of m: those of calls to a venue, its stream, and calls to Redis. They have the label venue,
// unless name is empty.
func (m *Metrics) ForVenue(name string) *Metrics {
	of := &Metrics{registry: m.registry, registerer: m.registry}
	if name != "" {
		of.registerer = prometheus.WrapRegistererWith(prometheus.Labels{"venue": name}, m.registry)
	}
	of.venue.register(of)
	of.stream.register(of)
	of.shared.register(of)
	return of
}

// Handler serves the metrics in the format that the request accepts.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(prometheus.GathererFunc(m.gather), promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// ofRuntime are the metrics of the Go runtime and of the process that the dashboard, the alerts or the documents use.
var ofRuntime = map[string]bool{
	"go_gc_duration_seconds": true, "go_goroutines": true, "go_memstats_alloc_bytes_total": true, "go_memstats_heap_alloc_bytes": true,
	"go_memstats_heap_inuse_bytes": true, "go_memstats_mallocs_total": true, "go_memstats_stack_inuse_bytes": true,
	"process_cpu_seconds_total": true, "process_max_fds": true, "process_open_fds": true, "process_resident_memory_bytes": true,
	"process_start_time_seconds": true,
}

func (m *Metrics) gather() ([]*dto.MetricFamily, error) {
	all, err := m.registry.Gather()
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool {
		return !strings.HasPrefix(f.GetName(), "oddsgraph_") && !ofRuntime[f.GetName()]
	}), err
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registerer.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string, labels prometheus.Labels) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	m.registerer.MustRegister(g)
	return g
}

// histogram returns a metric that is both a classic and a native histogram. The configuration of Prometheus decides which of them
// Prometheus reads.
func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	m.registerer.MustRegister(h)
	return h
}
