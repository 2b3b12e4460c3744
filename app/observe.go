package app

import (
	"context"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
)

// Observer tells the metrics, the log and the traces what becomes of operations.
type Observer struct {
	Metrics *telemetry.Metrics // nil where nothing is measured
	Log     *telemetry.Operations
	tracer  *telemetry.Tracer // nil where nothing is traced
}

// Began implements httpapi.Observer.
func (o *Observer) Began(j *market.Journal, said httpapi.Said, trusted bool) {
	if o.tracer != nil {
		o.tracer.Began(j, said.Get("Traceparent"), trusted)
	}
}

// EventFailed implements httpapi.Observer.
func (o *Observer) EventFailed(codes []string) {
	if o.Metrics != nil {
		o.Metrics.EventFailed(codes)
	}
}

// Ended implements httpapi.Observer.
func (o *Observer) Ended(ctx context.Context, j *market.Journal) {
	if o.Metrics != nil {
		o.Metrics.Operation(j.Type(), j.Trusted, j.Outcome, j.Rule, j.Elapsed)
	}
	o.Log.Ended(ctx, j)
	if o.tracer != nil {
		o.tracer.Ended(ctx, j)
	}
}

// SendTraces sends the traces that are left, as long as patience lasts.
func (s *App) SendTraces(patience time.Duration) {
	if s.Tracer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Tracer.Close(ctx); err != nil {
		s.log.Warn("traces are lost", "error", err)
	}
}
