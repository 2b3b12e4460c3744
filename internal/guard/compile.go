package guard

import (
	"fmt"
	"iter"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Compile returns the plan of an operation of a document that was validated against the guard's schema. Keep it beside the
// document: making it costs about as much as validating, and asking it next to nothing.
func (g *Guard) Compile(doc *ast.QueryDocument, op *ast.OperationDefinition) *Plan {
	c := &compiler{
		guard: g, doc: doc,
		plan:   &Plan{limit: g.limits.Cost, steps: []step{{parent: none, items: constant(1)}}, waves: []wave{{none, none}}},
		groups: map[readIn]int32{}, waves: map[readIn]int32{},
	}
	c.object(object{page: constant(1), selections: []scoped{{set: op.SelectionSet}}})
	return c.plan
}

type compiler struct {
	guard *Guard
	doc   *ast.QueryDocument
	plan  *Plan
	// groups and waves are those of batched reads.
	groups, waves map[readIn]int32
}

// readIn is a kind of batched read in a wave: all of them travel together.
type readIn struct {
	kind reads
	wave int32
}

// object is the object, or every object of a list, that a selection is about.
type object struct {
	step, wave int32
	// page is how many items its lists have.
	page       number
	knows      reads
	selections []scoped
}

// scoped is a selection set with the conditions of what surrounds it.
type scoped struct {
	set  ast.SelectionSet
	when []condition
}

// selected is a field as execution sees it: all that are selected of an object under one key, and here the same conditions.
type selected struct {
	*ast.Field
	when       []condition
	selections []scoped
}

// object compiles what is selected of an object.
func (c *compiler) object(o object) {
	done := map[string]bool{} // what was read for this object
	for _, f := range c.collect(o.selections) {
		c.field(&o, f, done)
	}
}

// collect merges fields, in the order of the document.
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

// restrict adds the conditions of directives to those of what surrounds them. ok is false where they can't be met.
func restrict(when []condition, directives ast.DirectiveList) (all []condition, ok bool) {
	all = when
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

// field compiles a field of an object, for which done was read before.
func (c *compiler) field(o *object, f *selected, done map[string]bool) {
	w := c.guard.weights[fieldName{f.ObjectDefinition.Name, f.Name}]
	if w == nil {
		w = &weight{} // __typename
	}
	leaf := len(f.SelectionSet) == 0
	if leaf && len(f.when) == 0 && w.needs|w.each == 0 && w.calls == 0 {
		c.plan.steps[o.step].values++
		return
	}
	at := int32(len(c.plan.steps))
	c.plan.steps = append(c.plan.steps, step{parent: o.step, items: c.number(f.Field, w.items, o.page), values: 1, when: f.when, key: f.Alias})
	wave := o.wave
	for kind := range each(w.needs &^ o.knows) {
		key := c.needed(kind, f)
		wave = c.read(kind, o.wave, upstreamRead{step: at, times: constant(count(!done[key])), ofParent: true, when: f.when})
		done[key] = true
	}
	for kind := range each(w.each) {
		if given(f.Field, w.alone) {
			kind = page
		}
		wave = c.read(kind, o.wave, upstreamRead{step: at, times: constant(1)})
	}
	if w.calls > 0 && (w.callsIf == nil || slices.ContainsFunc(w.callsIf, func(name string) bool { return given(f.Field, name) })) {
		c.plan.reads = append(c.plan.reads, upstreamRead{step: at, times: constant(w.calls), ofParent: true, when: f.when, group: none})
	}
	if w.callsOf != "" {
		c.plan.reads = append(c.plan.reads, upstreamRead{step: at, times: c.argument(f.Field, w.callsOf, unbatched, maxIDs), ofParent: true, when: f.when, group: none})
	}
	if !leaf {
		c.object(object{step: at, wave: wave, page: c.number(f.Field, w.page, o.page), knows: w.knows, selections: f.selections})
	}
}

// needed names what a field of an object needs. Fields that need the same share it.
func (c *compiler) needed(kind reads, f *selected) string {
	key := fmt.Sprint(kind, f.when)
	if kind == history {
		for _, name := range []string{"from", "to"} {
			if a := f.Arguments.ForName(name); a != nil {
				key += fmt.Sprint(" ", name, " ", a.Value)
			}
		}
	}
	return key
}

// read adds a read and returns the wave of what it brings.
func (c *compiler) read(kind reads, in int32, r upstreamRead) (brought int32) {
	if kind&batched == 0 {
		r.group = none
		c.plan.reads = append(c.plan.reads, r)
		c.plan.waves = append(c.plan.waves, wave{in, r.step})
		return int32(len(c.plan.waves) - 1)
	}
	key := readIn{kind, in}
	if _, ok := c.groups[key]; !ok {
		c.groups[key] = int32(len(c.plan.groups))
		c.plan.groups = append(c.plan.groups, in)
		c.waves[key] = int32(len(c.plan.waves))
		c.plan.waves = append(c.plan.waves, wave{in, none})
	}
	r.group = c.groups[key]
	c.plan.reads = append(c.plan.reads, r)
	return c.waves[key]
}

// number returns the number that a quantity is for a field of an object that has a page of its own.
func (c *compiler) number(f *ast.Field, q quantity, objectsPage number) number {
	switch {
	case q.ofPage:
		return objectsPage
	case q.argument != "" && q.list:
		return c.argument(f, q.argument, length, q.limit)
	case q.argument != "":
		return c.argument(f, q.argument, magnitude, q.limit)
	case q.fixed > 0:
		return constant(q.fixed)
	default:
		return constant(1)
	}
}

// argument returns the number that an aspect of an argument is.
func (c *compiler) argument(f *ast.Field, name string, of aspect, limit int64) number {
	var otherwise int64
	if d := f.Definition.Arguments.ForName(name).DefaultValue; d != nil {
		otherwise = ofLiteral(d, of, 0)
	}
	arg := f.Arguments.ForName(name)
	switch {
	case arg == nil:
		return constant(otherwise)
	case arg.Value.Kind != ast.Variable:
		return constant(min(max(ofLiteral(arg.Value, of, otherwise), 0), limit))
	}
	a := amount{arg.Value.Raw, of, otherwise, limit}
	at := slices.Index(c.plan.amounts, a)
	if at < 0 {
		at = len(c.plan.amounts)
		c.plan.amounts = append(c.plan.amounts, a)
	}
	return number{amount: int32(at)}
}

// given tells whether an argument of a field is there and not what it is by default. There is no argument without a name.
func given(f *ast.Field, name string) bool {
	arg := f.Arguments.ForName(name)
	if arg == nil || arg.Value.Kind == ast.NullValue {
		return false
	}
	d := f.Definition.Arguments.ForName(name).DefaultValue
	return d == nil || arg.Value.Kind != d.Kind || arg.Value.Raw != d.Raw
}

// each yields the single reads of a set.
func each(set reads) iter.Seq[reads] {
	return func(yield func(reads) bool) {
		for kind := reads(1); kind <= page; kind <<= 1 {
			if set&kind != 0 && !yield(kind) {
				return
			}
		}
	}
}
