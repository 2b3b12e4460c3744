package main

import (
	"context"

	"oddsgraph/internal/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
)

// observer tells the metrics and the log what becomes of operations.
type observer struct {
	metrics *telemetry.Metrics // nil where nothing is measured
	log     *telemetry.Operations
}

// Began implements httpapi.Observer.
func (o *observer) Began(*market.Journal, httpapi.Said) {}

// Ended implements httpapi.Observer.
func (o *observer) Ended(ctx context.Context, j *market.Journal) {
	if o.metrics != nil {
		o.metrics.Operation(j.Type(), j.Trusted, j.Outcome, j.Rule, j.Elapsed)
	}
	o.log.Ended(ctx, j)
}
