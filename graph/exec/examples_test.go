package exec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vektah/gqlparser/v2"
	gql "github.com/vektah/gqlparser/v2/ast"
)

// TestWrittenDocuments checks that gqlgen and package exec give the same responses to the queries in examples/ and in the
// end-to-end tests. The second universe lacks many values.
func TestWrittenDocuments(t *testing.T) {
	documents := literals(t)
	compared := 0
	for _, u := range []*universe{{seed: 5}, {seed: 6, absences: 10, misses: 30, failures: 20, damaged: 30}} {
		synctest.Test(t, func(t *testing.T) {
			b := newExecutorPair(t, u)
			w := &writer{Rand: rand.New(rand.NewPCG(u.seed, 2)), schema: b.schema, values: valuesOf(u)}
			for _, document := range documents {
				doc, errs := gqlparser.LoadQueryWithRules(b.schema, document, nil)
				if errs != nil || len(doc.Operations) != 1 || doc.Operations[0].Operation != gql.Query {
					continue
				}
				if strings.Contains(document, "__schema") || strings.Contains(document, "__type(") {
					continue // gqlgen's introspection differs from the specification; see TestIntrospection
				}
				variables := map[string]any{}
				for _, v := range doc.Operations[0].VariableDefinitions {
					if v.Type.Name() == "Boolean" {
						variables[v.Variable] = w.IntN(2) == 0 // @skip and @include accept no null
						continue
					}
					// gqlgen accepts null for a non-null argument; see TestNullForNonNull.
					if value := w.values(w, subject(v.Variable), v.Type); value != nil {
						variables[v.Variable] = value
					}
				}
				if o, err := b.parse(document, variables); err == nil {
					compared++
					o.compare(document)
				}
			}
		})
	}
	t.Logf("%d documents were compared", compared)
	if compared < 200 {
		t.Error("too few documents were valid")
	}
}

// subject guesses from a variable's name for which argument the document uses the variable.
func subject(variable string) string {
	for part, argument := range map[string]string{"market": "marketId", "event": "eventId", "slug": "slug", "after": "after"} {
		if strings.Contains(strings.ToLower(variable), part) {
			return argument
		}
	}
	return "tokenId"
}

// literals returns the files examples/*.graphql, and the string literals of the end-to-end tests that may be GraphQL documents.
func literals(t *testing.T) (texts []string) {
	t.Helper()
	glob := func(pattern string) []string {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("the pattern %s matches %d files (error %v)", pattern, len(files), err)
		}
		return files
	}
	for _, file := range glob("examples/*.graphql") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, file := range glob("tests/e2e/*_test.go") {
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
