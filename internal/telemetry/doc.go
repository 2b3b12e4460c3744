// Package telemetry is what an operator sees of the service: a log that shows no secrets, traces, and Prometheus metrics with a
// bounded number of series.
package telemetry
