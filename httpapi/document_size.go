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
	nodes := 0
	for _, op := range doc.ast.Operations {
		nodes += 1 + directiveNodes(op.Directives) + selectionNodes(op.SelectionSet)
		for _, v := range op.VariableDefinitions {
			nodes += 1 + valueNodes(v.DefaultValue) + directiveNodes(v.Directives)
		}
	}
	for _, f := range doc.ast.Fragments {
		nodes += 1 + directiveNodes(f.Directives) + selectionNodes(f.SelectionSet)
	}
	return size + bytesPerNode*nodes
}

func selectionNodes(set ast.SelectionSet) (nodes int) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			nodes += 1 + argumentNodes(s.Arguments) + directiveNodes(s.Directives) + selectionNodes(s.SelectionSet)
		case *ast.InlineFragment:
			nodes += 1 + directiveNodes(s.Directives) + selectionNodes(s.SelectionSet)
		case *ast.FragmentSpread:
			nodes += 1 + directiveNodes(s.Directives)
		}
	}
	return nodes
}

func directiveNodes(list ast.DirectiveList) (nodes int) {
	for _, d := range list {
		nodes += 1 + argumentNodes(d.Arguments)
	}
	return nodes
}

func argumentNodes(list ast.ArgumentList) (nodes int) {
	for _, a := range list {
		nodes += 1 + valueNodes(a.Value)
	}
	return nodes
}

func valueNodes(v *ast.Value) (nodes int) {
	if v == nil {
		return 0
	}
	for _, c := range v.Children {
		nodes += valueNodes(c.Value)
	}
	return nodes + 1
}

// bytesPerValue is the size of a value without its text.
const bytesPerValue = 48

// bytesOfValue estimates the size of a variable's value in bytes.
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
