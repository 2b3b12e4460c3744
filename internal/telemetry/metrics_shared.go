package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type sharedCalls struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func (s *sharedCalls) register(m *Metrics) {
	s.calls = m.counter("oddsgraph_shared_calls_total", "Calls to Redis, by result; refused calls were not sent.", "command", "result")
	s.duration = m.histogram("oddsgraph_shared_call_duration_seconds", "Time of one call to Redis.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}, "command")
}

// SharedCall counts one call to Redis. The parameters command and result have values from fixed sets. The parameter took is the
// duration of the call, or 0 if the call was not sent.
func (m *Metrics) SharedCall(command, result string, took time.Duration) {
	m.shared.calls.WithLabelValues(command, result).Inc()
	if took > 0 {
		m.shared.duration.WithLabelValues(command).Observe(took.Seconds())
	}
}
