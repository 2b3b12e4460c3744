package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// maxLinks is the maximum number of links of a span. OTEL_SPAN_LINK_COUNT_LIMIT overrides it.
const maxLinks = 2048

// Tracer records operations and their calls to the venue as OpenTelemetry traces. It is safe for concurrent use. Close sends
// the remaining spans.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// OpenTracer returns a tracer that sends traces by OTLP over HTTP in the background. The environment variables of OpenTelemetry
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/) configure the tracer. OpenTracer returns nil
// if these variables request no traces. The tracer logs failures to send.
func OpenTracer(version string, log *slog.Logger) (*Tracer, error) {
	wanted, err := tracesWanted()
	if !wanted || err != nil {
		return nil, err
	}
	otel.SetLogger(logr.Discard()) // messages of OpenTelemetry may quote values of variables
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {
		log.Warn("traces: OpenTelemetry can't use the value of a variable whose name begins with OTEL_")
	}))
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	res, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "oddsgraph"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil { // do not wrap err, because it quotes values of variables
		return nil, errors.Join(errors.New("traces: OTEL_RESOURCE_ATTRIBUTES is not name=value,…"), exporter.Shutdown(context.Background()))
	}
	limits := sdktrace.NewSpanLimits()
	if os.Getenv("OTEL_SPAN_LINK_COUNT_LIMIT") == "" {
		limits.LinkCountLimit = maxLinks
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res), sdktrace.WithRawSpanLimits(limits))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "error", err) }))
	return &Tracer{provider, provider.Tracer("oddsgraph", trace.WithInstrumentationVersion(version))}, nil
}

// tracesWanted reports whether the environment variables name a collector or the exporter otlp, and do not disable traces. It
// returns an error for unsupported settings.
func tracesWanted() (bool, error) {
	first := func(names ...string) (name, value string) {
		for _, name := range names {
			if value := strings.TrimSpace(os.Getenv(name)); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	exporter := strings.TrimSpace(os.Getenv("OTEL_TRACES_EXPORTER"))
	endpointName, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"), exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %.64q; want otlp, none, or nothing", exporter)
	}
	if name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" && protocol != "http/json" {
		return false, fmt.Errorf("%s is %.64q; want http/protobuf or http/json, which a collector takes on port 4318", name, protocol)
	}
	if to, err := url.Parse(endpoint); endpoint != "" && (err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "") {
		return false, fmt.Errorf("%s is no URL of a collector; want one such as http://collector:4318", endpointName) // the value may hold a password
	}
	return true, nil
}

// Close sends the remaining spans until ctx ends. It returns nil if the deadline of ctx has passed before all spans were sent.
func (t *Tracer) Close(ctx context.Context) error {
	// An expired deadline is no error here: the tracer logs failures to send, for example if it cannot reach the collector.
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// operationSpan is the request.Span of an operation.
type operationSpan struct{ trace.Span }

func (s operationSpan) Context() upstream.TraceContext {
	c := s.SpanContext()
	return upstream.TraceContext{Trace: c.TraceID(), Span: c.SpanID()}
}

// contextOf returns the context of a sampled span.
func contextOf(c upstream.TraceContext) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.Trace, SpanID: c.Span, TraceFlags: trace.FlagsSampled})
}

// Began starts the span of an operation if the operation is sampled. If trusted is true, the span in traceparent is the parent. If
// trusted is false, the operation starts a new trace with a link to the span in traceparent, because clients must not control the
// sampling. Began ignores tracestate and baggage, because clients can write anything into them.
func (t *Tracer) Began(j *request.Log, traceparent string, trusted bool) {
	ctx := context.Background()
	options := make([]trace.SpanStartOption, 2, 3)
	options[0], options[1] = trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(j.Started)
	if traceparent != "" {
		remote := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
		if c := trace.SpanContextFromContext(remote); trusted {
			ctx = remote
		} else if c.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: c}))
		}
	}
	_, span := t.tracer.Start(ctx, "graphql", options...)
	if span.SpanContext().IsSampled() {
		j.Span = operationSpan{span}
	}
}

