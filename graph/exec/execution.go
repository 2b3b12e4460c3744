package exec

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// Execution is one pass over an operation, and the context of its resolvers. It belongs to one goroutine and is reused
// afterwards, so nobody may keep it.
type Execution struct {
	context.Context
	// Buf is the response so far. Generated code appends to it.
	Buf []byte
	// Limit is the length of Buf beyond which generated code asks Full before it writes a field.
	Limit int

	// room bounds the response, which begins at start of Buf and has so many bytes of errors beside. full says that it has
	// become too large, so that nothing more is written.
	room                Room
	start, errorsInSize int
	full                bool

	variables map[string]any
	// arguments holds the decoded arguments of fields by slot, or a refusal.
	arguments []any
	// field is the field whose resolver runs.
	field *Field
	// indexes are the indexes of the list elements that contain the present object, outermost first.
	indexes []int
	errs    []Error
	// taken is memory for the indexes of errors.
	taken []int
	// slabs hold a *slab for each type whose values were made.
	slabs []interface{ empty() }
}

// executions are reused with their slabs, whose memory is near the processor then.
var executions = sync.Pool{New: func() any { return &Execution{} }}

// release ends the use of an execution.
func (x *Execution) release() {
	for _, s := range x.slabs {
		s.empty()
	}
	clear(x.arguments)
	clear(x.errs)
	*x = Execution{slabs: x.slabs, arguments: x.arguments[:0], indexes: x.indexes[:0], errs: x.errs[:0]}
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

// From returns the execution that a resolver's context belongs to, or nil.
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

// Enter notes the field whose resolver is about to run, and returns the context for it.
func (x *Execution) Enter(f *Field) context.Context {
	x.field = f
	return x
}

// Report implements Reporter for the field whose resolver runs.
func (x *Execution) Report(err error) { x.add(x.field, err) }

// ReportAt implements Reporter.
func (x *Execution) ReportAt(index int, err error) {
	x.Enlist()
	x.Element(index)
	x.add(x.field, err)
	x.Unlist()
}

// Reporter takes the errors that a resolver reports beside its value. An Execution is one.
type Reporter interface {
	// Report adds an error to the field, ReportAt to one element of its list.
	Report(err error)
	ReportAt(index int, err error)
}

type reporterKey struct{}

// WithReporter returns a context for a resolver that another executor calls.
func WithReporter(ctx context.Context, r Reporter) context.Context {
	return context.WithValue(ctx, reporterKey{}, r)
}

// reporter returns the reporter of a resolver's context.
func reporter(ctx context.Context) Reporter {
	if x := From(ctx); x != nil {
		return x
	}
	return ctx.Value(reporterKey{}).(Reporter)
}

// Report adds an error to the field that the resolver with this context is for. The field has its value nevertheless.
func Report(ctx context.Context, err error) { reporter(ctx).Report(err) }

// ReportAt is Report for one element of the list that the resolver returns.
func ReportAt(ctx context.Context, index int, err error) { reporter(ctx).ReportAt(index, err) }

// Error adds an error to a field, which has no value then.
func (x *Execution) Error(f *Field, err error) { x.add(f, err) }

func (x *Execution) add(f *Field, err error) {
	if x.full {
		return
	}
	x.errorsInSize += errorSize
	x.Limit -= errorSize
	from := len(x.taken)
	x.taken = append(x.taken, x.indexes...)
	x.errs = append(x.errs, Error{Err: err, field: f, indexes: x.taken[from:len(x.taken):len(x.taken)]})
}

// errNull is the error of a value that is null where the schema allows none.
var errNull = errors.New("must not be null")

// Missing adds an error to a field that is null where the schema does not allow it, unless an error at the field or below it
// says why.
func (x *Execution) Missing(f *Field) {
	if x.full {
		return
	}
	for i := range x.errs {
		if e := &x.errs[i]; e.field.isBelow(f) && len(e.indexes) >= len(x.indexes) && slices.Equal(e.indexes[:len(x.indexes)], x.indexes) {
			return
		}
	}
	x.add(f, errNull)
}

// Enlist begins a list of objects. Element says which of them follows, Unlist ends the list.
func (x *Execution) Enlist() { x.indexes = append(x.indexes, 0) }

// Element begins the element with an index.
func (x *Execution) Element(index int) { x.indexes[len(x.indexes)-1] = index }

// Unlist ends a list.
func (x *Execution) Unlist() { x.indexes = x.indexes[:len(x.indexes)-1] }

// refusal stands for arguments that can't be decoded.
type refusal struct{ err error }

// Arguments returns a field's decoded arguments. Where they are refused it adds the error to the field and returns nil.
func (x *Execution) Arguments(f *Field) any {
	if f.slot < 0 {
		return f.arguments
	}
	if x.arguments[f.slot] == nil {
		x.arguments[f.slot] = f.decode(x)
	}
	if r, refused := x.arguments[f.slot].(refusal); refused {
		x.add(f, r.err)
		if !x.full {
			x.errs[len(x.errs)-1].ofArgument = true
		}
		return nil
	}
	return x.arguments[f.slot]
}

// Object is the state of an object that is being written.
type Object struct {
	// Next is the index of the field that is written.
	Next int
	// start and value are where the object and the value of the present field begin in the response.
	start, value int
	// depth is how many lists contain the object.
	depth int
	null  bool
}

// Open begins an object.
func (x *Execution) Open() Object { return Object{start: len(x.Buf), depth: len(x.indexes)} }

// Field begins a field of an object.
func (x *Execution) Field(o *Object, f *Field) {
	x.Buf = append(x.Buf, f.Key...)
	o.value = len(x.Buf)
}

// Nullify makes the object null, since a field is null that must not be. The other fields are executed nevertheless.
func (o *Object) Nullify() { o.null = true }

// Close ends an object and reports whether there is one. A null is left for the caller to write.
func (x *Execution) Close(s *Selection, o *Object) bool {
	if o.null {
		x.Buf = x.Buf[:o.start]
		return false
	}
	if len(s.Fields) == 0 {
		x.Buf = append(x.Buf, '{')
	}
	x.Buf = append(x.Buf, '}')
	return true
}

// Recover, deferred around the writing of an object's fields, turns a panic into an error of the field that was written.
func (x *Execution) Recover(s *Selection, o *Object) {
	p := recover()
	if p == nil {
		return
	}
	f := &s.Fields[o.Next]
	x.indexes = x.indexes[:max(o.depth, min(len(x.indexes), o.depth+f.lists))]
	x.add(f, Recovered(p))
	x.indexes = x.indexes[:o.depth]
	x.Buf = x.Buf[:o.value]
	if f.nonNull {
		o.Nullify()
	} else {
		x.Null()
	}
	o.Next++
}

// Null writes null.
func (x *Execution) Null() { x.Buf = append(x.Buf, "null"...) }

// Marshal writes a value by its own marshaler. It reports false, and writes nothing, for null.
func (x *Execution) Marshal(m graphql.Marshaler) bool {
	if m == graphql.Null {
		return false
	}
	m.MarshalGQL(writer{x})
	return true
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
