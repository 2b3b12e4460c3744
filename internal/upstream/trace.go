package upstream

import "fmt"

// TraceContext identifies a span in the form that https://www.w3.org/TR/trace-context/ defines. The zero value identifies no span.
type TraceContext struct {
	Trace [16]byte
	Span  [8]byte
}

// IsZero reports whether c identifies no span.
func (c TraceContext) IsZero() bool { return c == TraceContext{} }

// Traceparent returns the value of the traceparent header for a sampled span.
func (c TraceContext) Traceparent() string {
	return fmt.Sprintf("00-%x-%x-01", c.Trace, c.Span)
}
