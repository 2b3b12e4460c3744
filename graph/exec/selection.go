package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

const (
	// maxFields is the greatest number of fields of a compiled operation. The fields of a fragment count each time the fragment is
	// spread.
	maxFields = 10_000
	// bytesPerField is the approximate size in memory of a compiled field with its key and arguments, in bytes.
	bytesPerField = 256
)

// Selection is the list of selected fields of an object type, in the order of the response and without duplicates.
type Selection struct {
	Fields []Field
}

// Field is a selected field.
type Field struct {
	Number int
	// Key is the JSON before the value: "{" or a comma, the encoded response key, and a colon.
	Key string
	// Sub is the selection on the field's value if the field's type is an object type. Otherwise, Sub is nil.
	Sub *Selection
	// Of is set if the field's type is an interface or union type. It contains a selection for each possible object type, in the order
	// of Type.Possible.
	Of []*Selection

	name string
	// parent is the field whose value contains this field. It is nil for a root field.
	parent *Field
	// lists is the number of nested lists in the field's type.
	lists   int
	nonNull bool
	// arguments contains the decoded arguments if the arguments contain no variables.
	arguments any
	// slot is an index in Execution.arguments if the arguments contain variables or are invalid. In all other cases it is -1.
	slot int
	// argumentsErr is the decoding error of invalid arguments that contain no variables.
	argumentsErr error
	// required are the variables in the arguments whose value must not be null, although their type permits it.
	required   []required
	definition FieldOf
	field      *ast.Field
}

// isWithin reports whether f is the given field or one of its descendants.
func (f *Field) isWithin(other *Field) bool {
	for ; f != nil; f = f.parent {
		if f == other {
			return true
		}
	}
	return false
}

type compilation struct {
	*Compiler
	op     *graphql.OperationContext
	fields int
	slots  int
}

func compileOperation(c *Compiler, doc *ast.QueryDocument, op *ast.OperationDefinition, conditions map[string]any) (*variant, error) {
	run := &compilation{Compiler: c, op: &graphql.OperationContext{Doc: doc, Operation: op, Variables: conditions}}
	object := c.schema.Query
	if op.Operation == ast.Subscription {
		object = c.schema.Subscription
	}
	root, err := run.selection(op.SelectionSet, object.Name, nil)
	if err != nil {
		return nil, err
	}
	return &variant{root: root, slots: run.slots, bytes: run.fields * bytesPerField}, nil
}

var errTooLarge = gqlerror.Errorf("the operation selects more than %d fields", maxFields)

// selection compiles the selection on an object type. parent is nil for root fields. gqlgen collects the fields, so the result has
// the same fields in the same order as in gqlgen's executor.
func (c *compilation) selection(set ast.SelectionSet, object string, parent *Field) (*Selection, error) {
	typ, ok := c.types[object]
	if !ok {
		return nil, fmt.Errorf("type %s is not known", object)
	}
	collected := mergeFields(graphql.CollectFields(c.op, set, c.satisfies[object]))
	if c.fields += len(collected); c.fields > maxFields {
		return nil, errTooLarge
	}
	s := &Selection{Fields: make([]Field, len(collected))}
	for i := range collected {
		s.Fields[i].parent = parent
		if err := c.field(&s.Fields[i], &collected[i], typ); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", object, collected[i].Name, err)
		}
		prefix := ","
		if i == 0 {
			prefix = "{"
		}
		s.Fields[i].Key = prefix + string(AppendString(nil, collected[i].Alias)) + ":"
	}
	return s, nil
}

// mergeFields merges fields with the same response key. gqlgen does not merge two such fields if one of them is selected on a
// union.
func mergeFields(collected []graphql.CollectedField) []graphql.CollectedField {
	indexes := make(map[string]int, len(collected))
	out := make([]graphql.CollectedField, 0, len(collected))
	for _, f := range collected {
		if i, known := indexes[f.Alias]; known {
			out[i].Selections = append(slices.Clip(out[i].Selections), f.Selections...)
			continue
		}
		indexes[f.Alias] = len(out)
		out = append(out, f)
	}
	return out
}

func (c *compilation) field(f *Field, collected *graphql.CollectedField, typ Type) error {
	f.name, f.slot, f.field = collected.Name, -1, collected.Field
	if f.name == "__typename" {
		f.Number = Typename
		return nil
	}
	known, ok := typ.Fields[f.name]
	if !ok {
		return errors.New("the field is not known")
	}
	f.Number, f.definition = known.Number, known
	c.argumentsOf(f)
	f.nonNull = collected.Definition.Type.NonNull
	for t := collected.Definition.Type; t.Elem != nil; t = t.Elem {
		f.lists++
	}
	of := collected.Definition.Type.Name()
	var err error
	switch c.schema.Types[of].Kind {
	case ast.Object:
		f.Sub, err = c.selection(collected.Selections, of, f)
	case ast.Interface, ast.Union:
		f.Of = make([]*Selection, len(c.types[of].Possible))
		for i, name := range c.types[of].Possible {
			if f.Of[i], err = c.selection(collected.Selections, name, f); err != nil {
				return err
			}
		}
	}
	return err
}

// argumentsOf decodes a field's arguments. If the arguments contain variables or are invalid, it assigns a slot instead.
func (c *compilation) argumentsOf(f *Field) {
	if f.definition.Arguments == nil {
		return
	}
	if !slices.ContainsFunc(f.field.Arguments, func(a *ast.Argument) bool { return holdsVariable(a.Value) }) {
		if f.arguments, f.argumentsErr = f.decodeWithGqlgen(context.Background(), nil); f.argumentsErr == nil {
			return
		}
	}
	f.slot = c.slots
	c.slots++
	for _, a := range f.field.Arguments {
		f.required = c.requiredIn(f.required, a.Value, ast.Path{ast.PathName(a.Name)})
	}
}

func holdsVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return holdsVariable(c.Value) })
}
