// Package exec executes queries and subscriptions.
//
// Before an operation is executed, its selections are compiled to a tree of numbered fields. The compilation also encodes response
// keys, and decodes arguments that contain no variables. Generated code calls the resolvers and appends JSON to a buffer.
//
// The resolvers of all fields run one after the other on the goroutine that calls Execute, so they must not block. If a value is
// missing, the resolver returns an error. The caller of Execute then fetches the value and executes the operation again. Each
// execution is called a pass.
//
// Every pass begins with the first field. If the response becomes too large, the pass skips the remaining fields. Errors of fields
// have a path and a location. If a non-null field is null, the nearest nullable parent becomes null, as the GraphQL specification
// says.
package exec

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
)

// Typename is the number of __typename in every object type.
const Typename = 0

// Type describes a type to the compiler. Generated code provides it.
type Type struct {
	Fields map[string]FieldOf
	// Possible contains the names of the object types of an interface or union type. Field.Of has the same order.
	Possible []string
}

// FieldOf describes a field of an object type.
type FieldOf struct {
	// Number is unique within the type and greater than Typename.
	Number int
	// Arguments decodes all arguments of the field to the type that generated code expects. It is nil if the field has no arguments.
	Arguments func(ctx context.Context, raw map[string]any) (any, error)
	// New returns empty arguments for Set. New and Set are faster than Arguments, because they need no map. They are nil if Set
	// could decode none of the arguments.
	New func(x *Execution) any
	// Set decodes one non-null argument into the result of New. If Set returns false, Arguments must decode all arguments instead.
	Set func(to any, name string, value any) bool
}

// Compiler compiles the operations of a schema. It is safe for concurrent use.
type Compiler struct {
	schema *ast.Schema
	types  map[string]Type
	query  func(*Execution, *Selection) bool
	// subscribe starts the stream of a subscription's root field. It is nil if the schema has no subscriptions.
	subscribe func(*Execution, *Field) Events
	// satisfies maps the name of each object type to the type conditions that the type satisfies: its own name, and the names of its
	// interfaces and unions. A fragment applies to an object if the object's type satisfies the fragment's type condition.
	satisfies map[string][]string
	idPrefix  string
}

// SetIDPrefix sets the prefix of every value of type ID. The prefix must contain no characters that JSON escapes. Call SetIDPrefix
// before the first operation.
func (c *Compiler) SetIDPrefix(prefix string) { c.idPrefix = prefix }

// NewCompiler returns a compiler for a schema. types describes the types of the generated code. query writes the root object of a
// query and returns false if the object is null. subscribe starts the stream of a subscription's root field.
func NewCompiler(schema *ast.Schema, types map[string]Type, query func(*Execution, *Selection) bool, subscribe func(*Execution, *Field) Events) *Compiler {
	c := &Compiler{schema: schema, types: types, query: query, subscribe: subscribe, satisfies: make(map[string][]string, len(types))}
	for name := range types {
		def := schema.Types[name]
		if def == nil { // the schema may lack types of the generated code, such as those of federation
			continue
		}
		names := []string{name}
		for _, abstract := range schema.GetImplements(def) {
			names = append(names, abstract.Name)
		}
		c.satisfies[name] = names
	}
	return c
}

// Schema returns the schema of the operations. It must not be changed.
func (c *Compiler) Schema() *ast.Schema { return c.schema }
