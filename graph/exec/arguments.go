package exec

import (
	"context"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// required is a variable of a nullable type in a place that must not be null: an argument, an item of a list or a field of an input
// object. Validation permits such a variable if the variable or the place has a default value. But the variable can still be null.
type required struct {
	variable string
	place    ast.Path
}

// requiredIn appends the required variables in a part of an argument.
func (c *compilation) requiredIn(list []required, v *ast.Value, place ast.Path) []required {
	if v.Kind == ast.Variable {
		def := c.op.Operation.VariableDefinitions.ForName(v.Raw)
		if def != nil && !def.Type.NonNull && v.ExpectedType != nil && v.ExpectedType.NonNull {
			list = append(list, required{v.Raw, place})
		}
		return list
	}
	for i, child := range v.Children {
		at := ast.PathElement(ast.PathName(child.Name))
		if v.Kind == ast.ListValue {
			at = ast.PathIndex(i)
		}
		list = c.requiredIn(list, child.Value, append(slices.Clone(place), at))
	}
	return list
}

// decode decodes the field's arguments with the variables of an execution. It returns a refusal if the arguments are invalid.
func (f *Field) decode(x *Execution) any {
	if f.argumentsErr != nil {
		return refusal{f.argumentsErr}
	}
	for _, r := range f.required {
		if value, given := x.variables[r.variable]; given && value == nil {
			return refusal{gqlerror.ErrorPathf(r.place, "cannot be null")}
		}
	}
	if decoded := f.decodeFast(x); decoded != nil {
		return decoded
	}
	decoded, err := f.decodeWithGqlgen(x.Context, x.variables)
	if err != nil {
		return refusal{err}
	}
	return decoded
}

// decodeWithGqlgen decodes the arguments with gqlgen's functions. It recovers from panics, because gqlgen's functions panic if a
// literal is out of range.
func (f *Field) decodeWithGqlgen(ctx context.Context, variables map[string]any) (decoded any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Recovered(p)
		}
	}()
	return f.definition.Arguments(ctx, f.field.ArgumentMap(variables))
}

// decodeFast decodes the arguments one by one with FieldOf.Set. It returns nil if decodeWithGqlgen must decode the arguments. This
// is the case if New and Set are nil, if an argument is null, if Set cannot decode an argument, or if an omitted argument has a
// default.
func (f *Field) decodeFast(x *Execution) any {
	if f.definition.New == nil {
		return nil
	}
	for _, def := range f.field.Definition.Arguments {
		if def.DefaultValue != nil && !f.isGiven(x, def.Name) {
			return nil
		}
	}
	arguments := f.definition.New(x)
	for _, a := range f.field.Arguments {
		if !f.isGiven(x, a.Name) {
			continue
		}
		value, err := a.Value.Value(x.variables)
		if err != nil || value == nil || !f.definition.Set(arguments, a.Name, value) {
			return nil
		}
	}
	return arguments
}

// isGiven reports whether the client gave an argument. An argument whose value is a variable is given only if x has this variable.
func (f *Field) isGiven(x *Execution, name string) bool {
	a := f.field.Arguments.ForName(name)
	if a == nil || a.Value.Kind != ast.Variable {
		return a != nil
	}
	_, given := x.variables[a.Value.Raw]
	return given
}

// Strings converts the value of a variable to a list of strings. ok is false if the value is not a list of strings. gqlgen may be
// able to coerce such a value.
func Strings(v any) (list []string, ok bool) {
	if list, ok = v.([]string); ok {
		return list, true
	}
	values, ok := v.([]any)
	if !ok {
		return nil, false
	}
	list = make([]string, len(values))
	for i, v := range values {
		if list[i], ok = v.(string); !ok {
			return nil, false
		}
	}
	return list, true
}
