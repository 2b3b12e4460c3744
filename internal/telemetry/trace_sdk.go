package telemetry

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// sdkEar hears what OpenTelemetry says of itself, which quotes the variables that it can't read, and so may hold secrets:
// no value of it is kept. Until it is opened it collects what is wrong with the environment, from then on it tells the log.
type sdkEar struct {
	log *slog.Logger

	mu     sync.Mutex
	opened bool
	// variables is how the names of the variables begin that are being read.
	variables []string
	wrong     []string
}

// listenToSDK makes the ear the one that OpenTelemetry speaks to.
func listenToSDK(log *slog.Logger) *sdkEar {
	e := &sdkEar{log: log}
	otel.SetLogger(logr.New(e))
	otel.SetErrorHandler(e)
	return e
}

// reading tells how the names of the variables begin that are read next.
func (e *sdkEar) reading(variables ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.variables = variables
}

// open ends the collection and returns what was wrong, or nil.
func (e *sdkEar) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened = true; len(e.wrong) > 0 {
		return fmt.Errorf("traces: OpenTelemetry can't use the environment: %s", strings.Join(e.wrong, "; "))
	}
	return nil
}

// hear takes in a message without values. It reports whether it was collected.
func (e *sdkEar) hear(message string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened {
		return false
	}
	var set []string
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && slices.ContainsFunc(e.variables, func(start string) bool { return strings.HasPrefix(name, start) }) {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	if len(set) > 0 {
		message += " (one of " + strings.Join(set, ", ") + ")"
	}
	e.wrong = append(e.wrong, message)
	return true
}

// Handle implements otel.ErrorHandler.
func (e *sdkEar) Handle(err error) {
	if !e.hear("a value is not allowed") {
		e.log.Warn("traces are lost", "error", err)
	}
}

// Init implements logr.LogSink.
func (e *sdkEar) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: 1 is a warning, 4 information, among it numbers that are none.
func (e *sdkEar) Enabled(level int) bool { return level <= 4 }

// Info implements logr.LogSink.
func (e *sdkEar) Info(level int, message string, about ...any) {
	switch name := variable(about); {
	case name != "":
		e.Error(nil, message, name)
	case level <= 1:
		e.Error(nil, message)
	}
}

// Error implements logr.LogSink. Of the error nothing is kept, since it may quote.
func (e *sdkEar) Error(_ error, message string, about ...any) {
	if name := variable(about); name != "" {
		message += " " + name
	}
	if !e.hear(message) {
		e.log.Warn("OpenTelemetry", "says", message)
	}
}

// WithValues implements logr.LogSink.
func (e *sdkEar) WithValues(...any) logr.LogSink { return e }

// WithName implements logr.LogSink.
func (e *sdkEar) WithName(string) logr.LogSink { return e }

// variable returns the name of the variable that a message is about, if it is about one.
func variable(about []any) string {
	if len(about) > 0 {
		if name, _ := about[0].(string); strings.HasPrefix(name, "OTEL_") {
			return name
		}
	}
	return ""
}
