package httpapi

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// validationRules returns what makes the specification's rules and those that the library leaves out: for literals of the
// graph's own scalars, and against introspection where it is switched off.
func validationRules(introspection bool) func() *rules.Rules {
	return func() *rules.Rules {
		r := rules.NewDefaultRules()
		r.AddRule("OwnScalars", ownScalars)
		if !introspection {
			r.AddRule("NoIntrospection", noIntrospection)
		}
		return r
	}
}

// noIntrospection refuses to show the schema; __typename stays.
func noIntrospection(observers *core.Events, addError core.AddErrFunc) {
	observers.OnField(func(_ *core.Walker, f *ast.Field) {
		if f.Name == "__schema" || f.Name == "__type" {
			addError(core.Message("introspection is switched off"), core.At(f.Position))
		}
	})
}

// ownScalars keeps the text of numbers that are literals of the graph's own scalars, since the library would read them as
// int64 or float64: a Decimal is exact, and a number that fits neither makes the library panic. Lists and objects, which
// none of the scalars takes, are refused.
func ownScalars(observers *core.Events, addError core.AddErrFunc) {
	observers.OnValue(func(_ *core.Walker, v *ast.Value) {
		if v.Definition == nil || v.Definition.Kind != ast.Scalar || v.Definition.BuiltIn || v.ExpectedType == nil {
			return
		}
		switch v.Kind {
		case ast.IntValue, ast.FloatValue:
			v.Kind = ast.StringValue
		case ast.ListValue:
			if v.ExpectedType.Elem == nil {
				addError(core.Message(`Expected value of type "%s", found a list.`, v.ExpectedType), core.At(v.Position))
			}
		case ast.ObjectValue:
			addError(core.Message(`Expected value of type "%s", found an object.`, v.ExpectedType), core.At(v.Position))
		}
	})
}

// exactEnums refuses variables that spell an enum's value in another case. The library lets them pass, and the graph would
// take them for values that it does not know.
type exactEnums struct{ schema *ast.Schema }

var _ interface {
	graphql.HandlerExtension
	graphql.OperationContextMutator
} = &exactEnums{}

// ExtensionName names the extension.
func (*exactEnums) ExtensionName() string { return "ExactEnums" }

// Validate takes the schema.
func (e *exactEnums) Validate(schema graphql.ExecutableSchema) error {
	e.schema = schema.Schema()
	return nil
}

// MutateOperationContext checks the variables of an operation.
func (e *exactEnums) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	for _, v := range op.Operation.VariableDefinitions {
		if err := e.check(v.Type, op.Variables[v.Variable], ast.Path{ast.PathName("variable"), ast.PathName(v.Variable)}); err != nil {
			errcode.Set(err, errcode.ValidationFailed)
			return err
		}
	}
	return nil
}

func (e *exactEnums) check(t *ast.Type, value any, path ast.Path) *gqlerror.Error {
	switch value := value.(type) {
	case string:
		d := e.schema.Types[t.Name()]
		if d.Kind == ast.Enum && d.EnumValues.ForName(value) == nil {
			return gqlerror.ErrorPathf(path, "%s is not a valid %s", value, d.Name)
		}
	case []string: // made by the library of a single value for a list
		for i, v := range value {
			if err := e.check(t, v, append(path[:len(path):len(path)], ast.PathIndex(i))); err != nil {
				return err
			}
		}
	case []any:
		elem := t.Elem
		if elem == nil {
			return nil
		}
		for i, v := range value {
			if err := e.check(elem, v, append(path[:len(path):len(path)], ast.PathIndex(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, f := range e.schema.Types[t.Name()].Fields {
			if err := e.check(f.Type, value[f.Name], append(path[:len(path):len(path)], ast.PathName(f.Name))); err != nil {
				return err
			}
		}
	}
	return nil
}
