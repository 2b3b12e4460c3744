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

// otelErrorHandler receives OpenTelemetry's internal messages and errors. Until its method open is called, the handler collects
// them as configuration errors. Such an error may quote the value of an environment variable. The value may be secret, so the
// handler uses only the name of the variable. After the call of open, the handler logs the messages and errors.
type otelErrorHandler struct {
	log *slog.Logger

	mu     sync.Mutex
	opened bool
	// variables contains prefixes. OpenTelemetry is now reading the environment variables whose names have one of these prefixes.
	variables []string
	wrong     []string
}

// listenToSDK installs the handler in OpenTelemetry.
func listenToSDK(log *slog.Logger) *otelErrorHandler {
	e := &otelErrorHandler{log: log}
	otel.SetLogger(logr.New(e))
	otel.SetErrorHandler(e)
	return e
}

// reading sets the name prefixes of the environment variables that OpenTelemetry reads next.
func (e *otelErrorHandler) reading(variables ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.variables = variables
}

// open returns the collected errors, or nil. After this call, the handler logs messages and errors.
func (e *otelErrorHandler) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened = true; len(e.wrong) > 0 {
		return fmt.Errorf("traces: OpenTelemetry can't use the environment: %s", strings.Join(e.wrong, "; "))
	}
	return nil
}

// hear collects a message and returns true. After a call of open, hear collects nothing and returns false. The message must not
// contain values of variables.
func (e *otelErrorHandler) hear(message string) bool {
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
func (e *otelErrorHandler) Handle(err error) {
	if !e.hear("a value is not allowed") {
		e.log.Warn("traces are lost", "error", err)
	}
}

// Init implements logr.LogSink.
func (e *otelErrorHandler) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink. Level 1 is a warning, and level 4 is information. OpenTelemetry reports a variable with an
// invalid number at level 4.
func (e *otelErrorHandler) Enabled(level int) bool { return level <= 4 }

// Info implements logr.LogSink. It logs or collects warnings, and messages that name a variable. It ignores all other messages.
func (e *otelErrorHandler) Info(level int, message string, about ...any) {
	switch name := variable(about); {
	case name != "":
		e.Error(nil, message, name)
	case level <= 1:
		e.Error(nil, message)
	}
}

// Error implements logr.LogSink. It ignores the parameter of type error, because this error may quote values of variables.
func (e *otelErrorHandler) Error(_ error, message string, about ...any) {
	if name := variable(about); name != "" {
		message += " " + name
	}
	if !e.hear(message) {
		e.log.Warn("OpenTelemetry", "says", message)
	}
}

// WithValues implements logr.LogSink.
func (e *otelErrorHandler) WithValues(...any) logr.LogSink { return e }

// WithName implements logr.LogSink.
func (e *otelErrorHandler) WithName(string) logr.LogSink { return e }

// variable returns the name of the variable that a message is about, or "".
func variable(about []any) string {
	if len(about) > 0 {
		if name, _ := about[0].(string); strings.HasPrefix(name, "OTEL_") {
			return name
		}
	}
	return ""
}
