package sdl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph"
	"oddsgraph/graph/sdl"
)

// printAndParse adds directives to the text of a schema and parses the result.
func printAndParse(t *testing.T, text string, o sdl.Options) *ast.Schema {
	t.Helper()
	out, err := sdl.Print(text, o)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: out})
	if err != nil {
		t.Fatalf("the printed schema is not valid: %v in\n%s", err, out)
	}
	return schema
}

// TestPlainSchemaIsUnchanged checks that Print without options returns the text of schema.graphqls unchanged.
func TestPlainSchemaIsUnchanged(t *testing.T) {
	if got, err := sdl.Print(graph.SDL(), sdl.Options{}); err != nil || got != graph.SDL() {
		t.Errorf("Print returned %d bytes and the error %v, want the %d bytes of the schema", len(got), err, len(graph.SDL()))
	}
}

// TestNullableFieldsSayWhenTheyAreNull checks that the description of a field contains the word null if the field or an element of
// its list is nullable. Level 0 is the field, and level 1 its elements. A level that @semanticNonNull lists needs no such
// description.
func TestNullableFieldsSayWhenTheyAreNull(t *testing.T) {
	schema := printAndParse(t, graph.SDL(), sdl.Options{Semantic: true})
	marked := 0
	for name, def := range schema.Types {
		if def.Kind != ast.Object || def.BuiltIn {
			continue
		}
		for _, f := range def.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			levels := levelsOf(f)
			if levels != nil {
				marked++
			}
			level := 0
			for at := f.Type; at != nil; at = at.Elem {
				if !at.NonNull && !slices.Contains(levels, level) && !strings.Contains(strings.ToLower(f.Description), "null") {
					t.Errorf("%s.%s can be null at level %d, but its description does not say when, and the map nonNull of package sdl lacks the level", name, f.Name, level)
				}
				level++
			}
		}
	}
	if marked < 15 {
		t.Errorf("%d fields have @semanticNonNull, want at least 15", marked)
	}
}

// levelsOf returns the levels of a field's @semanticNonNull, or nil if the field does not have the directive.
func levelsOf(f *ast.FieldDefinition) (levels []int) {
	d := f.Directives.ForName("semanticNonNull")
	if d == nil {
		return nil
	}
	argument := d.Arguments.ForName("levels")
	if argument == nil {
		return []int{0}
	}
	for _, child := range argument.Value.Children {
		levels = append(levels, int(child.Value.Raw[0]-'0'))
	}
	return levels
}

// TestSemanticListFitsTheSchema checks that Print returns an error if the map nonNull of package sdl contradicts the schema.
func TestSemanticListFitsTheSchema(t *testing.T) {
	for _, test := range []struct{ old, changed, says string }{
		{"): MarketConnection\n", "): MarketConnection!\n", "is never null at level 0"},
		{"  tokenPrices(", "  allPrices(", "the schema has no Query.tokenPrices"},
		{"  ): [Token]\n", "  ): [Token!]\n", "Query.tokens is never null at level 1"},
	} {
		changed := strings.Replace(graph.SDL(), test.old, test.changed, 1)
		if changed == graph.SDL() {
			t.Fatalf("schema.graphqls does not contain %q", test.old)
		}
		if _, err := sdl.Print(changed, sdl.Options{Semantic: true}); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Print returned the error %v, want an error with the text %q", err, test.says)
		}
	}
}
