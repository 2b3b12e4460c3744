package app

import (
	"context"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/request"
	"oddsgraph/internal/telemetry"
)

// Observer returns an observer that passes the outcome of operations to metrics, log and traces. metrics and tracer may be nil.
func Observer(metrics *telemetry.Metrics, log *telemetry.Operations, tracer *telemetry.Tracer) (o httpapi.Observer) {
	o.Ended = func(ctx context.Context, j *request.Log) {
		if metrics != nil {
			metrics.Operation(j.Type(), j.Trusted, j.Outcome, j.Rule, j.Elapsed)
		}
		log.Ended(ctx, j)
		if tracer != nil {
			tracer.Ended(ctx, j)
		}
	}
	if metrics != nil {
		o.EventFailed = metrics.EventFailed
	}
	if tracer != nil {
		o.Began = func(j *request.Log, hints httpapi.Hints, trusted bool) {
			tracer.Began(j, hints.Get("Traceparent"), trusted)
		}
	}
	return o
}

// SendTraces sends the remaining traces. It gives up after the timeout.
func (s *App) SendTraces(timeout time.Duration) {
	if s.Tracer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := s.Tracer.Close(ctx); err != nil {
		s.log.Warn("traces are lost", "error", err)
	}
}
