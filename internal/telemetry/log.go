package telemetry

import (
	"context"
	"encoding/base32"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"

	"oddsgraph/internal/request"
)

// WithRequestID returns a context with the id of a request. Log lines that are written with this context contain the id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return request.With(ctx, func(r *request.Request) { r.ID, r.Line = id, nil })
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string { return request.From(ctx).ID }

// NewRequestID returns 26 random letters and digits with 128 random bits. The id is not a secret.
func NewRequestID() string {
	var random [16]byte
	var id [26]byte
	binary.NativeEndian.PutUint64(random[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(random[8:], rand.Uint64())
	ids.Encode(id[:], random[:])
	return string(id[:])
}

var ids = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewLogger returns a logger that writes lines of JSON if format is "json", and lines of key=value otherwise. It redacts the values
// of attributes and groups with a secret name, such as credentials, authorization, apiKey, password or token. It also redacts texts
// that look like secrets, even in messages and errors. It adds request_id from the context. w must be safe for concurrent use if the
// logger is used concurrently.
func NewLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	handler := func(options *slog.HandlerOptions) slog.Handler {
		if format == "json" {
			return slog.NewJSONHandler(w, options)
		}
		return slog.NewTextHandler(w, options)
	}
	h := handler(&slog.HandlerOptions{Level: level, ReplaceAttr: redact})
	return slog.New(&idHandler{h: h, root: h, writer: w, plain: handler(nil)})
}

// idHandler adds the request id outside of all groups. It stores the calls of WithAttrs and WithGroup. If a line has an id and a
// group, idHandler repeats these calls on a handler that already has the id.
type idHandler struct {
	h, root slog.Handler
	steps   []func(slog.Handler) slog.Handler // the calls that made h from root
	grouped bool                              // true if one of the calls was WithGroup
	writer  io.Writer
	plain   slog.Handler // writes without redaction
}

func (i *idHandler) Enabled(ctx context.Context, l slog.Level) bool { return i.h.Enabled(ctx, l) }

func (i *idHandler) Handle(ctx context.Context, r slog.Record) error {
	id := RequestID(ctx)
	if id == "" {
		return i.h.Handle(ctx, r)
	}
	a := slog.String("request_id", id)
	if !i.grouped {
		r = r.Clone()
		r.AddAttrs(a)
		return i.h.Handle(ctx, r)
	}
	h := i.root.WithAttrs([]slog.Attr{a})
	for _, step := range i.steps {
		h = step(h)
	}
	return h.Handle(ctx, r)
}

func (i *idHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return i.step(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) }, false)
}

func (i *idHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return i
	}
	return i.step(func(h slog.Handler) slog.Handler { return h.WithGroup(name) }, true)
}

func (i *idHandler) step(step func(slog.Handler) slog.Handler, group bool) *idHandler {
	return &idHandler{
		h: step(i.h), root: i.root, grouped: i.grouped || group, writer: i.writer, plain: i.plain,
		steps: append(i.steps[:len(i.steps):len(i.steps)], step),
	}
}
