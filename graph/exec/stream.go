package exec

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Events are the events of a subscription's root field.
type Events interface {
	// next waits for an event. It returns false when the stream or ctx ends.
	next(ctx context.Context) bool
	// drop forgets the current event, so that it can be garbage collected.
	drop()
	// write writes the current event as the value of the field. It returns false if the field is non-null and its value is null.
	write(x *Execution, f *Field) bool
}

type events[T any] struct {
	from  <-chan T
	event T
	value func(x *Execution, f *Field, event T) bool
}

// EventsOf returns the events of a channel. value writes one event, as Events.write does.
func EventsOf[T any](from <-chan T, value func(x *Execution, f *Field, event T) bool) Events {
	return &events[T]{from: from, value: value}
}

func (e *events[T]) next(ctx context.Context) (ok bool) {
	e.drop()
	select {
	case e.event, ok = <-e.from:
		return ok
	case <-ctx.Done():
		return false
	}
}

func (e *events[T]) drop() {
	var none T
	e.event = none
}

func (e *events[T]) write(x *Execution, f *Field) bool { return e.value(x, f, e.event) }

// Stream is a running subscription. It is not safe for concurrent use.
type Stream struct {
	operation *Operation
	variables map[string]any
	variant   *variant
	events    Events
}

// errRootFields is the error of a subscription that does not select exactly one field, or whose only field is __typename.
var errRootFields = gqlerror.Errorf("must subscribe to exactly one stream")

// Subscribe starts a subscription. The subscription ends when ctx ends. Use Execute for queries.
func (o *Operation) Subscribe(ctx context.Context, variables map[string]any) (*Stream, []Error) {
	v, err := o.variant(variables)
	if err == nil && (len(v.root.Fields) != 1 || v.root.Fields[0].Number == Typename) {
		err = errRootFields
	}
	if err != nil {
		return nil, []Error{{Err: err}}
	}
	s := &Stream{operation: o, variables: variables, variant: v}
	x := &Execution{Context: ctx, variables: variables, arguments: make([]any, v.slots)} // not pooled, because Subscribe returns x.errs
	s.start(x)
	if s.events == nil {
		return nil, x.errs
	}
	return s, nil
}

// start calls the resolver of the root field. It turns a panic into an error of the field.
func (s *Stream) start(x *Execution) {
	f := &s.variant.root.Fields[0]
	defer func() {
		if p := recover(); p != nil {
			x.add(f, Recovered(p))
		}
	}()
	s.events = s.operation.compiler.subscribe(x, f)
}

// Next waits for the next event. It returns false when the stream or ctx ends.
func (s *Stream) Next(ctx context.Context) bool { return s.events.next(ctx) }

// Drop forgets the current event, so that it can be garbage collected before the next event.
func (s *Stream) Drop() { s.events.drop() }

// Execute runs one pass over the current event, like Operation.Execute.
func (s *Stream) Execute(ctx context.Context, buf []byte, limiter SizeLimiter) (data []byte, errs []Error) {
	return s.operation.run(ctx, s.variables, buf, limiter, s.variant, s.write)
}

func (s *Stream) write(x *Execution) bool {
	o := x.Open()
	s.field(x, &o)
	return x.Close(s.variant.root, &o)
}

func (s *Stream) field(x *Execution, o *Object) {
	defer x.Recover(s.variant.root, o)
	f := &s.variant.root.Fields[0]
	x.Field(o, f)
	if !s.events.write(x, f) {
		o.Nullify()
	}
}

// Start returns the context for the resolver of a subscription's root field. This resolver may retain its context, unlike the
// resolvers of other fields.
func (x *Execution) Start(*Field) context.Context { return x.Context }

// Path returns the path of the root field.
func (s *Stream) Path() ast.Path { return ast.Path{ast.PathName(s.variant.root.Fields[0].field.Alias)} }
