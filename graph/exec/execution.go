package exec

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// Execution is one pass over an operation. It is also the context of the resolvers. Only one goroutine may use an Execution. Do
// not retain it after the pass, because it is reused.
type Execution struct {
	context.Context
	// Buf contains the part of the response that has been written. Generated code appends to it.
	Buf []byte
	// Limit is the length of Buf above which generated code calls Full before the next field.
	Limit int

	// limiter limits the size of the response. The response begins at Buf[start].
	limiter SizeLimiter
	// errorBytes is the assumed size of the errors, in bytes.
	start, errorBytes int
	// full reports that the response is too large. If full is set, null replaces the data, and no further errors are added.
	full bool

	idPrefix  string
	variables map[string]any
	// arguments contains decoded arguments, or a refusal, at the index Field.slot of each field.
	arguments []any
	// field is the field whose resolver is running.
	field *Field
	// indexes contains the list indexes on the path to the current object, outermost first.
	indexes []int
	errs    []Error
	// errorIndexes contains, for each error, a copy of indexes from the time when the error was added. Error.indexes of each error is
	// a part of errorIndexes.
	errorIndexes []int
	// arenas contains an *arena for each type that Make or MakeList has allocated.
	arenas []interface{ empty() }
}

var executions = sync.Pool{New: func() any { return &Execution{} }}

func (x *Execution) release() {
	for _, s := range x.arenas {
		s.empty()
	}
	clear(x.arguments)
	clear(x.errs)
	*x = Execution{arenas: x.arenas, arguments: x.arguments[:0], indexes: x.indexes[:0], errs: x.errs[:0]}
	executions.Put(x)
}

// From returns the Execution that is a resolver's context. It returns nil if the context is no Execution.
func From(ctx context.Context) *Execution {
	x, _ := ctx.(*Execution)
	return x
}

// Selects reports whether the client selects the field at the end of the path. The path begins below the field whose resolver is
// running. It contains field names, not aliases. Types on the path must be object types.
func (x *Execution) Selects(path ...string) bool {
	return x.field != nil && x.field.Sub.selects(path)
}

// SelectsAny reports whether Selects returns true for at least one of the paths.
func (x *Execution) SelectsAny(paths [][]string) bool {
	return slices.ContainsFunc(paths, func(path []string) bool { return x.Selects(path...) })
}

// selects reports whether s contains the field at the end of the path. It returns false for a nil Selection.
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

// Enter sets the field whose resolver runs next and returns the resolver's context.
func (x *Execution) Enter(f *Field) context.Context {
	x.field = f
	return x
}

// Report implements Reporter.
func (x *Execution) Report(err error) { x.add(x.field, err) }

// ReportAt implements Reporter.
func (x *Execution) ReportAt(index int, err error) {
	x.Enlist()
	x.Element(index)
	x.add(x.field, err)
	x.Unlist()
}

// Reporter receives the errors that a resolver reports in addition to its value. Execution implements it.
type Reporter interface {
	// Report adds an error to the resolver's field.
	Report(err error)
	// ReportAt adds an error to the element at the given index in the field's list.
	ReportAt(index int, err error)
}

// reporting is the context of a resolver that is called without an Execution.
type reporting struct {
	context.Context
	Reporter
}

// WithReporter returns a context for a resolver that is called without an Execution.
func WithReporter(ctx context.Context, r Reporter) context.Context { return reporting{ctx, r} }

// Report adds an error to the field whose resolver runs with ctx. The field keeps its value. ctx must be the context that the resolver
// got.
func Report(ctx context.Context, err error) { ctx.(Reporter).Report(err) }

// ReportAt is like Report, but adds the error to the element at the given index in the field's list.
func ReportAt(ctx context.Context, index int, err error) { ctx.(Reporter).ReportAt(index, err) }

// Error adds an error to a field that has no value.
func (x *Execution) Error(f *Field, err error) { x.add(f, err) }

func (x *Execution) add(f *Field, err error) {
	if x.full {
		return
	}
	x.errorBytes += errorSize
	x.Limit -= errorSize
	from := len(x.errorIndexes)
	x.errorIndexes = append(x.errorIndexes, x.indexes...)
	x.errs = append(x.errs, Error{Err: err, field: f, indexes: x.errorIndexes[from:len(x.errorIndexes):len(x.errorIndexes)]})
}

var errNull = errors.New("must not be null")

// Missing adds an error to a non-null field whose value is null. It does nothing if the field, or a field below it, already has an
// error.
func (x *Execution) Missing(f *Field) {
	if x.full {
		return
	}
	for i := range x.errs {
		if e := &x.errs[i]; e.field.isWithin(f) && len(e.indexes) >= len(x.indexes) && slices.Equal(e.indexes[:len(x.indexes)], x.indexes) {
			return
		}
	}
	x.add(f, errNull)
}

// Enlist begins a list of objects. Call Element before each object and Unlist after the last one.
func (x *Execution) Enlist() { x.indexes = append(x.indexes, 0) }

// Element begins the element at the given index.
func (x *Execution) Element(index int) { x.indexes[len(x.indexes)-1] = index }

// Unlist ends a list.
func (x *Execution) Unlist() { x.indexes = x.indexes[:len(x.indexes)-1] }

// refusal is stored instead of the decoded arguments of a field if the arguments are invalid.
type refusal struct{ err error }

// Arguments returns a field's decoded arguments. If the arguments are invalid, it adds an error to the field and returns nil.
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
	// Next is the index of the current field.
	Next int
	// start is the offset of the object in Buf, and value the offset of the current field's value.
	start, value int
	// depth is the number of lists around the object.
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

// Nullify makes the object null because a non-null field is null. The resolvers of the other fields still run.
func (o *Object) Nullify() { o.null = true }

// Close ends an object. If the object is null, Close removes its text and returns false. The calling function must then write null.
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

// Recover is deferred by the function that writes an object's fields. It converts a panic to an error of the current field.
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

// Marshal writes a value with its own marshaler. For graphql.Null, it writes nothing and returns false.
func (x *Execution) Marshal(m graphql.Marshaler) bool {
	if m == graphql.Null {
		return false
	}
	m.MarshalGQL(writer{x})
	return true
}

type writer struct{ x *Execution }

func (w writer) Write(p []byte) (int, error) {
	w.x.Buf = append(w.x.Buf, p...)
	return len(p), nil
}
