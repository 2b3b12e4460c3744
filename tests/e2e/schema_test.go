package e2e

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// TestSchemaDescribesEverything checks that each type, field, argument, input field and enum value has a description.
func TestSchemaDescribesEverything(t *testing.T) {
	const file = "schema.graphqls"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: file, Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}

	wantDescription := func(description string, path ...string) {
		t.Helper()
		if strings.TrimSpace(description) == "" {
			t.Errorf("%s has no description", strings.Join(path, "."))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		def := schema.Types[name]
		if def.BuiltIn || strings.HasPrefix(name, "__") {
			continue
		}
		wantDescription(def.Description, name)
		for _, field := range def.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			wantDescription(field.Description, name, field.Name)
			for _, arg := range field.Arguments {
				wantDescription(arg.Description, name, field.Name, arg.Name)
			}
		}
		for _, value := range def.EnumValues {
			wantDescription(value.Description, name, value.Name)
		}
	}
}
