package market

import (
	"encoding/hex"
	"math/rand/v2"
)

// Span is an operation's place in a trace. Whoever traces knows more of it.
type Span interface {
	// Context returns where in which trace the span is.
	Context() TraceContext
}

// TraceContext names a span, as https://www.w3.org/TR/trace-context/ does. The zero value names none.
type TraceContext struct {
	Trace [16]byte
	Span  [8]byte
}

// IsZero reports whether no span is named.
func (c TraceContext) IsZero() bool { return c == TraceContext{} }

// Child returns a new name for a span below this one.
func (c TraceContext) Child() TraceContext {
	for i := range 8 {
		c.Span[i] = byte(rand.Uint32())
	}
	c.Span[0] |= 1 // all zeros name none
	return c
}

// Traceparent returns the value of the header traceparent for calls made within the span, which is sampled.
func (c TraceContext) Traceparent() string {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.Span[:])
	return string(append(b, "-01"...))
}
