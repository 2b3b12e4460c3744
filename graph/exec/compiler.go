// Package exec executes queries and subscriptions.
//
// An operation's selections are compiled once, to a tree of numbered fields with their keys encoded and their arguments
// decoded, and executed by generated code that calls the resolvers and appends JSON to a buffer. It runs on the caller's
// goroutine, one field after the other, so it is for resolvers that do not wait: a resolver whose value is not there yet
// returns any error, and the caller executes the operation again when the value has arrived. Each execution is one pass.
//
// A pass always completes. It collects the errors of fields with their paths and locations, and null spreads to the nearest
// object or element that may be null, as the GraphQL specification says.
package exec

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
	query  func(*Execution, *Selection) bool
	// subscribe starts the stream of a root field of subscriptions; nil where the schema has none.
	subscribe func(*Execution, *Field) Events
	// satisfies are the type conditions that each object type meets.
	satisfies map[string][]string
}

// NewCompiler returns a compiler for a schema. types are the types that the generated code knows. query writes the root of a query and
// reports whether it is not null, subscribe starts the stream of a root field of subscriptions.
func NewCompiler(schema *ast.Schema, types map[string]Type, query func(*Execution, *Selection) bool, subscribe func(*Execution, *Field) Events) *Compiler {
	c := &Compiler{schema: schema, types: types, query: query, subscribe: subscribe, satisfies: make(map[string][]string, len(types))}
	for name := range types {
		names := []string{name}
		for _, abstract := range schema.GetImplements(schema.Types[name]) {
			names = append(names, abstract.Name)
		}
		c.satisfies[name] = names
	}
	return c
}

// Schema returns the schema of the operations. The caller must not change it.
func (c *Compiler) Schema() *ast.Schema { return c.schema }
