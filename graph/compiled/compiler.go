// Package compiled answers queries straight from what is in memory.
//
// An operation's selections are compiled once, to a tree of numbered fields with their keys encoded and their arguments
// decoded, and executed by generated code that calls the same resolvers and fields as gqlgen's and appends JSON to a
// buffer. It runs on the caller's goroutine, one field after the other, so it is for resolvers that do not wait. What is not in
// memory takes several attempts, see Attempt.
//
// It knows the good case only. A resolver's error, a null where the schema has none, arguments that are refused, a panic, a
// construct that it does not know: each ends the execution without a result, and the operation is to be executed by gqlgen.
// So what an error, its path and the null that it leaves look like is for gqlgen alone to say.
package compiled

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
)

// Typename is the number of the field __typename in every object type.
const Typename = 0

// Type is what the generated code knows of a type.
type Type struct {
	// Fields are those of an object type that it can write, by name.
	Fields map[string]FieldOf
	// Possible are the object types that it tells apart in an abstract type. Selections on them are in this order.
	Possible []string
}

// FieldOf is a field of an object type as the generated code knows it.
type FieldOf struct {
	// Number tells the field from the others of its type. It is greater than Typename.
	Number int
	// Arguments decodes the field's arguments to the form in which the generated code wants them; nil where it takes none.
	Arguments func(ctx context.Context, raw map[string]any) (any, error)
	// New returns the same without any argument given, and Set decodes one into it that is not null. It reports whether it did:
	// what it does not know, or refuses, is for Arguments. They save the maps, and are nil where nothing is known.
	New func(x *Execution) any
	Set func(to any, name string, value any) bool
}

// Compiler compiles the operations of a schema. It is safe for concurrent use.
type Compiler struct {
	schema *ast.Schema
	types  map[string]Type
	query  func(*Execution, *Selection)
	// satisfies are the type conditions that each object type meets.
	satisfies map[string][]string
}

// NewCompiler returns a compiler for a schema, of which the generated code knows types and writes the root of a query.
func NewCompiler(schema *ast.Schema, types map[string]Type, query func(*Execution, *Selection)) *Compiler {
	c := &Compiler{schema: schema, types: types, query: query, satisfies: make(map[string][]string, len(types))}
	for name := range types {
		names := []string{name}
		for _, abstract := range schema.GetImplements(schema.Types[name]) {
			names = append(names, abstract.Name)
		}
		c.satisfies[name] = names
	}
	return c
}

// Knows reports whether the field of an object type can be compiled.
func (c *Compiler) Knows(object, field string) bool {
	_, ok := c.types[object].Fields[field]
	return ok
}
