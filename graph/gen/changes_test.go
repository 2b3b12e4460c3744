package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// TestSchemaBreaksNoClient checks that schema.graphqls does not break clients of the last release.
func TestSchemaBreaksNoClient(t *testing.T) {
	root := filepath.Join("..", "..")
	now, err := load(filepath.Join(root, schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	released, err := load(filepath.Join(root, releasedFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range breakingChanges(changesOf(released, now)) {
		t.Errorf("%s; keep it, and deprecate it for a release before you remove it", c)
	}
}

// breakingChanges returns a line for each change that breaks clients.
func breakingChanges(changes []change) (lines []string) {
	for _, c := range changes {
		if c.effect == breaks {
			lines = append(lines, c.coordinate+" "+c.text)
		}
	}
	return lines
}

// baseSchema is the schema that the tests change. It contains every kind of definition.
const baseSchema = `
type Query {
  a(x: Int = 1, y: [String!]!, old: Int @deprecated): A
  list: [A]
  old: Old @deprecated(reason: "use a")
  kind: Kind!
  both: Both
}
type A implements Node { id: ID! name: String size: Int! gone: Int @deprecated }
type B { b: Int }
type Old { older: Older }
type Older { x: Int }
interface Node { id: ID! }
union Both = A | B
enum Kind { ONE TWO THREE @deprecated }
input Filter { min: Int max: Int! = 2 }
scalar Time
directive @live(every: Int) on QUERY | FIELD
`

// TestChanges checks the text of each kind of change.
func TestChanges(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"type Query {", `type Query { "More. And more." more: Int `, "Added Query.more: More."},
		{"x: Int = 1", `x: Int = 1, "New." z: Int! = 3`, "Added Query.a(z:): New."},
		{"x: Int = 1", "x: Int = 1, z: Int!", "Breaking Query.a(z:) is new and required"},
		{"x: Int = 1, ", "", "Breaking Query.a(x:) is removed and was not deprecated in the last release"},
		{", old: Int @deprecated", "", "Removed Query.a(old:) was deprecated"},
		{"x: Int = 1", "x: Int! = 1", "Breaking Query.a(x:) has the type Int! instead of Int"},
		{"x: Int = 1", "x: Int = 2", "Changed Query.a(x:) has the default 2 instead of 1"},
		{"x: Int = 1", "x: Int", "Changed Query.a(x:) has the default none instead of 1"},
		{"y: [String!]!", "y: [String!]", "Changed Query.a(y:) has the type [String!] instead of [String!]!"},
		{"y: [String!]!", "y: [ID!]!", "Breaking Query.a(y:) has the type [ID!]! instead of [String!]!"},
		{"y: [String!]!", "y: String!", "Breaking Query.a(y:) has the type String! instead of [String!]!"},
		{"list: [A]", "list: [A!]!", "Changed Query.list has the type [A!]! instead of [A]"},
		{"list: [A]", "list: A", "Breaking Query.list has the type A instead of [A]"},
		{"list: [A]", "list: [B]", "Breaking Query.list has the type [B] instead of [A]"},
		{"kind: Kind!", "kind: Kind", "Breaking Query.kind has the type Kind instead of Kind!"},
		{"size: Int!", `size: Int! @deprecated(reason: "of no use")`, "Deprecated A.size is deprecated: of no use"},
		{"gone: Int @deprecated", "gone: Int", "Changed A.gone is no longer deprecated"},
		{"gone: Int @deprecated", "", "Removed A.gone was deprecated"},
		{"name: String", "", "Breaking A.name is removed and was not deprecated in the last release"},
		{"type A implements Node", "type A", "Breaking A no longer implements Node"},
		{"type B {", "type B implements Node { id: ID! ", "Changed B implements Node; Added B.id: "},
		{"type Older { x: Int }", "interface Older { x: Int } type C implements Older { x: Int }", "Breaking Older is an interface instead of an object; Added C: "},
		{"old: Old @deprecated(reason: \"use a\")", "", "Removed Query.old was deprecated"},
		{"ONE", "", "Breaking Kind.ONE is removed and was not deprecated in the last release"},
		{"THREE @deprecated", "", "Removed Kind.THREE was deprecated"},
		{"TWO", `TWO "Last." FOUR`, "Added Kind.FOUR: Last."},
		{"= A | B", "= A", "Breaking Both no longer contains B"},
		{"= A | B", "= A | B | Old", "Changed Both also contains Old"},
		{"input Filter {", "input Filter { more: Int!", "Breaking Filter.more is new and required"},
		{"input Filter {", "input Filter @oneOf {", "Breaking Filter accepts exactly one of its fields"},
		{"min: Int ", "", "Breaking Filter.min is removed and was not deprecated in the last release"},
		{"max: Int! = 2", "max: Int!", "Breaking Filter.max is required and had the default 2"},
		{"max: Int! = 2", "max: Int", "Changed Filter.max has the type Int instead of Int!; Changed Filter.max has the default none instead of 2"},
		{"scalar Time", `scalar Time @specifiedBy(url: "https://example.com")`, "Changed Time names its specification"},
		{"scalar Time", "", "Breaking Time is removed and was not deprecated in the last release"},
		{" | FIELD", "", "Breaking @live is no longer accepted at field"},
		{"(every: Int)", "", "Breaking @live(every:) is removed and was not deprecated in the last release"},
		{"directive @live(every: Int) on QUERY | FIELD", "", "Breaking @live is removed and was not deprecated in the last release"},
		{"type Query {", "schema { query: Root } type Query { x: Int } type Root {", ""},
	} {
		after := strings.Replace(baseSchema, test.from, test.to, 1)
		if after == baseSchema {
			t.Errorf("the test schema does not contain %q", test.from)
		}
		var got []string
		for _, c := range changesOf(parseSchema(t, baseSchema), parseSchema(t, after)) {
			separator := " "
			if c.effect == adds {
				separator = ": "
			}
			got = append(got, titles[c.effect]+" "+c.coordinate+separator+c.text)
		}
		if text := strings.Join(got, "; "); test.want != "" && text != test.want {
			t.Errorf("after the change of %q to %q, the changes are\n%s\nwant\n%s", test.from, test.to, text, test.want)
		} else if test.want == "" && !strings.Contains(text, "Breaking Query is no longer the type of a query") {
			t.Errorf("after the change of %q to %q, the changes are %s, want a change of the query type", test.from, test.to, text)
		}
	}
	if changes := changesOf(parseSchema(t, baseSchema), parseSchema(t, baseSchema)); len(changes) > 0 {
		t.Errorf("equal schemas have the changes %v", changes)
	}
}

// TestUnusedTypesAreRemoved checks that a type may be removed if only deprecated fields and removed types use it. If another field
// uses the type, the removal of the type must break clients.
func TestUnusedTypesAreRemoved(t *testing.T) {
	after := strings.NewReplacer(`old: Old @deprecated(reason: "use a")`, "", "type Old { older: Older }", "", "type Older { x: Int }", "").Replace(baseSchema)
	want := []change{{removes, "Old", "was deprecated"}, {removes, "Older", "was deprecated"}, {removes, "Query.old", "was deprecated"}}
	if got := changesOf(parseSchema(t, baseSchema), parseSchema(t, after)); !slices.Equal(got, want) {
		t.Errorf("the changes are %v, want %v", got, want)
	}
	used := strings.Replace(baseSchema, "type B {", "type B { older: Older ", 1)
	if got := changesOf(parseSchema(t, used), parseSchema(t, after)); len(breakingChanges(got)) != 2 {
		t.Errorf("after the removal of a used type, the changes are %v, want two that break clients", got)
	}
}

func parseSchema(t *testing.T, text string) *ast.Schema {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: text})
	if err != nil {
		t.Fatalf("the schema is not valid: %v in %s", err, text)
	}
	return schema
}

