package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	gql "github.com/vektah/gqlparser/v2/ast"
)

// TestCompiledSelections asks two services over one venue, the second of which executes everything by gqlgen, whatever is in
// examples/ and in the tests of this package. Their answers must be the same to the byte, the first ones and those of what is
// in the cache.
func TestCompiledSelections(t *testing.T) {
	owner := start(t) // of the venue
	shared := []string{"--venue-url=" + owner.demo.url(), "--venue-public-per-minute=0", "--venue-key-per-minute=0"}
	compiled, library := start(t, shared...), start(t, append(shared, "--compiled=false")...)
	schema, err := gqlparser.LoadSchema(&gql.Source{Input: sdl})
	if err != nil {
		t.Fatal(err)
	}
	documents := exampleDocuments(t)
	for _, text := range literals(t) {
		documents = append(documents, document{text, nil})
	}
	asked := 0
	for _, d := range documents {
		doc, errs := gqlparser.LoadQueryWithRules(schema, d.text, nil)
		if errs != nil || len(doc.Operations) != 1 || doc.Operations[0].Operation != gql.Query {
			continue
		}
		if d.variables == nil {
			d.variables = variablesFor(owner, doc.Operations[0])
		}
		body, err := json.Marshal(map[string]any{"query": d.text, "variables": d.variables})
		if err != nil {
			t.Fatal(err)
		}
		asked++
		for _, who := range []string{keyOf50, anonymous} {
			for _, when := range []string{"first", "from the cache"} {
				got := compiled.do(t, compiled.request(t, string(body), who))
				want := library.do(t, library.request(t, string(body), who))
				if got.status != want.status || anyRequest.ReplaceAllString(got.body, "") != anyRequest.ReplaceAllString(want.body, "") {
					t.Errorf("%s, answered %s:\n got %d %.2000s\nwant %d %.2000s", d.text, when, got.status, got.body, want.status, want.body)
				}
			}
		}
	}
	t.Logf("%d documents", asked)
	if asked < 100 {
		t.Errorf("only %d documents were asked", asked)
	}
}

// anyRequest is what tells the answers to two requests apart.
var anyRequest = regexp.MustCompile(`"requestId":"[^"]*"`)

// document is a document, with its variables where they are known.
type document struct {
	text      string
	variables vars
}

func exampleDocuments(t *testing.T) (out []document) {
	files, err := filepath.Glob("examples/*.graphql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		d := document{text: read(t, file)}
		decode(t, read(t, strings.TrimSuffix(file, ".graphql")+".json"), &d.variables)
		out = append(out, d)
	}
	return out
}

// literals returns the texts in the tests of this package that may be documents.
func literals(t *testing.T) (texts []string) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && strings.Contains(text, "{") {
					texts = append(texts, text)
				}
			}
			return true
		})
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// variablesFor makes up the variables that an operation needs.
func variablesFor(s *service, op *gql.OperationDefinition) vars {
	tokens, markets := s.openTokens(5), s.openMarkets(5)
	out := vars{}
	for _, v := range op.VariableDefinitions {
		name, of := strings.ToLower(v.Variable), v.Type.Name()
		var one, many any = "x", []string{"x"}
		switch {
		case of == "Address":
			one = addressOf50
		case of == "Int":
			one = 3
		case of == "Boolean":
			one = true
		case of == "Decimal":
			one = "1.5"
		case of == "Date":
			one = "2026-03-10"
		case of == "DateTime":
			one = "2026-03-10T00:00:00Z"
		case v.Definition != nil && v.Definition.Kind == gql.Enum:
			one = v.Definition.EnumValues[0].Name
		case strings.Contains(name, "market"):
			one, many = markets[0], markets
		case of == "String" || of == "ID":
			one, many = tokens[0], tokens
		}
		switch {
		case v.Type.Elem != nil:
			out[v.Variable] = many
		case v.Type.NonNull || fmt.Sprint(one) != "x":
			out[v.Variable] = one
		}
	}
	return out
}
