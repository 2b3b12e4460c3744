// Package sdl prints the schema with directives for tools. The directives say where null means failure, what fields cost, and
// which types are entities of a federated graph.
package sdl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

// Options selects the directives.
type Options struct {
	// Semantic adds @semanticNonNull to nullable fields that are null only together with an error.
	Semantic bool
	// Cost returns the cost of a field of an object type, such as Query.market. If Cost is nil, Print adds no costs.
	Cost func(field string) Cost
	// Federation turns the schema into the schema of a Federation 2 subgraph.
	Federation bool
}

// Print adds the directives to the text of a schema. If no option is set, it returns the text unchanged.
func Print(text string, o Options) (string, error) {
	if !o.Semantic && o.Cost == nil && !o.Federation {
		return text, nil
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: text})
	if err != nil {
		return "", err
	}
	doc, err := parser.ParseSchema(&ast.Source{Input: text})
	if err != nil {
		return "", err
	}
	a := annotation{schema: schema, doc: doc}
	head := ""
	if o.Federation {
		head += federationHead
		a.federation()
	}
	if o.Semantic {
		head += semanticHead
		if err := a.addSemanticNonNull(); err != nil {
			return "", err
		}
	}
	if o.Cost != nil {
		head += costHead
		a.costs(o.Cost)
	}
	var b strings.Builder
	b.WriteString(head)
	formatter.NewFormatter(&b, formatter.WithIndent("  ")).FormatSchemaDocument(doc)
	return b.String(), nil
}

// annotation adds directives to a document.
type annotation struct {
	schema *ast.Schema
	doc    *ast.SchemaDocument
}

// directive returns a directive. The parameter arguments contains alternating names and values.
func directive(name string, arguments ...any) *ast.Directive {
	d := &ast.Directive{Name: name}
	for i := 0; i < len(arguments); i += 2 {
		d.Arguments = append(d.Arguments, &ast.Argument{Name: arguments[i].(string), Value: valueOf(arguments[i+1])})
	}
	return d
}

// valueOf returns the literal of a Go value.
func valueOf(v any) *ast.Value {
	switch v := v.(type) {
	case string:
		return &ast.Value{Kind: ast.StringValue, Raw: v}
	case bool:
		return &ast.Value{Kind: ast.BooleanValue, Raw: strconv.FormatBool(v)}
	case int64:
		return &ast.Value{Kind: ast.IntValue, Raw: strconv.FormatInt(v, 10)}
	case int:
		return valueOf(int64(v))
	case []string:
		return listOf(v)
	case []int:
		return listOf(v)
	default:
		panic(fmt.Sprintf("no literal for %T", v))
	}
}

func listOf[T any](items []T) *ast.Value {
	list := &ast.Value{Kind: ast.ListValue}
	for _, item := range items {
		list.Children = append(list.Children, &ast.ChildValue{Value: valueOf(item)})
	}
	return list
}
