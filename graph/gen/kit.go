package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// kit returns the files of web/kit that follow from the schema, by name: what a client's cache has to know of the types.
func kit(schema *ast.Schema) (map[string][]byte, error) {
	possible, scalars := possibleTypes(schema), scalarTypes(schema)
	embedded, connections := embeddedTypes(schema), connections(schema)
	var code bytes.Buffer
	code.WriteString("// Made from schema.graphqls by \"make generate\"; changes belong there.\n")
	for _, constant := range []struct {
		comment, name, of string
		value             any
	}{
		{"The object types behind each interface.", "possibleTypes", "Record<string, string[]>", possible},
		{"Object types without an id, which a cache keeps inside of the object that shows them.", "embeddedTypes", "string[]", embedded},
		{"Fields that are read page by page, with the arguments that tell one list from another.", "connections", "Record<string, Record<string, string[]>>", connections},
	} {
		text, err := json.MarshalIndent(constant.value, "", "  ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&code, "\n/** %s */\nexport const %s: %s = %s\n", constant.comment, constant.name, constant.of, text)
	}
	files := map[string][]byte{"schema.ts": code.Bytes()}
	for name, value := range map[string]any{"possibleTypes.json": possible, "scalars.json": scalars} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return nil, err
		}
		files[name] = append(text, '\n')
	}
	return files, nil
}

// possibleTypes returns the names of the object types of each interface and union.
func possibleTypes(schema *ast.Schema) map[string][]string {
	types := map[string][]string{}
	for _, def := range schema.Types {
		if !def.IsAbstractType() {
			continue
		}
		for _, possible := range schema.PossibleTypes[def.Name] {
			types[def.Name] = append(types[def.Name], possible.Name)
		}
		slices.Sort(types[def.Name])
	}
	return types
}

// scalarTypes returns the type that each scalar of the schema's own has in TypeScript. All of them travel as texts, and a
// Decimal must not become a float on its way.
func scalarTypes(schema *ast.Schema) map[string]string {
	types := map[string]string{}
	for _, def := range schema.Types {
		if def.Kind == ast.Scalar && !def.BuiltIn {
			types[def.Name] = "string"
		}
	}
	return types
}

// embeddedTypes returns the names of the object types that have no id and are no entry point, in order.
func embeddedTypes(schema *ast.Schema) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		def := schema.Types[name]
		if def.Kind == ast.Object && !def.BuiltIn && !isRoot(schema, def) && def.Fields.ForName("id") == nil {
			names = append(names, name)
		}
	}
	return names
}

// connections returns by type and field the arguments of each connection but those that choose a page.
func connections(schema *ast.Schema) map[string]map[string][]string {
	lists := map[string]map[string][]string{}
	for _, def := range schema.Types {
		if def.Kind != ast.Object {
			continue
		}
		for _, field := range def.Fields {
			if field.Arguments.ForName("after") == nil || !strings.HasSuffix(field.Type.Name(), "Connection") {
				continue
			}
			keys := []string{}
			for _, arg := range field.Arguments {
				if arg.Name != "first" && arg.Name != "after" {
					keys = append(keys, arg.Name)
				}
			}
			if lists[def.Name] == nil {
				lists[def.Name] = map[string][]string{}
			}
			lists[def.Name][field.Name] = keys
		}
	}
	return lists
}

func isRoot(schema *ast.Schema, def *ast.Definition) bool {
	return def == schema.Query || def == schema.Mutation || def == schema.Subscription
}
