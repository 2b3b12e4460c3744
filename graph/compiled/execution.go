package compiled

import (
	"context"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// Execution is one execution of an operation, and the context of its resolvers. It belongs to one goroutine, and nobody may
// keep it, since others use it again.
type Execution struct {
	context.Context
	// Buf is the response so far. Generated code appends to it.
	Buf []byte

	variables map[string]any
	// arguments are the decoded arguments of fields, by slot.
	arguments []any
	// field is that whose resolver runs.
	field *Field
	// failed tells that there is no result, patient that the execution goes on nevertheless.
	failed, patient bool
	// slabs hold a *slab for each type of which values were made.
	slabs []interface{ empty() }
}

// executions are used again with their slabs, whose memory is near the processor then.
var executions = sync.Pool{New: func() any { return &Execution{} }}

// release ends the use of an execution.
func (x *Execution) release() {
	for _, s := range x.slabs {
		s.empty()
	}
	clear(x.arguments)
	*x = Execution{slabs: x.slabs, arguments: x.arguments[:0]}
	executions.Put(x)
}

type executionKey struct{}

// Value implements context.Context.
func (x *Execution) Value(key any) any {
	if key == (executionKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// From returns the execution that a resolver's context belongs to, nil where gqlgen executes.
func From(ctx context.Context) *Execution {
	if x, ok := ctx.(*Execution); ok {
		return x
	}
	x, _ := ctx.Value(executionKey{}).(*Execution)
	return x
}

// Selects reports whether a field is selected, under whatever key, of the object that the resolver which runs is to return:
// one of its own, or of what the fields before it on the path hold. It is not for fields of abstract types.
func (x *Execution) Selects(path ...string) bool {
	return x.field != nil && x.field.Sub.selects(path)
}

// SelectsAny reports whether a field at the end of one of the paths is selected, see Selects.
func (x *Execution) SelectsAny(paths [][]string) bool {
	return slices.ContainsFunc(paths, func(path []string) bool { return x.Selects(path...) })
}

// selects reports whether a field is selected at the end of a path. Nothing is selected of nil.
func (s *Selection) selects(path []string) bool {
	if s == nil {
		return false
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.name == path[0] && (len(path) == 1 || f.Sub.selects(path[1:])) {
			return true
		}
	}
	return false
}

// Fail ends the execution without a result, or has it have none though it goes on.
func (x *Execution) Fail() { x.failed = true }

// Failed reports whether the execution has ended without a result.
func (x *Execution) Failed() bool { return x.failed && !x.patient }

// Enter notes the field whose resolver is about to run, and returns the context for it.
func (x *Execution) Enter(f *Field) context.Context {
	x.field = f
	return x
}

// Arguments returns a field's decoded arguments, nil where they are refused.
func (x *Execution) Arguments(f *Field) any {
	if f.slot < 0 {
		return f.arguments
	}
	if x.arguments[f.slot] == nil {
		decoded := f.given(x)
		if decoded == nil {
			var err error
			if decoded, err = f.known.Arguments(x.Context, f.field.ArgumentMap(x.variables)); err != nil {
				x.Fail()
				return nil
			}
		}
		x.arguments[f.slot] = decoded
	}
	return x.arguments[f.slot]
}

// Close ends an object.
func (x *Execution) Close(s *Selection) {
	if len(s.Fields) == 0 {
		x.Buf = append(x.Buf, '{')
	}
	x.Buf = append(x.Buf, '}')
}

// Null writes null.
func (x *Execution) Null() { x.Buf = append(x.Buf, "null"...) }

// Marshal writes a value by its own marshaler. Null is refused where the schema has none.
func (x *Execution) Marshal(m graphql.Marshaler, nonNull bool) {
	if nonNull && m == graphql.Null {
		x.Fail()
		return
	}
	m.MarshalGQL(writer{x})
}

// writer is the response as an io.Writer.
type writer struct{ x *Execution }

func (w writer) Write(p []byte) (int, error) {
	w.x.Buf = append(w.x.Buf, p...)
	return len(p), nil
}

func (w writer) WriteString(s string) (int, error) {
	w.x.Buf = append(w.x.Buf, s...)
	return len(s), nil
}
