package main

import (
	"context"

	"oddsgraph/internal/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
)

// observer tells the metrics and the log what becomes of operations.
type observer struct {
	metrics *telemetry.Metrics
	log     *telemetry.Operations
}

// Began implements httpapi.Observer.
func (o *observer) Began(*market.Journal, httpapi.Said) {}

// Ended implements httpapi.Observer.
func (o *observer) Ended(ctx context.Context, j *market.Journal) {
	if j.Type() != "subscription" || j.Outcome != market.OutcomeOK { // the time of a subscription is that of the world
		o.metrics.Operation(j.Type(), j.Outcome, j.Elapsed)
	}
	o.log.Ended(ctx, j)
}
