package main

import (
	"context"
	"time"

	"oddsgraph/internal/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
)

// observer tells the metrics, the log and the traces what becomes of operations.
type observer struct {
	metrics *telemetry.Metrics // nil where nothing is measured
	log     *telemetry.Operations
	tracer  *telemetry.Tracer // nil where nothing is traced
}

// Began implements httpapi.Observer.
func (o *observer) Began(j *market.Journal, said httpapi.Said, trusted bool) {
	if o.tracer != nil {
		o.tracer.Began(j, said.Get("Traceparent"), trusted)
	}
}

// EventFailed implements httpapi.Observer.
func (o *observer) EventFailed(codes []string) {
	if o.metrics != nil {
		o.metrics.EventFailed(codes)
	}
}

// Ended implements httpapi.Observer.
func (o *observer) Ended(ctx context.Context, j *market.Journal) {
	if o.metrics != nil {
		o.metrics.Operation(j.Type(), j.Trusted, j.Outcome, j.Rule, j.Elapsed)
	}
	o.log.Ended(ctx, j)
	if o.tracer != nil {
		o.tracer.Ended(ctx, j)
	}
}

// sendTraces sends the traces that are left, as long as patience lasts.
func (s *server) sendTraces(patience time.Duration) {
	if s.tracer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.tracer.Close(ctx); err != nil {
		s.log.Warn("traces are lost", "error", err)
	}
}
