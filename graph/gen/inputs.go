package main

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// input is an argument, or a field of an input type.
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

// required reports whether clients must send the input.
func (i *input) required() bool { return i.of.NonNull && i.defaultValue == nil }

// input adds the changes from old to new. A missing input is nil.
func (c *comparison) input(at string, old, new *input) {
	switch {
	case new == nil:
		c.remove(at, isDeprecated(old.directives))
		return
	case old == nil && new.required():
		c.add(breaks, at, "is new and required")
		return
	case old == nil:
		c.add(adds, at, sentence(new.description))
		return
	}
	c.deprecation(at, old.directives, new.directives)
	if was, now := old.of.String(), new.of.String(); was != now {
		effect := alters
		if !narrower(old.of, new.of) {
			effect = breaks
		}
		c.add(effect, at, "has the type "+now+" instead of "+was)
	}
	switch was, now := valueOf(old.defaultValue), valueOf(new.defaultValue); {
	case was == now:
	case !old.required() && new.required():
		c.add(breaks, at, "is required and had the default "+was)
	default:
		c.add(alters, at, "has the default "+now+" instead of "+was)
	}
}

func valueOf(v *ast.Value) string {
	if v == nil {
		return "none"
	}
	return v.String()
}

// narrower reports whether every value of the type a is a value of the type b. This is true if the types are equal, or differ only
// in places where a is non-null and b is nullable.
func narrower(a, b *ast.Type) bool {
	switch {
	case b.NonNull && !a.NonNull, (a.Elem == nil) != (b.Elem == nil):
		return false
	case a.Elem != nil:
		return narrower(a.Elem, b.Elem)
	}
	return a.NamedType == b.NamedType
}

func kindOf(def *ast.Definition) string {
	switch name := strings.ReplaceAll(strings.ToLower(string(def.Kind)), "_", " "); name[0] {
	case 'o', 'i', 'e':
		return "an " + name
	default:
		return "a " + name
	}
}

// sentence returns the first sentence of a description.
func sentence(description string) string {
	text := cell(description)
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}
