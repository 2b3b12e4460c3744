package main

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

type input struct {
	description  string
	of           *ast.Type
	defaultValue *ast.Value
	directives   ast.DirectiveList
}

func argumentOf(a *ast.ArgumentDefinition) *input {
	if a == nil {
		return nil
	}
	return &input{a.Description, a.Type, a.DefaultValue, a.Directives}
}

func inputOf(f *ast.FieldDefinition) *input {
	if f == nil {
		return nil
	}
	return &input{f.Description, f.Type, f.DefaultValue, f.Directives}
}

func (i *input) isRequired() bool { return i.of.NonNull && i.defaultValue == nil }

// input adds the changes of an argument or input field. old is nil if the released schema does not have the argument or field. new
// is nil if the present schema does not have it.
func (c *comparison) input(coordinate string, old, new *input) {
	switch {
	case new == nil:
		c.remove(coordinate, isDeprecated(old.directives))
		return
	case old == nil && new.isRequired():
		c.add(breaks, coordinate, "is new and required")
		return
	case old == nil:
		c.add(adds, coordinate, sentence(new.description))
		return
	}
	c.deprecation(coordinate, old.directives, new.directives)
	c.compareTypes(coordinate, old.of, new.of, isNarrower(old.of, new.of))
	switch was, now := valueOf(old.defaultValue), valueOf(new.defaultValue); {
	case was == now:
	case !old.isRequired() && new.isRequired():
		c.add(breaks, coordinate, "is required and had the default "+was)
	default:
		c.add(alters, coordinate, "has the default "+now+" instead of "+was)
	}
}

func valueOf(v *ast.Value) string {
	if v == nil {
		return "none"
	}
	return v.String()
}

// isNarrower reports whether every value of the type t is a value of the type u. The result is true if the types are equal, or
// differ only in places where t is non-null and u is nullable.
func isNarrower(t, u *ast.Type) bool {
	switch {
	case u.NonNull && !t.NonNull, (t.Elem == nil) != (u.Elem == nil):
		return false
	case t.Elem != nil:
		return isNarrower(t.Elem, u.Elem)
	}
	return t.NamedType == u.NamedType
}

func kindOf(def *ast.Definition) string {
	switch name := strings.ReplaceAll(strings.ToLower(string(def.Kind)), "_", " "); name[0] {
	case 'o', 'i', 'e':
		return "an " + name
	default:
		return "a " + name
	}
}

func sentence(description string) string {
	text := cell(description)
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}
