// Package telemetry provides the service's log, traces and metrics. The log redacts secrets. The labels of the metrics that the
// package counts itself have a bounded number of values.
package telemetry
