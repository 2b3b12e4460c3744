package limits

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// measure refuses a parsed document that is past a limit. First every node is visited once, each fragment's size being
// computed once however often it is spread; only when the whole is known to be small are fragments followed to where they
// are spread.
func measure(doc *ast.QueryDocument, limits *Limits) error {
	if n := len(doc.Operations); n > limits.Operations {
		return refuse(RuleOperations, "the document defines %d operations; at most %d are accepted: send those that you execute", n, limits.Operations)
	}
	if n := len(doc.Fragments); n > limits.Fragments {
		return refuse(RuleFragments, "the document defines %d fragments; at most %d are accepted", n, limits.Fragments)
	}
	s := &survey{limits: limits, fragments: make(map[string]*fragment, len(doc.Fragments))}
	for _, def := range doc.Fragments {
		if s.fragments[def.Name] == nil { // else validation refuses it; until then the first one counts
			s.fragments[def.Name] = &fragment{def: def}
		}
	}
	roots, err := s.visit(doc)
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := s.merge([]ast.SelectionSet{root.selection}, root.operation); err != nil {
			return err
		}
	}
	return nil
}

// survey is what is known of a document while it is measured.
type survey struct {
	limits              *Limits
	fragments           map[string]*fragment
	aliases, directives int
}

// fragment is a named fragment with what it is when all that it spreads is taken in.
type fragment struct {
	def *ast.FragmentDefinition
	extent
	// entered tells that its size is being computed, and known that it has been.
	entered, known bool
}

// extent is the size of a selection with its fragments taken in. It saturates.
type extent struct {
	selections int64
	depth      int
}

// root is a selection that nothing else of the document leads to.
type root struct {
	selection ast.SelectionSet
	operation bool
}

// visit visits every node once, and returns the operations and the fragments that no operation spreads, which are invalid and
// walked by validation all the same.
func (s *survey) visit(doc *ast.QueryDocument) (roots []root, err error) {
	var sum int64
	add := func(e extent, r root) error {
		if sum = addSat(sum, e.selections); sum > int64(s.limits.Selections) {
			return refuse(RuleSelections, "the document selects %d fields and fragments when each fragment is counted wherever it is spread; at most %d are accepted: ask in several requests", sum, s.limits.Selections)
		}
		if e.depth > s.limits.Depth {
			return refuse(RuleDepth, "fields are nested %d deep; at most %d levels are accepted", e.depth, s.limits.Depth)
		}
		roots = append(roots, r)
		return nil
	}
	for _, op := range doc.Operations {
		e, err := s.operation(op)
		if err != nil {
			return nil, err
		}
		if err := add(e, root{op.SelectionSet, true}); err != nil {
			return nil, err
		}
	}
	for _, def := range doc.Fragments {
		f := s.fragments[def.Name]
		if f.def != def {
			f = &fragment{def: def} // a second one with the name
		}
		if f.known {
			continue
		}
		if err := s.enter(f); err != nil {
			return nil, err
		}
		if err := add(f.extent, root{def.SelectionSet, false}); err != nil {
			return nil, err
		}
	}
	return roots, nil
}

func (s *survey) operation(op *ast.OperationDefinition) (extent, error) {
	if err := s.name(op.Name); err != nil {
		return extent{}, err
	}
	for _, v := range op.VariableDefinitions {
		if err := s.variable(v); err != nil {
			return extent{}, err
		}
	}
	if err := s.directiveList(op.Directives); err != nil {
		return extent{}, err
	}
	return s.selectionSet(op.SelectionSet)
}

func (s *survey) variable(v *ast.VariableDefinition) error {
	depth := 0
	t := v.Type
	for ; t.Elem != nil; t = t.Elem {
		depth++
	}
	if depth > s.limits.Depth {
		return refuse(RuleDepth, "the type of the variable $%s is nested %d deep; at most %d levels are accepted", short(v.Variable), depth, s.limits.Depth)
	}
	if err := s.name(v.Variable); err != nil {
		return err
	}
	if err := s.name(t.NamedType); err != nil {
		return err
	}
	if v.DefaultValue != nil {
		if err := s.value(v.DefaultValue, 1); err != nil {
			return err
		}
	}
	return s.directiveList(v.Directives)
}

// enter computes the extent of a fragment, once.
func (s *survey) enter(f *fragment) error {
	switch {
	case f.known:
		return nil
	case f.entered:
		return refuse(RuleFragmentCycle, "the fragment %s spreads itself, directly or through others", short(f.def.Name))
	}
	f.entered = true
	if err := s.name(f.def.Name); err != nil {
		return err
	}
	if err := s.name(f.def.TypeCondition); err != nil {
		return err
	}
	for _, v := range f.def.VariableDefinition {
		if err := s.variable(v); err != nil {
			return err
		}
	}
	if err := s.directiveList(f.def.Directives); err != nil {
		return err
	}
	var err error
	f.extent, err = s.selectionSet(f.def.SelectionSet)
	f.known = true
	return err
}

func (s *survey) selectionSet(set ast.SelectionSet) (sum extent, err error) {
	for _, selection := range set {
		e, err := s.selection(selection)
		if err != nil {
			return extent{}, err
		}
		sum.selections = addSat(sum.selections, e.selections)
		sum.depth = max(sum.depth, e.depth)
	}
	return sum, nil
}

