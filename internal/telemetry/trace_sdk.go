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

// otelErrorHandler receives OpenTelemetry's internal messages and errors. Until its method startLogging is called, the handler
// collects the messages and errors as configuration errors. An error may quote the value of an environment variable. The value may
// be secret, so the handler uses only the name of the variable. After the call of startLogging, the handler logs the messages and
// errors.
type otelErrorHandler struct {
	log *slog.Logger

	mu      sync.Mutex
	logging bool
	// OpenTelemetry is now reading the environment variables whose names begin with one of these prefixes.
	prefixes []string
	problems []string
}

// listenToSDK installs the handler in OpenTelemetry.
func listenToSDK(log *slog.Logger) *otelErrorHandler {
	e := &otelErrorHandler{log: log}
	otel.SetLogger(logr.New(e))
	otel.SetErrorHandler(e)
	return e
}

// setPrefixes sets the name prefixes of the environment variables that OpenTelemetry reads next.
func (e *otelErrorHandler) setPrefixes(prefixes ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prefixes = prefixes
}

// startLogging returns the collected errors, or nil. After this call, the handler logs messages and errors.
func (e *otelErrorHandler) startLogging() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.logging = true; len(e.problems) > 0 {
		return fmt.Errorf("traces: OpenTelemetry can't use the environment: %s", strings.Join(e.problems, "; "))
	}
	return nil
}

// collect collects a message and returns true. After a call of startLogging, it collects nothing and returns false. The message
// must not contain values of variables.
func (e *otelErrorHandler) collect(message string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.logging {
		return false
	}
	var set []string
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && slices.ContainsFunc(e.prefixes, func(start string) bool { return strings.HasPrefix(name, start) }) {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	if len(set) > 0 {
		message += " (one of " + strings.Join(set, ", ") + ")"
	}
	e.problems = append(e.problems, message)
	return true
}

// Handle implements otel.ErrorHandler.
func (e *otelErrorHandler) Handle(err error) {
	if !e.collect("a value is not allowed") {
		e.log.Warn("traces are lost", "error", err)
	}
}

// Init implements logr.LogSink.
func (e *otelErrorHandler) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink. Level 1 is a warning, and level 4 is information. OpenTelemetry reports a variable with an
// invalid number at level 4.
func (e *otelErrorHandler) Enabled(level int) bool { return level <= 4 }

// Info implements logr.LogSink. It logs or collects warnings, and messages that name a variable. It ignores all other messages.
func (e *otelErrorHandler) Info(level int, message string, keysAndValues ...any) {
	switch name := variable(keysAndValues); {
	case name != "":
		e.Error(nil, message, name)
	case level <= 1:
		e.Error(nil, message)
	}
}

// Error implements logr.LogSink. It ignores the parameter of type error, because this error may quote values of variables.
func (e *otelErrorHandler) Error(_ error, message string, keysAndValues ...any) {
	if name := variable(keysAndValues); name != "" {
		message += " " + name
	}
	if !e.collect(message) {
		e.log.Warn("OpenTelemetry", "says", message)
	}
}

// WithValues implements logr.LogSink.
func (e *otelErrorHandler) WithValues(...any) logr.LogSink { return e }

// WithName implements logr.LogSink.
func (e *otelErrorHandler) WithName(string) logr.LogSink { return e }

// variable returns the name of the variable that a message is about, or "".
func variable(keysAndValues []any) string {
	if len(keysAndValues) > 0 {
		if name, _ := keysAndValues[0].(string); strings.HasPrefix(name, "OTEL_") {
			return name
		}
	}
	return ""
}
