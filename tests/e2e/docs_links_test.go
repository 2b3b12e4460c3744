//go:build unix

package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	markdown "github.com/yuin/goldmark/ast"

	"oddsgraph/graph"
)

// TestDocsLinks checks that the link targets, variables, metrics and make targets in the Markdown files exist.
func TestDocsLinks(t *testing.T) {
	verbs := regexp.MustCompile("`make ([a-z]+)")
	makefile := read(t, "Makefile")
	metrics := regexp.MustCompile(`\boddsgraph_[a-z0-9_]*[a-z0-9]\b`)
	sources, err := filepath.Glob("internal/telemetry/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("error %v; found %d files in internal/telemetry", err, len(sources))
	}
	telemetry := ""
	for _, file := range append(sources, "app/metrics.go", "app/metrics_shared.go") {
		telemetry += read(t, file)
	}
	known := anchors{}
	for _, file := range markdownFiles(t) {
		t.Run(file, func(t *testing.T) {
			content := read(t, file)
			checkSettings(t, content)
			for _, m := range verbs.FindAllStringSubmatch(content, -1) {
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					t.Errorf("the Makefile has no target %s", m[1])
				}
			}
			for _, name := range metrics.FindAllString(content, -1) {
				if !strings.Contains(telemetry, `"`+name+`"`) {
					t.Errorf("there is no metric %s", name)
				}
			}
			_ = markdown.Walk(parseMarkdown([]byte(content)), func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
				if !entering {
					return markdown.WalkContinue, nil
				}
				switch n := n.(type) {
				case *markdown.Link:
					known.checkLink(t, file, string(n.Destination))
				case *markdown.Image:
					known.checkLink(t, file, string(n.Destination))
				}
				return markdown.WalkContinue, nil
			})
		})
	}
}

// anchors maps each file to the anchors that GitHub generates for its headings.
type anchors map[string]map[string]bool

// checkLink fails if the file or heading of a link does not exist. It does not check links to other sites.
func (a anchors) checkLink(t *testing.T, from, link string) {
	t.Helper()
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return
	}
	path, anchor, _ := strings.Cut(link, "#")
	target := from
	if path != "" {
		target = filepath.Join(filepath.Dir(from), path)
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("the file of the link %s does not exist: %v", link, err)
		return
	}
	if anchor != "" && !a.ofFile(t, target)[anchor] {
		t.Errorf("the heading of the link %s does not exist", link)
	}
}

func (a anchors) ofFile(t *testing.T, file string) map[string]bool {
	t.Helper()
	if a[file] != nil {
		return a[file]
	}
	a[file] = map[string]bool{}
	content := []byte(read(t, file))
	_ = markdown.Walk(parseMarkdown(content), func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
		if heading, ok := n.(*markdown.Heading); ok && entering {
			a[file][anchorOf(string(linesOf(heading, content)))] = true
		}
		return markdown.WalkContinue, nil
	})
	return a[file]
}

// droppedInAnchor matches the characters that GitHub drops from an anchor.
var droppedInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorOf returns the anchor that GitHub generates for a heading.
func anchorOf(heading string) string {
	heading = droppedInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	return strings.ReplaceAll(heading, " ", "-")
}

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