func (s *survey) selection(selection ast.Selection) (e extent, err error) {
	levels := 1
	switch selection := selection.(type) {
	case *ast.Field:
		if err := s.field(selection); err != nil {
			return extent{}, err
		}
		e, err = s.selectionSet(selection.SelectionSet)
	case *ast.InlineFragment:
		if err := s.name(selection.TypeCondition); err != nil {
			return extent{}, err
		}
		if err := s.directiveList(selection.Directives); err != nil {
			return extent{}, err
		}
		e, err = s.selectionSet(selection.SelectionSet)
	case *ast.FragmentSpread:
		levels = 0
		if err := s.name(selection.Name); err != nil {
			return extent{}, err
		}
		if err := s.directiveList(selection.Directives); err != nil {
			return extent{}, err
		}
		if f := s.fragments[selection.Name]; f != nil { // else validation refuses it
			err = s.enter(f)
			e = f.extent
		}
	}
	return extent{addSat(e.selections, 1), e.depth + levels}, err
}

func (s *survey) field(f *ast.Field) error {
	if err := s.name(f.Name); err != nil {
		return err
	}
	if f.Alias != f.Name {
		if err := s.name(f.Alias); err != nil {
			return err
		}
		if s.aliases++; s.aliases > s.limits.Aliases {
			return refuse(RuleAliases, "the document has more than %d aliases: use the fields that take lists of ids, or ask in several requests", s.limits.Aliases)
		}
	}
	if err := s.arguments(f.Arguments); err != nil {
		return err
	}
	return s.directiveList(f.Directives)
}

func (s *survey) directiveList(list ast.DirectiveList) error {
	if s.directives += len(list); s.directives > s.limits.Directives {
		return refuse(RuleDirectives, "the document has more than %d directives", s.limits.Directives)
	}
	for _, d := range list {
		if err := s.name(d.Name); err != nil {
			return err
		}
		if err := s.arguments(d.Arguments); err != nil {
			return err
		}
	}
	return nil
}

func (s *survey) arguments(list ast.ArgumentList) error {
	for _, a := range list {
		if err := s.name(a.Name); err != nil {
			return err
		}
		if err := s.value(a.Value, 1); err != nil {
			return err
		}
	}
	return nil
}

// value visits a value that stands at a level of an argument, which is the first.
func (s *survey) value(v *ast.Value, level int) error {
	switch v.Kind {
	case ast.ListValue, ast.ObjectValue:
		if level > s.limits.Depth {
			return refuse(RuleDepth, "a value is nested more than %d deep", s.limits.Depth)
		}
		if n := len(v.Children); n > s.limits.ListItems {
			return refuse(RuleListItems, "a list or object has %d items; at most %d are accepted", n, s.limits.ListItems)
		}
		for _, c := range v.Children {
			if err := s.name(c.Name); err != nil {
				return err
			}
			if err := s.value(c.Value, level+1); err != nil {
				return err
			}
		}
	case ast.Variable, ast.EnumValue:
		return s.name(v.Raw)
	}
	return nil
}

func (s *survey) name(name string) error {
	if n := len(name); n > s.limits.NameBytes {
		return refuse(RuleNameBytes, "the name %s has %d bytes; at most %d are accepted", short(name), n, s.limits.NameBytes)
	}
	return nil
}

// merged is what is selected of one object under one response key.
type merged struct {
	key   string
	times int
	sets  []ast.SelectionSet
}

// merge counts how often each key is selected in what execution merges to one selection. Types of fragments are ignored, as
// validation compares fields of different types too. It takes as many steps as there are selections.
func (s *survey) merge(sets []ast.SelectionSet, atRoot bool) error {
	keys := map[string]*merged{}
	var order []*merged
	var gather func(ast.SelectionSet)
	gather = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch selection := selection.(type) {
			case *ast.Field:
				m := keys[selection.Alias]
				if m == nil {
					m = &merged{key: selection.Alias}
					keys[m.key], order = m, append(order, m)
				}
				m.times++
				if len(selection.SelectionSet) > 0 {
					m.sets = append(m.sets, selection.SelectionSet)
				}
			case *ast.InlineFragment:
				gather(selection.SelectionSet)
			case *ast.FragmentSpread:
				if f := s.fragments[selection.Name]; f != nil {
					gather(f.def.SelectionSet)
				}
			}
		}
	}
	for _, set := range sets {
		gather(set)
	}
	if n := len(order); atRoot && n > s.limits.RootFields {
		return refuse(RuleRootFields, "the operation has %d root fields; at most %d are accepted: use the fields that take lists of ids, or ask in several requests", n, s.limits.RootFields)
	}
	for _, m := range order {
		if m.times > s.limits.Repeats {
			return refuse(RuleRepeats, "%s is selected %d times of the same object; at most %d are accepted: select it once", short(m.key), m.times, s.limits.Repeats)
		}
		if len(m.sets) > 0 {
			if err := s.merge(m.sets, false); err != nil {
				return err
			}
		}
	}
	return nil
}
