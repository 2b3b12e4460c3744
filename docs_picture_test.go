//go:build unix

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pictureEdges finds the arrows of a flowchart: solid ones are imports, dotted ones go through an interface.
var pictureEdges = regexp.MustCompile(`(?m)^\s*(\w+) (-->|-\.->) (\w+(?: & \w+)*)`)

// pictureNames finds nodes that are shown by another name than they are written with.
var pictureNames = regexp.MustCompile(`(\w+)\[(\w+)\]`)

// checkPicture compares the solid arrows of the picture with those that architecture_test.go allows, and the dotted ones with
// what that knows.
func (d *docs) checkPicture(t *testing.T, b block) {
	if b.file != "docs/architecture.md" {
		t.Fatal("there is one picture, that of the architecture")
	}
	allowed := architecture(t)
	short := map[string]string{}
	for pkg := range allowed {
		short[pkg[strings.LastIndexByte(pkg, '/')+1:]] = pkg
	}
	for _, m := range pictureNames.FindAllStringSubmatch(b.text, -1) {
		short[m[1]] = short[m[2]] // graph is a word of the language
	}
	drawn := map[string][]string{}
	for _, m := range pictureEdges.FindAllStringSubmatch(pictureNames.ReplaceAllString(b.text, "$1"), -1) {
		for to := range strings.SplitSeq(m[3], " & ") {
			from := m[1]
			switch {
			case m[2] == "-->" && short[from] != "" && short[to] != "":
				drawn[short[from]] = append(drawn[short[from]], short[to])
			case m[2] == "-->" && !slices.Contains(outside, from) && !slices.Contains(outside, to):
				t.Errorf("architecture_test.go does not know both ends of %s --> %s", from, to)
			case m[2] == "-.->" && (short[from] == "" || short[to] == ""):
				t.Errorf("architecture_test.go does not know both ends of %s -.-> %s", from, to)
			case m[2] == "-.->" && slices.Contains(allowed[short[from]], short[to]):
				t.Errorf("%s -.-> %s is an import: draw it solid", from, to)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(allowed)) {
		slices.Sort(allowed[pkg])
		slices.Sort(drawn[pkg])
		if !slices.Equal(allowed[pkg], drawn[pkg]) {
			t.Errorf("%s may import %v, drawn are %v", pkg, allowed[pkg], drawn[pkg])
		}
	}
}

// outside are the ends of the picture that are no packages.
var outside = []string{"client", "theVenue"}

// architecture returns the arrows of architecture_test.go, which is a package of its own.
func architecture(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "architecture_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	arrows := map[string][]string{}
	texts := func(n ast.Node) string {
		literal, ok := n.(*ast.BasicLit)
		if !ok {
			t.Fatalf("%T in arrows is no literal", n)
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "arrows" {
			return true
		}
		for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
			pair := element.(*ast.KeyValueExpr)
			from := texts(pair.Key)
			arrows[from] = []string{}
			for _, to := range pair.Value.(*ast.CompositeLit).Elts {
				arrows[from] = append(arrows[from], texts(to))
			}
		}
		return false
	})
	if len(arrows) < 10 {
		t.Fatalf("only %d packages in arrows", len(arrows))
	}
	return arrows
}
