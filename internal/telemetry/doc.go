// Package telemetry provides the service's log, traces and metrics. The log redacts secrets. The package counts some metrics
// itself. Each label of these metrics has a bounded number of values.
package telemetry
