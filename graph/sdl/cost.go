package sdl

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// Cost is the cost of one field of one object.
type Cost struct {
	// Once is the cost of reading the field, in points. Each is the additional cost of each value that the field returns, in points.
	Once, Each int64
	// Items is the number of values that the field returns. Page is set for a field that returns a connection. It is the number of
	// items in each list of the connection.
	Items, Page Size
}

// Size is a number of items. If Argument is not empty, the number is the value of the field's argument with this name, or the
// length of the value if the value is a list. If Argument is empty, the number is Fixed. The zero Size means that the number is
// unknown.
type Size struct {
	Argument string
	Fixed    int64
}

func (s Size) known() bool { return s != Size{} }

const costHead = `"Points of each value: of the field, of each item of its list, or of a value of the type. Objects cost 1 by default."
directive @cost(weight: String!) on FIELD_DEFINITION | SCALAR | ENUM

"""
The number of items of the field, or of the lists ` + "`sizedFields`" + ` below the field. It is the number in one of the arguments
` + "`slicingArguments`" + `, or the length of this argument if it is a list. Without such an argument it is ` + "`assumedSize`" + `.
"""
directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION

`

// costs adds @cost and @listSize to the fields of all object types, and @cost to the scalars and enums that such fields return.
func (a *annotation) costs(costOf func(field string) Cost) {
	for _, def := range a.doc.Definitions {
		switch def.Kind {
		case ast.Scalar, ast.Enum:
			if a.isOutput(def.Name) {
				def.Directives = append(def.Directives, directive("cost", "weight", "1"))
			}
		case ast.Object:
			for _, f := range def.Fields {
				a.cost(f, costOf(def.Name+"."+f.Name))
			}
		}
	}
}

// isOutput reports whether the schema has an object type with a field of the named type.
func (a *annotation) isOutput(name string) bool {
	for _, def := range a.schema.Types {
		if def.Kind == ast.Object && !def.BuiltIn && slices.ContainsFunc(def.Fields, func(f *ast.FieldDefinition) bool { return f.Type.Name() == name }) {
			return true
		}
	}
	return false
}

// cost adds @cost and @listSize to a field if the field needs them.
func (a *annotation) cost(f *ast.FieldDefinition, c Cost) {
	to := a.schema.Types[f.Type.Name()]
	leaf, list := to.IsLeafType(), f.Type.Elem != nil
	weight := c.Once + c.Each
	switch {
	case list && leaf && !c.Items.known():
		c.Items = Size{Fixed: 1} // a list of scalars counts as one value
	case list && c.Items.Fixed > 1: // tools multiply the weight by the number of items, so Once is divided by this number, rounded up
		weight = c.Each + (c.Once+c.Items.Fixed-1)/c.Items.Fixed
	case !list && c.Items.Fixed > 1: // a single value that costs as much as several values, such as a long text
		weight = c.Once + c.Each*c.Items.Fixed
	}
	if weight != 1 || leaf && to.BuiltIn {
		f.Directives = append(f.Directives, directive("cost", "weight", strconv.FormatInt(weight, 10)))
	}
	switch {
	case list && c.Items.known():
		f.Directives = append(f.Directives, c.Items.directive(f, nil))
	case c.Page.known():
		f.Directives = append(f.Directives, c.Page.directive(f, a.listFields(to)))
	}
}

// listFields returns the names of a type's fields whose values are lists of objects.
func (a *annotation) listFields(def *ast.Definition) (fields []string) {
	for _, f := range def.Fields {
		if f.Type.Elem != nil && a.schema.Types[f.Type.Name()].Kind == ast.Object {
			fields = append(fields, f.Name)
		}
	}
	return fields
}

// directive returns the @listSize of a field.
func (s Size) directive(f *ast.FieldDefinition, sized []string) *ast.Directive {
	var arguments []any
	if s.Fixed > 0 {
		arguments = append(arguments, "assumedSize", s.Fixed)
	}
	if s.Argument != "" {
		if d := f.Arguments.ForName(s.Argument).DefaultValue; d != nil && d.Kind == ast.IntValue {
			n, _ := strconv.ParseInt(d.Raw, 10, 64)
			arguments = append(arguments, "assumedSize", n)
		}
		arguments = append(arguments, "slicingArguments", []string{s.Argument})
	}
	if sized != nil {
		arguments = append(arguments, "sizedFields", sized)
	}
	if s.Argument != "" {
		arguments = append(arguments, "requireOneSlicingArgument", false)
	}
	return directive("listSize", arguments...)
}
