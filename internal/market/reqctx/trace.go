package reqctx

import (
	"encoding/hex"
	"math/rand/v2"
)

// Span is the span of an operation. The tracer's type implements it.
type Span interface {
	// Context returns the ids of the trace and of the span.
	Context() TraceContext
}

// TraceContext identifies a span in the form that https://www.w3.org/TR/trace-context/ defines. The zero value identifies no span.
type TraceContext struct {
	Trace [16]byte
	Span  [8]byte
}

// IsZero reports whether c identifies no span.
func (c TraceContext) IsZero() bool { return c == TraceContext{} }

// Child returns the context of a child span: the same trace with a new random span id.
func (c TraceContext) Child() TraceContext {
	for i := range 8 {
		c.Span[i] = byte(rand.Uint32())
	}
	c.Span[0] |= 1 // an id of zeros is invalid
	return c
}

// Traceparent returns the value of the traceparent header for a sampled span.
func (c TraceContext) Traceparent() string {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.Span[:])
	return string(append(b, "-01"...))
}
