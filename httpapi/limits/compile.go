package limits

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Compile returns the plan of an operation. The document must have been validated against the schema given to New.
func (g *Guard) Compile(doc *ast.QueryDocument, op *ast.OperationDefinition) *Plan {
	c := &compiler{&Plan{limit: g.limits.Cost, fields: []planField{{parent: none, items: constant(1)}}}}
	c.object(object{pageSize: constant(1), selections: []scoped{{set: op.SelectionSet}}})
	return c.plan
}

type compiler struct{ plan *Plan }

// object describes one object of the response, or all objects of one list.
type object struct {
	field int32
	// pageSize is the number of items on a page, if the object is a connection. The fields with quantity.ofPage, such as nodes and
	// edges, have pageSize items.
	pageSize number
	// known are the reads of this object whose cost was already counted.
	known      reads
	selections []scoped
}

// scoped is a selection set with the conditions under which it is executed.
type scoped struct {
	set  ast.SelectionSet
	when []condition
}

// selected is a field of an object. It merges all selections with the same type, response key and conditions.
type selected struct {
	*ast.Field
	when       []condition
	selections []scoped
}

func (c *compiler) object(o object) {
	for _, f := range c.collect(o.selections) {
		c.field(&o, f)
	}
}

// collect merges the fields of selections. The result is in the order of the document.
func (c *compiler) collect(selections []scoped) (fields []*selected) {
	byKey := map[string]*selected{}
	var gather func(scoped)
	gather = func(s scoped) {
		for _, selection := range s.set {
			switch selection := selection.(type) {
			case *ast.Field:
				when, ok := restrict(s.when, selection.Directives)
				if !ok {
					continue
				}
				key := fmt.Sprint(selection.ObjectDefinition.Name, " ", selection.Alias, when)
				f := byKey[key]
				if f == nil {
					f = &selected{Field: selection, when: when}
					byKey[key], fields = f, append(fields, f)
				}
				f.selections = append(f.selections, scoped{set: selection.SelectionSet})
			case *ast.InlineFragment:
				if when, ok := restrict(s.when, selection.Directives); ok {
					gather(scoped{selection.SelectionSet, when})
				}
			case *ast.FragmentSpread:
				if when, ok := restrict(s.when, selection.Directives); ok {
					gather(scoped{selection.Definition.SelectionSet, when})
				}
			}
		}
	}
	for _, s := range selections {
		gather(s)
	}
	return fields
}

// restrict returns the inherited conditions, followed by the conditions of directives. ok is false if a directive with a constant
// argument excludes the selection.
func restrict(inherited []condition, directives ast.DirectiveList) (all []condition, ok bool) {
	all = inherited
	for _, d := range directives {
		if d.Name != "skip" && d.Name != "include" {
			continue
		}
		include := d.Name == "include"
		switch v := d.Arguments.ForName("if").Value; {
		case v.Kind == ast.Variable:
			if added := (condition{v.Raw, include}); !slices.Contains(all, added) {
				all = append(all[:len(all):len(all)], added)
			}
		case (v.Raw == "true") != include:
			return nil, false
		}
	}
	return all, true
}

func (c *compiler) field(o *object, f *selected) {
	w := table[f.ObjectDefinition.Name+"."+f.Name]
	leaf := len(f.SelectionSet) == 0
	if leaf && len(f.when) == 0 && w.needs|w.each == 0 {
		c.plan.fields[o.field].points++
		return
	}
	at := int32(len(c.plan.fields))
	c.plan.fields = append(c.plan.fields, planField{
		parent: o.field, items: c.number(f.Field, w.items, o.pageSize), calls: c.number(f.Field, w.calls, o.pageSize), own: (w.needs &^ o.known).points(), points: 1 + w.each.points(), when: f.when, key: f.Alias,
	})
	if len(f.when) == 0 {
		o.known |= w.needs &^ listPage
	}
	if !leaf {
		known := w.knows
		if w.passes {
			known |= o.known
		}
		c.object(object{field: at, pageSize: c.number(f.Field, w.pageSize, o.pageSize), known: known, selections: f.selections})
	}
}

// number returns the value of the quantity q for a field of an object. pageSize is object.pageSize of that object.
func (c *compiler) number(f *ast.Field, q quantity, pageSize number) number {
	switch {
	case q.ofPage:
		return pageSize
	case q.argument != "":
		return c.argument(f, q)
	case q.fixed > 0:
		return constant(q.fixed)
	default:
		return constant(1)
	}
}

func (c *compiler) argument(f *ast.Field, q quantity) number {
	var otherwise int64
	if d := f.Definition.Arguments.ForName(q.argument).DefaultValue; d != nil {
		otherwise = q.literal(d, 0)
	}
	arg := f.Arguments.ForName(q.argument)
	switch {
	case arg == nil:
		return constant(otherwise)
	case arg.Value.Kind != ast.Variable:
		return constant(min(max(q.literal(arg.Value, otherwise), 0), q.limit))
	}
	n := count{arg.Value.Raw, q, otherwise}
	at := slices.Index(c.plan.counts, n)
	if at < 0 {
		at = len(c.plan.counts)
		c.plan.counts = append(c.plan.counts, n)
	}
	return number{count: int32(at)}
}
