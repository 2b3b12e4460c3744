package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// effect is what a change of the schema means to clients. The changelog lists changes in the order of these constants.
type effect int

const (
	// breaks means that clients of the released schema can fail.
	breaks effect = iota
	// removes means the removal of an item that the released schema had deprecated.
	removes
	deprecates
	// alters means any other change of an existing item. All valid documents remain valid.
	alters
	adds
)

type change struct {
	effect effect
	// coordinate is the schema coordinate, such as Market.tokens or Query.tokens(tokenIds:).
	coordinate string
	text       string
}

type comparison struct {
	old, new *ast.Schema
	changes  []change
}

// changesOf returns the changes from the released schema to the present one, sorted by effect and coordinate.
func changesOf(released, now *ast.Schema) []change {
	c := &comparison{old: released, new: now}
	for _, root := range []struct {
		name     string
		old, new *ast.Definition
	}{{"query", released.Query, now.Query}, {"mutation", released.Mutation, now.Mutation}, {"subscription", released.Subscription, now.Subscription}} {
		if root.old != nil && (root.new == nil || root.new.Name != root.old.Name) {
			c.add(breaks, root.old.Name, "is no longer the type of a "+root.name)
		}
	}
	for _, name := range names(released.Types, now.Types) {
		c.definition(name, released.Types[name], now.Types[name])
	}
	for _, name := range names(released.Directives, now.Directives) {
		c.directive("@"+name, released.Directives[name], now.Directives[name])
	}
	slices.SortStableFunc(c.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.effect, b.effect), cmp.Compare(a.coordinate, b.coordinate))
	})
	return c.changes
}