// Ended ends the span of an operation.
func (t *Tracer) Ended(ctx context.Context, j *request.Log) {
	s, ok := j.Span.(operationSpan)
	if !ok {
		return
	}
	name := j.Type()
	if j.Trusted != "" {
		name += " " + j.Trusted
	}
	s.SetName(name)
	attributes := []attribute.KeyValue{
		attribute.String("graphql.operation.type", j.Type()), attribute.String("oddsgraph.outcome", j.Outcome),
		attribute.String("oddsgraph.transport", j.Transport), attribute.String("oddsgraph.caller", j.Caller),
		attribute.Int64("oddsgraph.cost", j.Points), attribute.Int("oddsgraph.upstream.calls", j.Calls()),
		attribute.Int64("oddsgraph.bytes", j.Bytes),
	}
	add := func(key, value string) {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	if j.Info != nil {
		add("graphql.operation.name", j.Info.Name)
		add("oddsgraph.document", j.Info.Document)
	}
	add("oddsgraph.response_cache", j.Response)
	add("oddsgraph.guard.rule", j.Rule)
	add("oddsgraph.request_id", RequestID(ctx))
	if j.Status != 0 {
		attributes = append(attributes, attribute.Int("http.response.status_code", j.Status))
	}
	if j.Events != 0 {
		attributes = append(attributes, attribute.Int64("oddsgraph.events", j.Events))
	}
	s.SetAttributes(attributes...)
	if levelOf(j.Outcome) > slog.LevelInfo {
		s.SetStatus(codes.Error, j.Outcome)
	}
	ended := j.Started.Add(j.Elapsed)
	t.addReads(s, j, ended)
	s.End(trace.WithTimestamp(ended))
}

// addReads adds an event for each kind of data that the operation read, and for each batch that the operation waited for. If the
// operation got the response of another operation, addReads adds a link to that operation.
func (t *Tracer) addReads(s operationSpan, j *request.Log, ended time.Time) {
	for k := range upstream.Kind(upstream.Kinds) {
		if r := j.Counts(k); r != (request.CacheCounts{}) {
			s.AddEvent("cache", trace.WithTimestamp(ended), trace.WithAttributes(
				attribute.String("kind", k.String()), attribute.Int("hits", int(r.Hits)), attribute.Int("stale", int(r.Stale)),
				attribute.Int("absent", int(r.Absent)), attribute.Int("misses", int(r.Misses)), attribute.Int("joined", int(r.Joined)),
				attribute.Int("excused", int(r.Excused))))
		}
	}
	for _, b := range j.Batches() {
		s.AddEvent("batch", trace.WithTimestamp(b.Formed), trace.WithAttributes(batchAttributes(b, attribute.Int("own", b.Own))...))
	}
	if servedBy := j.ServedBy(); servedBy != nil {
		s.AddLink(trace.Link{SpanContext: contextOf(servedBy.Context())})
	}
}

func batchAttributes(b upstream.Batch, more ...attribute.KeyValue) []attribute.KeyValue {
	between := func(from, to time.Time) float64 {
		if from.IsZero() || to.IsZero() {
			return 0
		}
		return to.Sub(from).Seconds()
	}
	if b.Venue != "" {
		more = append(more, attribute.String("venue", b.Venue))
	}
	return append(more,
		attribute.String("kind", b.Kind.String()), attribute.String("priority", b.Priority.String()), attribute.Int("keys", b.Keys),
		attribute.String("outcome", b.Outcome), attribute.Float64("budget.wait", between(b.Formed, b.Admitted)),
		attribute.Float64("queue.wait", between(b.Admitted, b.Left)))
}

// Batch records a span for each call of an ended batch. Each span has links to the operations that waited for the batch. If no
// waiting operation is traced, for example because the batch is a refresh, each span starts a new trace. The sampler may drop this
// trace.
func (t *Tracer) Batch(b upstream.Batch, waited []*request.Log) {
	var links []trace.Link
	var spans []upstream.TraceContext
	for _, j := range waited {
		for _, span := range j.Spans() {
			c := span.Context()
			spans = append(spans, c)
			links = append(links, trace.Link{SpanContext: contextOf(c)})
		}
	}
	for _, x := range b.Calls {
		ctx, parent := context.Background(), x.Trace
		if parent.IsZero() && len(spans) > 0 {
			parent = spans[0]
		}
		if !parent.IsZero() {
			ctx = trace.ContextWithSpanContext(ctx, contextOf(parent))
		}
		_, span := t.tracer.Start(ctx, "GET "+x.Endpoint, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(x.Started), trace.WithLinks(links...))
		if span.IsRecording() {
			span.SetAttributes(batchAttributes(b, attribute.String("http.request.method", "GET"), attribute.String("oddsgraph.endpoint", x.Endpoint),
				attribute.Int("http.response.status_code", x.Status), attribute.Int("oddsgraph.keys", x.Keys),
				attribute.String("oddsgraph.outcome", x.Outcome), attribute.Float64("oddsgraph.wait", x.Waited.Seconds()))...)
			if x.Outcome != request.OutcomeOK {
				span.SetStatus(codes.Error, x.Outcome)
			}
		}
		span.End(trace.WithTimestamp(x.Started.Add(x.Elapsed)))
	}
}
