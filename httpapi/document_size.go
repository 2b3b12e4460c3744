package httpapi

import (
	"encoding/json"

	"github.com/vektah/gqlparser/v2/ast"
)

const (
	bytesPerDocument = 2 << 10 // fixed size of a document
	bytesPerNode     = 400     // size of a node of the syntax tree and of its part of document.plans
	bytesPerError    = 400     // size of an error without its text
)

// sizeOf estimates the size of a document in bytes. documentCache.grow adds the size of the compiled operations later.
func sizeOf(doc *document) int {
	size := bytesPerDocument + len(doc.text)
	for _, err := range doc.errs {
		size += bytesPerError + len(err.Error())
	}
	if doc.ast == nil {
		return size
	}
	if parsed := doc.ast.Operations[0].Position.Src.Input; parsed != doc.text {
		size += len(parsed) // the guard has replaced escapes, and the syntax tree keeps the new text
	}
	nodes := 0
	count := func(any) { nodes++ }
	for _, op := range doc.ast.Operations {
		count(op)
		walkDirectives(op.Directives, count)
		walkSelections(op.SelectionSet, count)
		for _, v := range op.VariableDefinitions {
			count(v)
			walkValue(v.DefaultValue, count)
			walkDirectives(v.Directives, count)
		}
	}
	for _, f := range doc.ast.Fragments {
		count(f)
		walkDirectives(f.Directives, count)
		walkSelections(f.SelectionSet, count)
	}
	return size + bytesPerNode*nodes
}

// walkSelections calls visit for all nodes of a selection set: selections, directives, arguments and values. It does not visit the
// fragments that the selection set spreads.
func walkSelections(set ast.SelectionSet, visit func(node any)) {
	for _, selection := range set {
		visit(selection)
		switch s := selection.(type) {
		case *ast.Field:
			walkArguments(s.Arguments, visit)
			walkDirectives(s.Directives, visit)
			walkSelections(s.SelectionSet, visit)
		case *ast.InlineFragment:
			walkDirectives(s.Directives, visit)
			walkSelections(s.SelectionSet, visit)
		case *ast.FragmentSpread:
			walkDirectives(s.Directives, visit)
		}
	}
}

func walkDirectives(list ast.DirectiveList, visit func(node any)) {
	for _, d := range list {
		visit(d)
		walkArguments(d.Arguments, visit)
	}
}

func walkArguments(list ast.ArgumentList, visit func(node any)) {
	for _, a := range list {
		visit(a)
		walkValue(a.Value, visit)
	}
}

func walkValue(v *ast.Value, visit func(node any)) {
	if v == nil {
		return
	}
	visit(v)
	for _, c := range v.Children {
		walkValue(c.Value, visit)
	}
}

// bytesPerValue is the size of a value without its text.
const bytesPerValue = 48

func bytesOfValue(value any) int {
	size := bytesPerValue
	switch v := value.(type) {
	case string:
		size += len(v)
	case json.Number:
		size += len(v)
	case []any:
		for _, item := range v {
			size += bytesOfValue(item)
		}
	case []string:
		for _, item := range v {
			size += bytesPerValue + len(item)
		}
	case map[string]any:
		for name, member := range v {
			size += bytesPerValue + len(name) + bytesOfValue(member)
		}
	}
	return size
}
