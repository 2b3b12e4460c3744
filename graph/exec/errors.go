package exec

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Error is an error of one field of a response, or of the whole operation. Do not retain it for long, because it keeps its
// document in memory.
type Error struct {
	Err error
	// field is the field that failed. It is nil if the whole operation failed.
	field *Field
	// indexes contains the list indexes on the path to the failed field or element, outermost first.
	indexes []int
	// ofArgument reports that an argument is invalid. If ofArgument is set, the path in Err is the path of the argument.
	ofArgument bool
}

// Error implements error.
func (e *Error) Error() string {
	if path := e.Path(); len(path) > 0 {
		return path.String() + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the error without its path.
func (e *Error) Unwrap() error { return e.Err }

// Path returns the path of the error in the response. It is nil if the whole operation failed.
func (e *Error) Path() ast.Path { return e.path(func(f *ast.Field) string { return f.Alias }) }

// FieldPath is like Path, but contains field names instead of aliases.
func (e *Error) FieldPath() ast.Path { return e.path(func(f *ast.Field) string { return f.Name }) }

func (e *Error) path(name func(*ast.Field) string) (path ast.Path) {
	var memory [16]*Field
	fields := memory[:0]
	for f := e.field; f != nil; f = f.parent {
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return nil
	}
	rest := e.indexes
	path = make(ast.Path, 0, len(fields)+len(rest))
	for i, f := range slices.Backward(fields) {
		path = append(path, ast.PathName(name(f.field)))
		n := min(f.lists, len(rest))
		if i == 0 {
			n = len(rest)
		}
		for _, index := range rest[:n] {
			path = append(path, ast.PathIndex(index))
		}
		rest = rest[n:]
	}
	return path
}

// Locations returns the position of the field in the document. It returns nil if the whole operation failed.
func (e *Error) Locations() []gqlerror.Location {
	if e.field == nil || e.field.field.Position == nil {
		return nil
	}
	return []gqlerror.Location{{Line: e.field.field.Position.Line, Column: e.field.field.Position.Column}}
}

// Argument returns the path of the invalid argument. It returns "" if the error is not about an argument.
func (e *Error) Argument() string {
	var located *gqlerror.Error
	if !e.ofArgument || !errors.As(e.Err, &located) {
		return ""
	}
	return located.Path.String()
}

// Panic is a recovered panic with its stack.
type Panic struct {
	Value any
	Stack []byte
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Recovered converts a recovered value to an error. Call it in the deferred function, so that the stack shows where the panic
// occurred.
func Recovered(p any) error { return &Panic{p, debug.Stack()} }
