//go:build unix

package e2e

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oddsgraph/graph"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// shownDocument is a GraphQL document that users may copy. The field place says where it appears.
type shownDocument struct{ place, text string }

var (
	documentInJSON     = regexp.MustCompile(`"((?:\{|query\b|subscription\b|fragment\b)(?:[^"\\]|\\.)*\})"`)
	definesTypes       = regexp.MustCompile(`(?m)^(extend schema|schema|type|interface|scalar) `)
	documentInTemplate = regexp.MustCompile("(?s)(?:gql|graphql)\\s*`([^`]+)`")
)

// shownDocuments returns the GraphQL documents in examples/, the web pages, clients/ and the documentation. It omits documents that
// define types, and documents for relay-compiler, which adds ids itself.
func shownDocuments(t *testing.T) (documents []shownDocument) {
	t.Helper()
	for _, dir := range []string{"examples", "web/explore", "web/live", "web/kit", "clients/operations"} {
		err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist") {
				return fs.SkipDir
			}
			if err == nil && filepath.Ext(file) == ".graphql" {
				documents = append(documents, shownDocument{file, read(t, file)})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range readDocs(t) {
		switch b.lang {
		case "graphql":
			documents = append(documents, shownDocument{b.String(), b.text})
		case "ts":
			for _, match := range documentInTemplate.FindAllStringSubmatch(b.text, -1) {
				if !strings.Contains(b.text, "'react-relay'") && !strings.Contains(b.text, "'relay-runtime'") {
					documents = append(documents, shownDocument{b.String(), match[1]})
				}
			}
		default:
			for _, match := range documentInJSON.FindAllStringSubmatch(b.text, -1) {
				var text string
				if err := json.Unmarshal([]byte(`"`+match[1]+`"`), &text); err != nil {
					t.Errorf("%s: %v in %s", b, err, match[1])
				}
				documents = append(documents, shownDocument{b.String(), text})
			}
		}
	}
	return slices.DeleteFunc(documents, func(d shownDocument) bool { return definesTypes.MatchString(d.text) })
}

// TestShownDocumentsSelectIDs checks that documents select id on every type that has this field. The normalised cache of a GraphQL
// client identifies objects by id. Without the id, the cache would replace the object and lose the lists that were loaded for
// the object.
func TestShownDocumentsSelectIDs(t *testing.T) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphqls", Input: graph.SDL()})
	if err != nil {
		t.Fatal(err)
	}
	documents := shownDocuments(t)
	if len(documents) < 25 {
		t.Fatalf("only %d documents were found", len(documents))
	}
	for _, shown := range documents {
		for _, missing := range pathsWithoutID(t, schema, shown) {
			t.Errorf("%s: the selection set %s does not select id", shown.place, missing)
		}
	}
}

// pathsWithoutID returns the paths of the selection sets that do not select id, although their type has this field.
func pathsWithoutID(t *testing.T, schema *ast.Schema, shown shownDocument) (paths []string) {
	t.Helper()
	doc, err := parser.ParseQuery(&ast.Source{Name: shown.place, Input: shown.text})
	if err != nil {
		t.Fatalf("%s: %v in %s", shown.place, err, shown.text)
	}
	// selects reports whether a selection set selects the field id, directly or through a fragment of the same document.
	var selects func(parent *ast.Definition, set ast.SelectionSet) bool
	selects = func(parent *ast.Definition, set ast.SelectionSet) bool {
		return slices.ContainsFunc(set, func(s ast.Selection) bool {
			switch s := s.(type) {
			case *ast.Field:
				return s.Name == "id" && s.Alias == "id"
			case *ast.FragmentSpread:
				f := doc.Fragments.ForName(s.Name)
				return f != nil && selects(parent, f.SelectionSet)
			case *ast.InlineFragment:
				return (s.TypeCondition == "" || s.TypeCondition == parent.Name) && selects(parent, s.SelectionSet)
			}
			return false
		})
	}
	var walk func(path string, parent *ast.Definition, set ast.SelectionSet, has bool)
	walk = func(path string, parent *ast.Definition, set ast.SelectionSet, has bool) {
		if has = has || selects(parent, set); !has && parent.Fields.ForName("id") != nil {
			paths = append(paths, path+" ("+parent.Name+")")
		}
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				field := parent.Fields.ForName(s.Name)
				if s.SelectionSet == nil || strings.HasPrefix(s.Name, "__") {
					continue
				}
				if field == nil {
					t.Fatalf("%s: %s has no field %s", shown.place, parent.Name, s.Name)
				}
				walk(path+"."+s.Alias, schema.Types[field.Type.Name()], s.SelectionSet, false)
			case *ast.InlineFragment:
				definition := parent
				if s.TypeCondition != "" {
					definition = schema.Types[s.TypeCondition]
				}
				walk(path, definition, s.SelectionSet, has)
			}
		}
	}
	for _, op := range doc.Operations {
		root := map[ast.Operation]*ast.Definition{ast.Query: schema.Query, ast.Subscription: schema.Subscription}[op.Operation]
		walk(op.Name, root, op.SelectionSet, false)
	}
	for _, f := range doc.Fragments {
		walk(f.Name, schema.Types[f.TypeCondition], f.SelectionSet, false)
	}
	return paths
}
