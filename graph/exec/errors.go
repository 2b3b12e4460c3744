package exec

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Error is what went wrong at one place of a response. It belongs to the document: do not keep it longer.
type Error struct {
	Err error
	// field is the field that failed, nil for the whole operation.
	field *Field
	// indexes are those of the list elements on the way to the field, and of the element that failed.
	indexes []int
	// ofArgument says that Err is the refusal of an argument, which its path names.
	ofArgument bool
}

// Error implements error.
func (e *Error) Error() string {
	if path := e.Path(); len(path) > 0 {
		return path.String() + ": " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the error without its place.
func (e *Error) Unwrap() error { return e.Err }

// Path returns the place in the response, nil for the whole operation.
func (e *Error) Path() ast.Path { return e.path(func(f *ast.Field) string { return f.Alias }) }

// FieldPath is Path with the names of the fields instead of their keys in the response.
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

// Locations returns where the field stands in the document.
func (e *Error) Locations() []gqlerror.Location {
	if e.field == nil || e.field.field.Position == nil {
		return nil
	}
	return []gqlerror.Location{{Line: e.field.field.Position.Line, Column: e.field.field.Position.Column}}
}

// Argument returns the path of the argument that was refused, "" where none was.
func (e *Error) Argument() string {
	var located *gqlerror.Error
	if !e.ofArgument || !errors.As(e.Err, &located) {
		return ""
	}
	return located.Path.String()
}

// Panic is a panic as an error.
type Panic struct {
	Value any
	Stack []byte
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Recovered returns what recover returned as an error. It is called where the panic is recovered, for the sake of its stack.
func Recovered(p any) error { return &Panic{p, debug.Stack()} }
