package telemetry

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oddsgraph/internal/upstream"
)

var endpoints = func() map[string]bool {
	names := map[string]bool{}
	for e := range upstream.Endpoint(upstream.Endpoints) {
		names[e.String()] = true
	}
	return names
}()

type venueCalls struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	keys     *prometheus.HistogramVec
	drift    *prometheus.CounterVec

	codes, drifts boundedLabel
}

func (v *venueCalls) register(m *Metrics) {
	v.calls = m.counter("oddsgraph_venue_calls_total", "HTTP calls to the venue, including retries. status is none if there was no response.", "endpoint", "status", "outcome")
	v.duration = m.histogram("oddsgraph_venue_call_duration_seconds", "Time of one HTTP call to the venue.", []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, "endpoint")
	v.keys = m.histogram("oddsgraph_venue_call_keys", "Ids in one HTTP call to the venue.", []float64{1, 2, 5, 10, 20, 30, 40, 50}, "endpoint")
	v.drift = m.counter("oddsgraph_venue_drift_total", "Invalid parts of the venue's responses that were left out, by kind of fault.", "endpoint", "what")
}

// Call counts an HTTP call to the venue. endpoint is the name of an endpoint, or a path that ends with the name. keys is the number
// of ids in the call. status is 0 if there was no response. outcome is "ok", an error code, or another short word.
func (m *Metrics) Call(endpoint string, keys, status int, outcome string, elapsed time.Duration) {
	v, label := &m.venue, endpointLabel(endpoint)
	v.calls.WithLabelValues(label, statusLabel(status), v.codes.label(outcome)).Inc()
	v.duration.WithLabelValues(label).Observe(elapsed.Seconds())
	v.keys.WithLabelValues(label).Observe(float64(keys))
}

// Drift counts a part of a response that was left out because it could not be read.
func (m *Metrics) Drift(endpoint, what string) {
	m.venue.drift.WithLabelValues(endpointLabel(endpoint), m.venue.drifts.label(what)).Inc()
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
	case status == http.StatusOK:
		return "200" // strconv.Itoa would allocate
	case http.StatusText(status) == "":
		return other
	}
	return strconv.Itoa(status)
}
