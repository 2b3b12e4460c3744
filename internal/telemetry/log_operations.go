package telemetry

import (
	"context"
	"encoding/hex"
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
	handler  slog.Handler
	sampled  atomic.Uint64
	sampling sampling
}

// NewOperations returns what logs operations where log does. More than above a second are too many.
func NewOperations(log *slog.Logger, above int) *Operations {
	o := &Operations{handler: log.Handler(), sampling: sampling{lines: linesOf(log), above: int64(above)}}
	if h, ok := o.handler.(*idHandler); ok && h.plain != nil {
		o.handler = h.plain
	}
	return o
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
	if !o.handler.Enabled(ctx, level) {
		return
	}
	now, weight := time.Now(), 1
	if j.Outcome == market.OutcomeOK {
		if weight = o.sampling.weight(now); weight == 0 {
			o.sampled.Add(1)
			return
		}
	}
	r := slog.NewRecord(now, level, "operation", 0)
	var attrs [32]slog.Attr
	list := append(attrs[:0], slog.String("type", j.Type()))
	if j.Asked != nil {
		if j.Asked.Name != "" {
			list = append(list, slog.String("name", j.Asked.Name))
		}
		list = append(list, slog.String("document", j.Asked.Document))
	}
	if j.Trusted != "" {
		list = append(list, slog.String("trusted", j.Trusted))
	}
	list = append(list, slog.String("outcome", j.Outcome))
	if len(j.Codes) > 1 {
		list = append(list, slog.String("codes", strings.Join(j.Codes, ",")))
	}
	list = append(list, slog.Duration("elapsed", j.Elapsed), slog.Int64("cost", j.Points))
	if j.Response != "" {
		list = append(list, slog.String("response", j.Response))
	}
	if j.Compiled() {
		list = append(list, slog.Bool("compiled", true))
	}
	list = appendReads(list, j)
	list = append(list, slog.Int("calls", j.Calls()), slog.Int64("bytes", j.Bytes))
	if j.Events > 0 {
		list = append(list, slog.Int64("events", j.Events))
	}
	if j.Status != 0 {
		list = append(list, slog.Int("status", j.Status))
	}
	list = append(list, slog.String("transport", j.Transport), slog.String("caller", j.Caller))
	if j.Span != nil {
		trace := j.Span.Context().Trace
		list = append(list, slog.String("trace_id", hex.EncodeToString(trace[:])))
	}
	if weight > 1 {
		list = append(list, slog.Int("one_of", weight))
	}
	if of != nil {
		list = append(list, slog.String("request_id", of.id))
	}
	r.AddAttrs(list...)
	_ = o.handler.Handle(ctx, r) // nobody could be told
}

// appendReads appends what the cache has said of all keys.
func appendReads(list []slog.Attr, j *market.Journal) []slog.Attr {
	var sum market.Reads
	for k := range market.Kind(market.Kinds) {
		sum = sum.Plus(j.Reads(k))
	}
	for _, c := range [...]struct {
		name string
		n    uint32
	}{{"hits", sum.Hits}, {"stale", sum.Stale}, {"absent", sum.Absent}, {"misses", sum.Misses}, {"joined", sum.Joined}, {"excused", sum.Excused}} {
		if c.n > 0 {
			list = append(list, slog.Uint64(c.name, uint64(c.n)))
		}
	}
	return list
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
