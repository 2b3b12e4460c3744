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

// kit returns the contents of the generated files of web/kit by their names. The files configure the caches of clients.
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
	codes, err := json.MarshalIndent(errorCodes(schema), "", "  ")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&code, "\n/** Every value of extensions.code. */\nexport const errorCodes = %s as const\n", codes)
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

func errorCodes(schema *ast.Schema) []string {
	codes := []string{}
	if def := schema.Types["ErrorCode"]; def != nil {
		for _, value := range def.EnumValues {
			codes = append(codes, value.Name)
		}
	}
	return codes
}

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

// scalarTypes returns the TypeScript type of each custom scalar. The type is always string, because all custom scalars are strings
// in JSON.
func scalarTypes(schema *ast.Schema) map[string]string {
	types := map[string]string{}
	for _, def := range schema.Types {
		if def.Kind == ast.Scalar && !def.BuiltIn {
			types[def.Name] = "string"
		}
	}
	return types
}

// embeddedTypes returns the sorted names of the object types without an id, except the root types.
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

// connections returns the argument names of each connection field, by type and field. It leaves out the arguments for paging.
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