func names[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func (c *comparison) add(e effect, coordinate, text string) {
	c.changes = append(c.changes, change{e, coordinate, text})
}

// remove adds the removal of an item. The removal breaks clients if the item was not deprecated in the released schema.
func (c *comparison) remove(coordinate string, deprecated bool) {
	if deprecated {
		c.add(removes, coordinate, "was deprecated")
		return
	}
	c.add(breaks, coordinate, "is removed and was not deprecated in the last release")
}

// deprecation adds a change if exactly one of the two lists of directives contains @deprecated.
func (c *comparison) deprecation(coordinate string, old, new ast.DirectiveList) {
	switch before, after := isDeprecated(old), isDeprecated(new); {
	case !before && after:
		text := "is deprecated"
		if reason := new.ForName("deprecated").Arguments.ForName("reason"); reason != nil {
			text += ": " + cell(reason.Value.Raw)
		}
		c.add(deprecates, coordinate, text)
	case before && !after:
		c.add(alters, coordinate, "is no longer deprecated")
	}
}

func isDeprecated(list ast.DirectiveList) bool { return list.ForName("deprecated") != nil }

// definition adds the changes of a type. old is nil for a new type, and new is nil for a removed type.
func (c *comparison) definition(name string, old, new *ast.Definition) {
	switch {
	case new == nil:
		c.remove(name, c.isRemovable(name, map[string]bool{}))
		return
	case old == nil:
		c.add(adds, name, sentence(new.Description))
		return
	case old.Kind != new.Kind:
		c.add(breaks, name, "is "+kindOf(new)+" instead of "+kindOf(old))
		return
	}
	c.members(name, old.Interfaces, new.Interfaces, "no longer implements ", "implements ")
	c.members(name, old.Types, new.Types, "no longer contains ", "also contains ")
	for _, f := range old.Fields {
		c.field(name+"."+f.Name, old.Kind, f, new.Fields.ForName(f.Name))
	}
	for _, f := range new.Fields {
		if old.Fields.ForName(f.Name) == nil {
			c.field(name+"."+f.Name, new.Kind, nil, f)
		}
	}
	c.values(name, old, new)
	for _, d := range []struct{ name, added, removed string }{
		{"oneOf", "accepts exactly one of its fields", "accepts several of its fields"},
		{"specifiedBy", "names its specification", "names no specification"},
	} {
		switch was, is := old.Directives.ForName(d.name) != nil, new.Directives.ForName(d.name) != nil; {
		case is && !was && d.name == "oneOf":
			c.add(breaks, name, d.added)
		case is && !was:
			c.add(alters, name, d.added)
		case was && !is:
			c.add(alters, name, d.removed)
		}
	}
}

// isRemovable reports whether clients still work after the removal of a type. It checks each field and argument that uses the type
// in the released schema. Each of them must be deprecated, or belong to a removed type for which isRemovable also returns true. If
// the released schema does not use the type at all, isRemovable returns false. seen prevents endless recursion.
func (c *comparison) isRemovable(name string, seen map[string]bool) bool {
	if seen[name] {
		return true
	}
	seen[name] = true
	known := false
	for _, def := range c.old.Types {
		for _, f := range def.Fields {
			deprecated, uses := isDeprecated(f.Directives), f.Type.Name() == name
			used := uses && !deprecated
			for _, a := range f.Arguments {
				if a.Type.Name() == name {
					uses, used = true, used || !deprecated && !isDeprecated(a.Directives)
				}
			}
			known = known || uses
			if used && (c.new.Types[def.Name] != nil || !c.isRemovable(def.Name, seen)) {
				return false
			}
		}
	}
	return known
}

// members adds the changes of the interfaces of a type or of the members of a union. lost and gained are the texts before a name.
func (c *comparison) members(coordinate string, old, new []string, lost, gained string) {
	for _, name := range old {
		if !slices.Contains(new, name) {
			c.add(breaks, coordinate, lost+name)
		}
	}
	for _, name := range new {
		if !slices.Contains(old, name) {
			c.add(alters, coordinate, gained+name)
		}
	}
}

func (c *comparison) values(name string, old, new *ast.Definition) {
	for _, v := range old.EnumValues {
		coordinate := name + "." + v.Name
		if now := new.EnumValues.ForName(v.Name); now == nil {
			c.remove(coordinate, isDeprecated(v.Directives))
		} else {
			c.deprecation(coordinate, v.Directives, now.Directives)
		}
	}
	for _, v := range new.EnumValues {
		if old.EnumValues.ForName(v.Name) == nil {
			c.add(adds, name+"."+v.Name, sentence(v.Description))
		}
	}
}

// field adds the changes of a field. kind says whether the field belongs to an object, an interface or an input type.
func (c *comparison) field(coordinate string, kind ast.DefinitionKind, old, new *ast.FieldDefinition) {
	switch {
	case kind == ast.InputObject:
		c.input(coordinate, inputOf(old), inputOf(new))
		return
	case new == nil:
		c.remove(coordinate, isDeprecated(old.Directives))
		return
	case old == nil:
		c.add(adds, coordinate, sentence(new.Description))
		return
	}
	c.deprecation(coordinate, old.Directives, new.Directives)
	c.compareTypes(coordinate, old.Type, new.Type, isNarrower(new.Type, old.Type))
	c.arguments(coordinate, old.Arguments, new.Arguments)
}

// compareTypes adds a change if two types differ. The change breaks clients if the types are not compatible.
func (c *comparison) compareTypes(coordinate string, old, new *ast.Type, compatible bool) {
	if old.String() == new.String() {
		return
	}
	effect := alters
	if !compatible {
		effect = breaks
	}
	c.add(effect, coordinate, "has the type "+new.String()+" instead of "+old.String())
}

func (c *comparison) arguments(coordinate string, old, new ast.ArgumentDefinitionList) {
	for _, a := range old {
		c.input(coordinate+"("+a.Name+":)", argumentOf(a), argumentOf(new.ForName(a.Name)))
	}
	for _, a := range new {
		if old.ForName(a.Name) == nil {
			c.input(coordinate+"("+a.Name+":)", nil, argumentOf(a))
		}
	}
}

func (c *comparison) directive(coordinate string, old, new *ast.DirectiveDefinition) {
	switch {
	case new == nil:
		c.remove(coordinate, false)
		return
	case old == nil:
		c.add(adds, coordinate, sentence(new.Description))
		return
	}
	for _, l := range old.Locations {
		if !slices.Contains(new.Locations, l) {
			c.add(breaks, coordinate, "is no longer accepted at "+strings.ToLower(string(l)))
		}
	}
	c.arguments(coordinate, old.Arguments, new.Arguments)
}
