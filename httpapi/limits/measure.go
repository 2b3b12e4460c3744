package limits

import (
	"github.com/vektah/gqlparser/v2/ast"
)

// measure returns an error if a parsed document exceeds a limit. First, it visits every node once and computes the size of each
// fragment once. If the sizes are within the limits, it follows all fragment spreads and counts repeated response keys.
func measure(doc *ast.QueryDocument, limits *Limits) error {
	// Validation visits a fragment once for each operation that spreads it. It repeats the search for names that resemble a long
	// wrong value in the fragment.
	if n := len(doc.Operations); n > limits.Operations {
		return refuse(RuleOperations, "the document defines %d operations; at most %d are accepted: send those that you execute", n, limits.Operations)
	}
	if n := len(doc.Fragments); n > limits.Fragments {
		return refuse(RuleFragments, "the document defines %d fragments; at most %d are accepted", n, limits.Fragments)
	}
	m := &measurement{limits: limits, fragments: make(map[string]*fragment, len(doc.Fragments))}
	for _, def := range doc.Fragments {
		if m.fragments[def.Name] == nil { // validation refuses a second fragment with the same name
			m.fragments[def.Name] = &fragment{def: def}
		}
	}
	roots, err := m.visit(doc)
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := m.merge([]ast.SelectionSet{root}); err != nil {
			return err
		}
	}
	return nil
}

type measurement struct {
	limits    *Limits
	fragments map[string]*fragment
}

// fragment is a named fragment. Its size includes the fragments that it spreads.
type fragment struct {
	def *ast.FragmentDefinition
	size
	// started reports that the computation of size has begun. known reports that the computation has ended.
	started, known bool
}

// size is the size of a selection set, including the fragments that it spreads. On overflow, selections is math.MaxInt64.
type size struct {
	selections int64
	depth      int
}

// visit visits every node once. It returns the selection sets of the operations. It also returns the selection sets of the
// fragments that neither an operation nor an earlier fragment spreads. An unused fragment makes the document invalid, but
// validation visits it, too. So visit also checks its size.
func (m *measurement) visit(doc *ast.QueryDocument) (roots []ast.SelectionSet, err error) {
	var sum int64
	add := func(e size, root ast.SelectionSet) error {
		if sum = addSat(sum, e.selections); sum > int64(m.limits.Selections) {
			return refuse(RuleSelections, "the document selects %d fields and fragments, and a fragment counts each time it is spread; at most %d are accepted: send several requests", sum, m.limits.Selections)
		}
		if e.depth > m.limits.Depth {
			return refuse(RuleDepth, "fields are nested %d deep; at most %d levels are accepted", e.depth, m.limits.Depth)
		}
		roots = append(roots, root)
		return nil
	}
	for _, op := range doc.Operations {
		e, err := m.operation(op)
		if err != nil {
			return nil, err
		}
		if err := add(e, op.SelectionSet); err != nil {
			return nil, err
		}
	}
	for _, def := range doc.Fragments {
		f := m.fragments[def.Name]
		if f.def != def {
			f = &fragment{def: def} // a second fragment with the same name
		}
		if f.known {
			continue
		}
		if err := m.measureFragment(f); err != nil {
			return nil, err
		}
		if err := add(f.size, def.SelectionSet); err != nil {
			return nil, err
		}
	}
	return roots, nil
}

func (m *measurement) operation(op *ast.OperationDefinition) (size, error) {
	if err := m.name(op.Name); err != nil {
		return size{}, err
	}
	for _, v := range op.VariableDefinitions {
		if err := m.variable(v); err != nil {
			return size{}, err
		}
	}
	if err := m.directiveList(op.Directives); err != nil {
		return size{}, err
	}
	return m.selectionSet(op.SelectionSet)
}

func (m *measurement) variable(v *ast.VariableDefinition) error {
	depth := 0
	t := v.Type
	for ; t.Elem != nil; t = t.Elem {
		depth++
	}
	if depth > m.limits.Depth {
		return refuse(RuleDepth, "the type of the variable $%s is nested %d deep; at most %d levels are accepted", short(v.Variable), depth, m.limits.Depth)
	}
	if err := m.name(v.Variable); err != nil {
		return err
	}
	if err := m.name(t.NamedType); err != nil {
		return err
	}
	if v.DefaultValue != nil {
		if err := m.value(v.DefaultValue, 1); err != nil {
			return err
		}
	}
	return m.directiveList(v.Directives)
}

// measureFragment computes the size of a fragment if the size is not known yet. It returns an error if the fragment spreads itself
// or exceeds a limit.
func (m *measurement) measureFragment(f *fragment) error {
	switch {
	case f.known:
		return nil
	case f.started:
		return refuse(RuleFragmentCycle, "the fragment %s spreads itself, directly or through other fragments", short(f.def.Name))
	}
	f.started = true
	if err := m.name(f.def.Name); err != nil {
		return err
	}
	if err := m.name(f.def.TypeCondition); err != nil {
		return err
	}
	for _, v := range f.def.VariableDefinition {
		if err := m.variable(v); err != nil {
			return err
		}
	}
	if err := m.directiveList(f.def.Directives); err != nil {
		return err
	}
	var err error
	f.size, err = m.selectionSet(f.def.SelectionSet)
	f.known = true
	return err
}

