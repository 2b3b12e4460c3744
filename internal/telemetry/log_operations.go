package telemetry

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// Operations logs one line for each operation, with all that is known of it. Of those that went well only some have a line
// when there are too many in a second; those that failed have one each, as long as the log has room. It is safe for
// concurrent use.
type Operations struct {
	log      *slog.Logger
	to       io.Writer
	json     bool
	sampled  atomic.Uint64
	sampling sampling
}

// NewOperations returns what logs operations where log does, which is one of NewLogger. More than above a second are too many.
func NewOperations(log *slog.Logger, above int) *Operations {
	h, ok := log.Handler().(*idHandler)
	if !ok {
		panic("telemetry: a logger that is not of NewLogger")
	}
	return &Operations{log: log, to: h.to, json: h.json, sampling: sampling{lines: linesOf(log), above: int64(above)}}
}

// Sampled returns how many operations have no line because there were too many of them.
func (o *Operations) Sampled() uint64 { return o.sampled.Load() }

// Ended logs an operation that is over.
func (o *Operations) Ended(ctx context.Context, j *market.Journal) {
	of := requestFrom(ctx)
	if of != nil && j.Transport != "websocket" { // of which the request is another thing
		of.told.Store(true)
	}
	level := levelOf(j.Outcome)
	if !o.log.Enabled(ctx, level) {
		return
	}
	now, weight := time.Now(), 1
	if j.Outcome == market.OutcomeOK {
		if weight = o.sampling.weight(now); weight == 0 {
			o.sampled.Add(1)
			return
		}
	}
	l, _ := lines.Get().(*line)
	defer lines.Put(l)
	l.json = o.json
	l.begin(now, level, "operation")
	l.operation(j)
	if weight > 1 {
		l.number("one_of", int64(weight))
	}
	if of != nil {
		l.text("request_id", of.id)
	}
	_, _ = o.to.Write(l.end()) // nobody could be told
}

// operation adds what is known of an operation.
func (l *line) operation(j *market.Journal) {
	l.text("type", j.Type())
	if j.Asked != nil {
		if j.Asked.Name != "" {
			l.text("name", j.Asked.Name)
		}
		l.text("document", j.Asked.Document)
	}
	if j.Trusted != "" {
		l.text("trusted", j.Trusted)
	}
	l.text("outcome", j.Outcome)
	if len(j.Codes) > 1 {
		l.text("codes", strings.Join(j.Codes, ","))
	}
	l.duration("elapsed", j.Elapsed)
	l.number("cost", j.Points)
	if j.Response != "" {
		l.text("response", j.Response)
	}
	l.reads(j)
	l.number("calls", int64(j.Calls()))
	l.number("bytes", j.Bytes)
	if j.Events > 0 {
		l.number("events", j.Events)
	}
	if j.Status != 0 {
		l.number("status", int64(j.Status))
	}
	l.text("transport", j.Transport)
	l.text("caller", j.Caller)
	if j.Span != nil {
		trace := j.Span.Context().Trace
		l.text("trace_id", hex.EncodeToString(trace[:]))
	}
}

// reads adds what the cache has said of all keys.
func (l *line) reads(j *market.Journal) {
	var sum market.Reads
	for k := range market.Kind(market.Kinds) {
		sum = sum.Plus(j.Reads(k))
	}
	for _, c := range [...]struct {
		name string
		n    uint32
	}{{"hits", sum.Hits}, {"stale", sum.Stale}, {"absent", sum.Absent}, {"misses", sum.Misses}, {"joined", sum.Joined}, {"excused", sum.Excused}} {
		if c.n > 0 {
			l.number(c.name, int64(c.n))
		}
	}
}

// levelOf returns the level of a line: what the venue or the service itself has failed at is a warning.
func levelOf(outcome string) slog.Level {
	switch market.Code(outcome) {
	case market.CodeInternal:
		return slog.LevelError
	case market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
