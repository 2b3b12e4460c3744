package telemetry

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"oddsgraph/internal/request"
)

// TestOnlyTrustedSpansDecideSampling checks that a sampled parent span causes sampling only if the parent span is trusted.
func TestOnlyTrustedSpansDecideSampling(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	tracer, err := OpenTracer("test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{true, false} {
		j := &request.Log{Operation: request.Operation{Started: time.Now()}}
		tracer.Began(j, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", trusted)
		if got := j.Span != nil; got != trusted {
			t.Errorf("trusted %v: sampled %v, want %v", trusted, got, trusted)
		}
	}
}
