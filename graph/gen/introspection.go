package main

import (
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/codegen"
)

// kindsWith contains the fields of __Type that have a value only for some kinds of types, and these kinds. For every other kind the
// field is null (section 4.2.2 of the specification). gqlgen returns an empty list or false instead, so the generated code checks
// the kind: https://github.com/99designs/gqlgen/issues/1867.
var kindsWith = map[string][]string{
	"fields":        {"OBJECT", "INTERFACE"},
	"interfaces":    {"OBJECT", "INTERFACE"},
	"possibleTypes": {"INTERFACE", "UNION"},
	"enumValues":    {"ENUM"},
	"inputFields":   {"INPUT_OBJECT"},
	"isOneOf":       {"INPUT_OBJECT"},
}

func (f *file) kindCheck(field *codegen.Field) {
	if field.Object.Name != "__Type" || kindsWith[field.Name] == nil {
		return
	}
	var differs []string
	for _, kind := range kindsWith[field.Name] {
		differs = append(differs, fmt.Sprintf("kind != %q", kind))
	}
	f.line("if kind := obj.Kind(); %s {\nx.Null()\nbreak\n}", strings.Join(differs, " && "))
}
