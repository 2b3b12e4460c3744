package app

import (
	"context"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/request"
	"oddsgraph/internal/telemetry"
)

// Observer passes the outcome of operations to metrics, log and traces.
type Observer struct {
	Metrics *telemetry.Metrics // nil without metrics
	Log     *telemetry.Operations
	tracer  *telemetry.Tracer // nil without traces
}

// Began implements httpapi.Observer.
func (o *Observer) Began(j *request.Log, hints httpapi.Hints, trusted bool) {
	if o.tracer != nil {
		o.tracer.Began(j, hints.Get("Traceparent"), trusted)
	}
}

// EventFailed implements httpapi.Observer.
func (o *Observer) EventFailed(codes []string) {
	if o.Metrics != nil {
		o.Metrics.EventFailed(codes)
	}
}

// Ended implements httpapi.Observer.
func (o *Observer) Ended(ctx context.Context, j *request.Log) {
	if o.Metrics != nil {
		o.Metrics.Operation(j.Type(), j.Trusted, j.Outcome, j.Rule, j.Elapsed)
	}
	o.Log.Ended(ctx, j)
	if o.tracer != nil {
		o.tracer.Ended(ctx, j)
	}
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
