package httpapi

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// validationRules returns the rules of the specification, a rule for literals of custom scalars, and a rule against introspection
// if introspection is disabled. The rules are sorted by name. If suggestions is true, errors may suggest names, which reveals parts
// of the schema.
func validationRules(introspection, suggestions bool) []core.Rule {
	var list []core.Rule
	for name, run := range rules.NewDefaultRules().GetInner() {
		list = append(list, core.Rule{Name: name, RuleFunc: run})
	}
	if !suggestions {
		quiet := []core.Rule{
			rules.FieldsOnCorrectTypeRuleWithoutSuggestions, rules.KnownArgumentNamesRuleWithoutSuggestions, rules.KnownTypeNamesRuleWithoutSuggestions,
			rules.ScalarLeafsRuleWithoutSuggestions, rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
		}
		list = slices.DeleteFunc(list, func(r core.Rule) bool {
			return slices.ContainsFunc(quiet, func(q core.Rule) bool { return r.Name == strings.TrimSuffix(q.Name, "WithoutSuggestions") })
		})
		list = append(list, quiet...)
	}
	if !introspection {
		list = append(list, core.Rule{Name: "NoIntrospection", RuleFunc: noIntrospection})
	}
	list = append(list, core.Rule{Name: "OwnScalars", RuleFunc: ownScalars})
	slices.SortFunc(list, func(a, b core.Rule) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// noIntrospection rejects __schema, __type and the _service of a subgraph. __typename stays allowed.
func noIntrospection(observers *core.Events, addError core.AddErrFunc) {
	observers.OnField(func(_ *core.Walker, f *ast.Field) {
		if f.Name == "__schema" || f.Name == "__type" || f.Name == "_service" {
			addError(core.Message("introspection is switched off"), core.At(f.Position))
		}
	})
}

// ownScalars turns number literals of custom scalars into text. gqlparser would parse them as int64 or float64. A Decimal would
// become inexact, and gqlparser would panic for a large number. For custom scalars other than _Any, ownScalars also rejects
// objects. It rejects a list if the type is not a list.
func ownScalars(observers *core.Events, addError core.AddErrFunc) {
	observers.OnValue(func(_ *core.Walker, v *ast.Value) {
		if v.Definition == nil || v.Definition.Kind != ast.Scalar || v.Definition.BuiltIn || v.ExpectedType == nil {
			return
		}
		switch {
		case v.Kind == ast.IntValue, v.Kind == ast.FloatValue:
			v.Kind = ast.StringValue
		case v.Definition.Name == "_Any":
			keepNumbers(v)
		case v.Kind == ast.ListValue && v.ExpectedType.Elem == nil:
			addError(core.Message(`Expected value of type "%s", found a list.`, v.ExpectedType), core.At(v.Position))
		case v.Kind == ast.ObjectValue:
			addError(core.Message(`Expected value of type "%s", found an object.`, v.ExpectedType), core.At(v.Position))
		}
	})
}

// keepNumbers turns all numbers in a literal into text.
func keepNumbers(v *ast.Value) {
	if v.Kind == ast.IntValue || v.Kind == ast.FloatValue {
		v.Kind = ast.StringValue
	}
	for _, child := range v.Children {
		keepNumbers(child.Value)
	}
}
