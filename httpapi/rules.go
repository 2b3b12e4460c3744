package httpapi

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// validationRules returns the specification's rules in the order of their names, and those that the library leaves out: for
// literals of the graph's own scalars, and against introspection where that is switched off. Without suggestions no rule names
// what may have been meant, from which the schema could be read.
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
