package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

const referenceHead = `# Schema reference

<!-- Made from schema.graphqls by "make generate"; changes belong there. -->

Every type of the graph with its fields, arguments, defaults and values, in the words of the schema itself. A type with a ` + "`!`" + `
is never null. How to ask, page, subscribe and read errors is in the [guide for frontends](frontend.md).
Changes since the last release are in the [schema changelog](schema-changelog.md), and [federation](federation.md) has a page of its own.
Documents may use the directives ` + "`@skip` and `@include`. A document with `@defer`" + ` is invalid, since a response has no later parts.

The service serves the schema at ` + "`/schema.graphql`" + `, and a command prints it. Flags add directives that tools read:

` + "```sh" + `
oddsgraph schema > schema.graphql
oddsgraph schema --semantic > semantic.graphql
` + "```" + `

- ` + "`--semantic`" + ` adds ` + "`@semanticNonNull`" + ` to the nullable fields that are null only together with an entry in ` + "`errors`" + `. If a client
  throws such errors, Relay and Apollo Kotlin give these fields non-null types. ` + "`levels: [0, 1]`" + ` means the list and its items.
`

// sections contains the sections of the reference. Each section describes some of the types: its function "has" selects them.
var sections = []struct {
	title string
	has   func(*ast.Schema, *ast.Definition) bool
}{
	{"Entry points", isRoot},
	{"Objects", func(s *ast.Schema, d *ast.Definition) bool { return d.Kind == ast.Object && !isRoot(s, d) }},
	{"Interfaces", func(_ *ast.Schema, d *ast.Definition) bool { return d.IsAbstractType() }},
	{"Inputs", func(_ *ast.Schema, d *ast.Definition) bool { return d.Kind == ast.InputObject }},
	{"Enums", func(_ *ast.Schema, d *ast.Definition) bool { return d.Kind == ast.Enum }},
	{"Scalars", func(_ *ast.Schema, d *ast.Definition) bool { return d.Kind == ast.Scalar }},
}

func reference(schema *ast.Schema) []byte {
	var all []*ast.Definition
	for _, def := range schema.Types {
		if !def.BuiltIn {
			all = append(all, def)
		}
	}
	// The reference keeps the order of schema.graphqls, because related types are next to each other there.
	slices.SortFunc(all, func(a, b *ast.Definition) int { return cmp.Compare(a.Position.Start, b.Position.Start) })
	r := referenceOf{schema: schema}
	r.WriteString(referenceHead)
	if schema.Description != "" {
		r.WriteString("\n" + schema.Description + "\n")
	}
	var types [][]*ast.Definition
	for _, section := range sections {
		var selected []*ast.Definition
		for _, def := range all {
			if section.has(schema, def) {
				selected = append(selected, def)
			}
		}
		types = append(types, selected)
	}
	r.WriteByte('\n')
	for i, section := range sections {
		names := make([]string, len(types[i]))
		for j, def := range types[i] {
			names[j] = r.link(def.Name)
		}
		fmt.Fprintf(&r, "- **%s**: %s\n", section.title, strings.Join(names, ", "))
	}
	for i, section := range sections {
		fmt.Fprintf(&r, "\n## %s\n", section.title)
		for _, def := range types[i] {
			r.definition(def)
		}
	}
	return r.Bytes()
}

type referenceOf struct {
	bytes.Buffer
	schema *ast.Schema
}

func (r *referenceOf) definition(def *ast.Definition) {
	fmt.Fprintf(r, "\n### %s\n\n%s\n", def.Name, strings.TrimSpace(def.Description))
	if len(def.Interfaces) > 0 {
		links := make([]string, len(def.Interfaces))
		for i, name := range def.Interfaces {
			links[i] = r.link(name)
		}
		fmt.Fprintf(r, "\nImplements %s.\n", strings.Join(links, ", "))
	}
	if def.IsAbstractType() {
		names := possibleTypes(r.schema)[def.Name]
		for i, name := range names {
			names[i] = r.link(name)
		}
		fmt.Fprintf(r, "\nOne of %s.\n", strings.Join(names, ", "))
	}
	if d := def.Directives.ForName("specifiedBy"); d != nil {
		url := d.Arguments.ForName("url").Value.Raw
		fmt.Fprintf(r, "\nSpecified by <%s>.\n", url)
	}
	if len(def.EnumValues) > 0 {
		r.WriteString("\n| Value | |\n|---|---|\n")
		for _, value := range def.EnumValues {
			fmt.Fprintf(r, "| `%s` | %s%s |\n", value.Name, deprecationText(value.Directives), cell(value.Description))
		}
	}
	fields := slices.DeleteFunc(slices.Clone(def.Fields), func(f *ast.FieldDefinition) bool { return strings.HasPrefix(f.Name, "__") })
	if len(fields) == 0 {
		return
	}
	r.WriteString("\n| Field | Type | |\n|---|---|---|\n")
	for _, field := range fields {
		fmt.Fprintf(r, "| `%s` | %s%s | %s%s |\n",
			field.Name, r.typeOf(field.Type), defaultText(field.DefaultValue), deprecationText(field.Directives), cell(field.Description))
		for _, arg := range field.Arguments {
			fmt.Fprintf(r, "| &nbsp; `%s(%s:)` | %s%s | %s%s |\n",
				field.Name, arg.Name, r.typeOf(arg.Type), defaultText(arg.DefaultValue), deprecationText(arg.Directives), cell(arg.Description))
		}
	}
}

// typeOf returns a type in the notation of the schema, with a link to its description.
func (r *referenceOf) typeOf(t *ast.Type) string {
	text := t.String()
	name := t.Name()
	before, after, _ := strings.Cut(text, name)
	before = strings.ReplaceAll(before, "[", `\[`)
	after = strings.ReplaceAll(after, "]", `\]`)
	return before + r.link(name) + after
}

// link returns the name of a type, as a link if the reference describes the type.
func (r *referenceOf) link(name string) string {
	if def := r.schema.Types[name]; def == nil || def.BuiltIn {
		return name
	}
	return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
}

func defaultText(v *ast.Value) string {
	if v == nil {
		return ""
	}
	return " = `" + v.String() + "`"
}

func deprecationText(directives ast.DirectiveList) string {
	d := directives.ForName("deprecated")
	if d == nil {
		return ""
	}
	reason := ""
	if arg := d.Arguments.ForName("reason"); arg != nil {
		reason = ": " + cell(arg.Value.Raw)
	}
	return "**Deprecated" + reason + "** "
}

// cell returns a text for a cell of a Markdown table: in one line, and with escaped vertical bars.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
