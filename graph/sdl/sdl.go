// Package sdl prints the schema with directives for tools. The directives say where null means failure, and which types are entities
// of a federated graph.
package sdl

import (
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
	// Federation turns the schema into the schema of a Federation 2 subgraph.
	Federation bool
}

// Print adds the directives to the text of a schema. If no option is set, it returns the text unchanged.
func Print(text string, o Options) (string, error) {
	if !o.Semantic && !o.Federation {
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
	var b strings.Builder
	b.WriteString(head)
	formatter.NewFormatter(&b, formatter.WithIndent("  ")).FormatSchemaDocument(doc)
	return b.String(), nil
}

type annotation struct {
	schema *ast.Schema
	doc    *ast.SchemaDocument
}

func directive(name string, arguments ...*ast.Argument) *ast.Directive {
	return &ast.Directive{Name: name, Arguments: arguments}
}
