// Package validation adds to gqlparser what it lacks: rules for documents, and variables that are as strict as literals.
package validation

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Rules returns the rules of the specification, rules that gqlparser lacks, and a rule against introspection
// if introspection is disabled. The rules are sorted by name. If suggestions is true, errors may suggest names, which reveals parts
// of the schema.
func Rules(introspection, suggestions bool) []core.Rule {
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
	list = append(list, core.Rule{Name: "OwnScalars", RuleFunc: ownScalars}, core.Rule{Name: "SubscriptionRoot", RuleFunc: subscriptionRoot})
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

// subscriptionRoot does what the rule Single Root Field of the specification of September 2025 requires and gqlparser's rule lacks.
// It rejects @skip and @include at the root of a subscription, and a field that is selected there under two response keys.
func subscriptionRoot(observers *core.Events, addError core.AddErrFunc) {
	observers.OnOperation(func(w *core.Walker, op *ast.OperationDefinition) {
		if op.Operation != ast.Subscription {
			return
		}
		var first *ast.Field
		seen := map[string]bool{}
		var check func(ast.SelectionSet)
		check = func(set ast.SelectionSet) {
			for _, selection := range set {
				var directives ast.DirectiveList
				var below ast.SelectionSet
				switch s := selection.(type) {
				case *ast.Field:
					directives = s.Directives
					if first == nil {
						first = s
					}
					if s.Name == first.Name && s.Alias != first.Alias {
						addError(core.Message("A subscription selects one field at its root, but this one selects both %s and %s.", first.Alias, s.Alias), core.At(s.Position))
					}
				case *ast.InlineFragment:
					directives, below = s.Directives, s.SelectionSet
				case *ast.FragmentSpread:
					directives = s.Directives
					if f := w.Document.Fragments.ForName(s.Name); f != nil && !seen[s.Name] {
						seen[s.Name] = true
						below = f.SelectionSet
					}
				}
				for _, d := range directives {
					if d.Name == "skip" || d.Name == "include" {
						addError(core.Message("The root of a subscription must not have @%s.", d.Name), core.At(d.Position))
					}
				}
				check(below)
			}
		}
		check(op.SelectionSet)
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
