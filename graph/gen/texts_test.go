package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// TestTexts checks that the reference, the changelog of the schema and the client kit are up to date.
func TestTexts(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := texts(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 5 {
		t.Errorf("texts returned %d files, want 5", len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make generate", name)
		}
	}
}

// TestRelayScalars checks that the configuration of relay-compiler has the same scalars as the client kit.
func TestRelayScalars(t *testing.T) {
	read := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	var kit map[string]string
	var relay struct{ CustomScalarTypes map[string]string }
	read("web/kit/scalars.json", &kit)
	read("clients/relay.config.json", &relay)
	if !maps.Equal(kit, relay.CustomScalarTypes) {
		t.Errorf("clients/relay.config.json has the scalars %v, but web/kit/scalars.json has %v", relay.CustomScalarTypes, kit)
	}
}

// TestReference checks the reference and the client kit of a schema that contains every kind of definition.
func TestReference(t *testing.T) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "test", Input: `
"Where to begin."
type Query {
  "A | page."
  things("How many." first: Int = 2, "From where." after: String, "Which." kinds: [Kind!] = [A]): ThingConnection
  "Anything."
  any: Any @deprecated(reason: "old")
}
"A page." type ThingConnection { "What is on it." nodes: [Thing!]! }
"A thing." type Thing implements Node { "Its id." id: ID! "Its kind." kind: Kind "When." at: Time! }
"Has an id." interface Node { "The id." id: ID! }
"One of two." union Any = Thing | ThingConnection
"Kinds." enum Kind { "First." A "Last." B @deprecated }
"Condition." input Filter { "Least." least: Int = 1 }
"An instant." scalar Time @specifiedBy(url: "https://example.com/time")
`})
	if err != nil {
		t.Fatal(err)
	}
	text := string(reference(schema))
	for _, want := range []string{
		"- **Entry points**: [Query](#query)\n", "- **Inputs**: [Filter](#filter)\n",
		"### Query\n\nWhere to begin.\n",
		"| `things` | [ThingConnection](#thingconnection) | A \\| page. |\n",
		"| &nbsp; `things(first:)` | Int = `2` | How many. |\n",
		"| &nbsp; `things(kinds:)` | \\[[Kind](#kind)!\\] = `[A]` | Which. |\n",
		"| `any` | [Any](#any) | **Deprecated: old** Anything. |\n",
		"### Thing\n\nA thing.\n\nImplements [Node](#node).\n",
		"### Any\n\nOne of two.\n\nOne of [Thing](#thing), [ThingConnection](#thingconnection).\n",
		"| `least` | Int = `1` | Least. |\n",
		"| `A` | First. |\n", "| `B` | **Deprecated",
		"### Time\n\nAn instant.\n\nSpecified by <https://example.com/time>.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the reference lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "__") {
		t.Error("the reference shows introspection")
	}

	files, err := kit(schema)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"possibleTypes.json": `{"Any":["Thing","ThingConnection"],"Node":["Thing"]}`,
		"scalars.json":       `{"Time":"string"}`,
		"schema.ts":          `embeddedTypes:string[]=["ThingConnection"]`,
	} {
		if got := strings.Join(strings.Fields(string(files[name])), ""); !strings.Contains(got, want) {
			t.Errorf("%s is %s, want it to contain %s", name, files[name], want)
		}
	}
	if !strings.Contains(string(files["schema.ts"]), "\"things\": [\n      \"kinds\"\n    ]") {
		t.Errorf("schema.ts lacks the connection:\n%s", files["schema.ts"])
	}
}
