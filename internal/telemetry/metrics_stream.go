package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Stream counts events of the venue's stream. It is safe for concurrent use.
type Stream struct {
	frames, drift, lost *prometheus.CounterVec
	lag                 prometheus.Observer

	types, drifts, reasons boundedLabel
}

// Stream returns the metrics of the stream.
func (m *Metrics) Stream() *Stream { return &m.stream }

func (s *Stream) register(m *Metrics) {
	s.frames = m.counter("oddsgraph_stream_frames_total", "Frames of the venue's stream, by type. unknown counts frames of unknown types, garbage counts frames that are not JSON.", "type")
	s.drift = m.counter("oddsgraph_stream_drift_total", "Deviations of the venue's stream from its documented protocol, by kind.", "what")
	s.lost = m.counter("oddsgraph_stream_disconnects_total", "Connections of the stream that were lost or could not be opened, by reason.", "reason")
	s.lag = m.histogram("oddsgraph_stream_lag_seconds", "Time from the venue's timestamp of a change to its arrival.",
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}).WithLabelValues()
}

// Frame counts a frame under its type.
func (s *Stream) Frame(kind string) { s.frames.WithLabelValues(s.types.label(kind)).Inc() }

// Drift counts a frame that deviates from the protocol that the venue documents.
func (s *Stream) Drift(what string) { s.drift.WithLabelValues(s.drifts.label(what)).Inc() }

// Reconnect counts a connection that was lost or could not be opened.
func (s *Stream) Reconnect(reason string) { s.lost.WithLabelValues(s.reasons.label(reason)).Inc() }

// Lag records the time from the venue's timestamp of a change to the arrival of the change. A negative time counts as 0.
func (s *Stream) Lag(d time.Duration) { s.lag.Observe(max(d, 0).Seconds()) }