// TestRelease checks that a release gets its own section in the changelog. The section Unreleased must then list only newer
// changes. Invalid version numbers must be refused.
func TestRelease(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	generated := func() string {
		t.Helper()
		files, err := texts(".")
		if err != nil {
			t.Fatal(err)
		}
		write(changelogFile, string(files[changelogFile]))
		return strings.TrimPrefix(string(files[changelogFile]), changelogHead+"\n")
	}
	write(releasedFile, "type Query { a: Int }")
	write(schemaFile, `type Query { a: Int "Two." b: Int }`)
	if got, want := generated(), "## Unreleased\n\n### Added\n\n- `Query.b`: Two.\n"; got != want {
		t.Errorf("the changelog is %q, want %q", got, want)
	}
	for version, day := range map[string]int{"1.0": 1, "v1.0.0": 1} {
		if err := release(version, time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)); err == nil {
			t.Errorf("release accepts the version %s, want an error", version)
		}
	}
	if err := release("1.0.0", time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if got, want := generated(), "## Unreleased\n\nNo changes.\n\n## 1.0.0 (2026-01-31)\n\n### Added\n\n- `Query.b`: Two.\n"; got != want {
		t.Errorf("the changelog is %q, want %q", got, want)
	}
	write(schemaFile, `type Query { a: Int @deprecated(reason: "no") b: Int }`)
	want := "## Unreleased\n\n### Deprecated\n\n- `Query.a` is deprecated: no\n\n## 1.0.0 (2026-01-31)\n\n### Added\n\n- `Query.b`: Two.\n"
	for range 2 {
		if got := generated(); got != want {
			t.Errorf("the changelog is %q, want %q", got, want)
		}
	}
}
