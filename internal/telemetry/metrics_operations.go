package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxNames bounds the number of trusted documents that have their own label value.
const maxNames = 100

// kinds are the kinds of operations. A request that was refused before its document was parsed has the kind unknown.
var kinds = map[string]bool{"query": true, "mutation": true, "subscription": true, "unknown": true}

type operations struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	events   *prometheus.CounterVec

	names, codes, rules boundedLabel
}

func (o *operations) register(m *Metrics) {
	o.total = m.counter("oddsgraph_operations_total", "GraphQL operations that have ended, including refused ones, by type, name of the trusted document and outcome.", "type", "name", "outcome")
	o.duration = m.histogram("oddsgraph_operation_duration_seconds", "Time from reading a GraphQL operation to its response, without subscriptions.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "type", "name")
	o.refused = m.counter("oddsgraph_guard_rejections_total", "Operations that were refused because they exceed a limit, by rule.", "rule")
	o.events = m.counter("oddsgraph_subscription_event_failures_total", "Subscription events with an error in some field, by code. An event that equal subscriptions share counts once.", "code")
	o.names = boundedLabel{most: maxNames, shape: name}
}

// Operation counts a GraphQL operation and, if it is not a subscription, records its duration. kind is "query", "mutation",
// "subscription" or "unknown". name is the name of a trusted document, or "". code is "ok", "cancelled" or the code of the first
// error. rule is the name of the limit that the operation exceeded, or "".
func (m *Metrics) Operation(kind, name, code, rule string, elapsed time.Duration) {
	o := &m.operations
	if !kinds[kind] {
		kind = other
	}
	if name != "" {
		name = o.names.label(name)
	}
	o.total.WithLabelValues(kind, name, o.codes.label(code)).Inc()
	if kind != "subscription" { // its duration depends on the client
		o.duration.WithLabelValues(kind, name).Observe(elapsed.Seconds())
	}
	if rule != "" {
		o.refused.WithLabelValues(o.rules.label(rule)).Inc()
	}
}

// EventFailed counts a subscription event that contains errors, once under each of its error codes. The codes must be distinct.
func (m *Metrics) EventFailed(codes []string) {
	for _, code := range codes {
		m.operations.events.WithLabelValues(m.operations.codes.label(code)).Inc()
	}
}
