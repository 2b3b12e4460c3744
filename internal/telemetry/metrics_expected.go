package telemetry

import (
	"net/http"

	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// Expected are label values that Metrics.Expect adds. A nil list means that the part of the service is not used.
type Expected struct {
	// Endpoints are the endpoints of the venue that the service calls.
	Endpoints []string
	// Disconnects are the reasons for which a connection of the stream is lost.
	Disconnects []string
	// Commands and Results are those of calls to Redis.
	Commands, Results []string
}

var outcomes = []string{
	request.OutcomeOK, request.OutcomeCancelled, string(market.CodeParseFailed), string(market.CodeValidationFailed), string(market.CodeBadUserInput),
	string(market.CodeUnauthenticated), string(market.CodeForbidden), string(market.CodePersistedNotFound), string(market.CodeRateLimited),
	string(market.CodeResponseTooLarge), string(market.CodeUpstreamUnavailable), string(market.CodeUpstreamTimeout),
	string(market.CodeUpstreamBadResponse), string(market.CodeUnsupported), string(market.CodeInternal), string(market.CodeNotFound),
}

// Expect adds the series with the expected labels at 0, because Prometheus does not see an increase from no series to 1. Kinds of
// drift and types of frames are not known in advance, so their metrics begin with the label "other".
func (m *Metrics) Expect(e Expected) {
	v := &m.venue
	for _, endpoint := range e.Endpoints {
		v.calls.WithLabelValues(endpointLabel(endpoint), statusLabel(http.StatusOK), v.codes.label(request.OutcomeOK))
		v.calls.WithLabelValues(endpointLabel(endpoint), statusLabel(0), v.codes.label(string(market.CodeUpstreamUnavailable)))
		v.drift.WithLabelValues(endpointLabel(endpoint), other)
	}
	for _, reason := range e.Disconnects {
		m.stream.lost.WithLabelValues(m.stream.reasons.label(reason))
		m.stream.drift.WithLabelValues(other)
		m.stream.frames.WithLabelValues(other)
	}
	for _, command := range e.Commands {
		for _, result := range e.Results {
			m.shared.calls.WithLabelValues(command, result)
		}
	}
}

// ExpectOperations is like Expect, for the metrics of operations. rules are the limits of operations.
func (m *Metrics) ExpectOperations(rules []string) {
	o := &m.operations
	for _, outcome := range outcomes {
		label := o.codes.label(outcome)
		for _, kind := range []string{"query", "subscription", "unknown"} {
			o.total.WithLabelValues(kind, "", label)
		}
		if outcome != request.OutcomeOK && outcome != request.OutcomeCancelled {
			o.events.WithLabelValues(label)
		}
	}
	for _, rule := range rules {
		o.refused.WithLabelValues(o.rules.label(rule))
	}
}