func (m *measurement) selectionSet(set ast.SelectionSet) (sum size, err error) {
	for _, selection := range set {
		e, err := m.selection(selection)
		if err != nil {
			return size{}, err
		}
		sum.selections = addSat(sum.selections, e.selections)
		sum.depth = max(sum.depth, e.depth)
	}
	return sum, nil
}

func (m *measurement) selection(selection ast.Selection) (e size, err error) {
	levels := 1
	switch selection := selection.(type) {
	case *ast.Field:
		if err := m.field(selection); err != nil {
			return size{}, err
		}
		e, err = m.selectionSet(selection.SelectionSet)
	case *ast.InlineFragment:
		if err := m.name(selection.TypeCondition); err != nil {
			return size{}, err
		}
		if err := m.directiveList(selection.Directives); err != nil {
			return size{}, err
		}
		e, err = m.selectionSet(selection.SelectionSet)
	case *ast.FragmentSpread:
		levels = 0
		if err := m.name(selection.Name); err != nil {
			return size{}, err
		}
		if err := m.directiveList(selection.Directives); err != nil {
			return size{}, err
		}
		if f := m.fragments[selection.Name]; f != nil { // validation refuses unknown fragments
			err = m.measureFragment(f)
			e = f.size
		}
	}
	return size{addSat(e.selections, 1), e.depth + levels}, err
}

func (m *measurement) field(f *ast.Field) error {
	if err := m.name(f.Name); err != nil {
		return err
	}
	if f.Alias != f.Name {
		if err := m.name(f.Alias); err != nil {
			return err
		}
	}
	if err := m.arguments(f.Arguments); err != nil {
		return err
	}
	return m.directiveList(f.Directives)
}

func (m *measurement) directiveList(list ast.DirectiveList) error {
	for _, d := range list {
		if err := m.name(d.Name); err != nil {
			return err
		}
		if err := m.arguments(d.Arguments); err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) arguments(list ast.ArgumentList) error {
	for _, a := range list {
		if err := m.name(a.Name); err != nil {
			return err
		}
		if err := m.value(a.Value, 1); err != nil {
			return err
		}
	}
	return nil
}

// value measures v. level is the nesting level of v, and is 1 for the value of an argument.
func (m *measurement) value(v *ast.Value, level int) error {
	switch v.Kind {
	case ast.ListValue, ast.ObjectValue:
		if level > m.limits.Depth {
			return refuse(RuleDepth, "a value is nested more than %d deep", m.limits.Depth)
		}
		for _, c := range v.Children {
			if err := m.name(c.Name); err != nil {
				return err
			}
			if err := m.value(c.Value, level+1); err != nil {
				return err
			}
		}
	case ast.Variable, ast.EnumValue:
		return m.name(v.Raw)
	}
	return nil
}

func (m *measurement) name(name string) error {
	if n := len(name); n > m.limits.NameBytes {
		return refuse(RuleNameBytes, "the name %s has %d bytes; at most %d are accepted", short(name), n, m.limits.NameBytes)
	}
	return nil
}

// merged contains the selections on one object with the same response key.
type merged struct {
	key   string
	times int
	sets  []ast.SelectionSet
}

// merge counts how often the selection sets of one object select each response key. It then calls itself for the selection sets of
// each field. It ignores the types of fragments, because validation also compares fields of different types. Its time grows with
// the number of selections, where a fragment counts each time it is spread.
func (m *measurement) merge(sets []ast.SelectionSet) error {
	keys := map[string]*merged{}
	var order []*merged
	var gather func(ast.SelectionSet)
	gather = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch selection := selection.(type) {
			case *ast.Field:
				field := keys[selection.Alias]
				if field == nil {
					field = &merged{key: selection.Alias}
					keys[field.key], order = field, append(order, field)
				}
				field.times++
				if len(selection.SelectionSet) > 0 {
					field.sets = append(field.sets, selection.SelectionSet)
				}
			case *ast.InlineFragment:
				gather(selection.SelectionSet)
			case *ast.FragmentSpread:
				if f := m.fragments[selection.Name]; f != nil {
					gather(f.def.SelectionSet)
				}
			}
		}
	}
	for _, set := range sets {
		gather(set)
	}
	for _, field := range order {
		if field.times > m.limits.Repeats {
			return refuse(RuleRepeats, "%s is selected %d times on the same object; at most %d are accepted: select it once", short(field.key), field.times, m.limits.Repeats)
		}
		if len(field.sets) > 0 {
			if err := m.merge(field.sets); err != nil {
				return err
			}
		}
	}
	return nil
}
