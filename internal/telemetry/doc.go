// Package telemetry provides the service's log, traces and metrics. The log redacts secrets, and the number of metric series
// is bounded.
package telemetry
