package telemetry

import (
	"context"
	"encoding/hex"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// Operations writes the log lines of operations. If many operations succeed in the same second, Operations logs the first of these
// operations and a sample of the rest. While the buffer of the log is more than half full, it logs no successful operations. It
// logs every operation that did not succeed, if the buffer has space for the line. Operations is safe for concurrent use.
type Operations struct {
	log      *slog.Logger
	lines    slog.Handler // writes without redaction
	sampled  atomic.Uint64
	sampling sampling
}

// NewOperations returns an Operations that writes to log, which must come from NewLogger. limit is the number of successful
// operations in a second that are logged before the sampling begins.
func NewOperations(log *slog.Logger, limit int) *Operations {
	h, ok := log.Handler().(*idHandler)
	if !ok {
		panic("telemetry: the logger does not come from NewLogger")
	}
	return &Operations{log: log, lines: h.plain, sampling: sampling{lines: linesOf(log), limit: int64(limit)}}
}

// Sampled returns the number of successful operations that were not logged.
func (o *Operations) Sampled() uint64 { return o.sampled.Load() }

// Ended logs an operation that has ended. It logs nothing if the level of the line is disabled, or if the operation succeeded and
// is not in the sample.
func (o *Operations) Ended(ctx context.Context, j *request.Log) {
	req := request.From(ctx)
	if req.Line != nil && j.Transport != "websocket" { // a WebSocket has many operations, and a log line of its own
		req.Line.Logged.Store(true)
	}
	level := levelOf(j.Outcome)
	if !o.log.Enabled(ctx, level) {
		return
	}
	now, weight := time.Now(), 1
	if j.Outcome == request.OutcomeOK {
		if weight = o.sampling.weight(now); weight == 0 {
			o.sampled.Add(1)
			return
		}
	}
	var memory [24]slog.Attr
	attrs := appendOperation(memory[:0], j)
	if weight > 1 {
		attrs = append(attrs, slog.Int("one_of", weight))
	}
	if req.ID != "" {
		attrs = append(attrs, slog.String("request_id", req.ID))
	}
	r := slog.NewRecord(now, level, "operation", 0)
	r.AddAttrs(attrs...)
	_ = o.lines.Handle(ctx, r) // an error of the log cannot be logged
}

func appendOperation(attrs []slog.Attr, j *request.Log) []slog.Attr {
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	number := func(key string, n int64) {
		if n != 0 {
			attrs = append(attrs, slog.Int64(key, n))
		}
	}
	text("type", j.Type())
	if j.Info != nil {
		text("name", j.Info.Name)
		text("document", j.Info.Document)
	}
	text("trusted", j.Trusted)
	text("outcome", j.Outcome)
	if len(j.Codes) > 1 {
		text("codes", strings.Join(j.Codes, ","))
	}
	attrs = append(attrs, slog.Duration("elapsed", j.Elapsed), slog.Int64("cost", j.Points))
	text("response", j.Response)
	var sum request.CacheCounts
	for k := range upstream.Kind(upstream.Kinds) {
		sum = sum.Plus(j.Counts(k))
	}
	number("hits", int64(sum.Hits))
	number("stale", int64(sum.Stale))
	number("absent", int64(sum.Absent))
	number("misses", int64(sum.Misses))
	number("joined", int64(sum.Joined))
	number("excused", int64(sum.Excused))
	attrs = append(attrs, slog.Int("calls", j.Calls()), slog.Int64("bytes", j.Bytes))
	number("events", j.Events)
	number("status", int64(j.Status))
	text("transport", j.Transport)
	text("caller", j.Caller)
	if j.Span != nil {
		trace := j.Span.Context().Trace
		text("trace_id", hex.EncodeToString(trace[:]))
	}
	return attrs
}

// levelOf returns the level of an operation's line: error for an internal error, warning for a failure of the venue, and info for
// all other outcomes.
func levelOf(outcome string) slog.Level {
	switch market.Code(outcome) {
	case market.CodeInternal:
		return slog.LevelError
	case market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
