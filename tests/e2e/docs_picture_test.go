//go:build unix

package e2e

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

// pictureArrows matches the arrows of the Mermaid flowchart. A solid arrow means an import. A dotted arrow means a call through an
// interface.
var pictureArrows = regexp.MustCompile(` (-->|-\.->) `)

// maxBoxes is the maximum number of boxes in the picture.
const maxBoxes = 10

// pictureNames matches nodes that have a label other than their name.
var pictureNames = regexp.MustCompile(`(\w+)\[(\w+)\]`)

// checkPicture compares the solid arrows of the flowchart with the imports that architecture_test.go allows. A dotted arrow must
// not be one of these imports.
func (d *docs) checkPicture(t *testing.T, b block) {
	if b.file != "docs/architecture.md" {
		t.Fatal("only docs/architecture.md may have a Mermaid picture")
	}
	allowed := allowedImports(t)
	short := map[string]string{}
	for pkg := range allowed {
		short[pkg[strings.LastIndexByte(pkg, '/')+1:]] = pkg
	}
	for _, m := range pictureNames.FindAllStringSubmatch(b.text, -1) {
		short[m[1]] = short[m[2]] // the node for the package "graph" has another name, because "graph" is a keyword of Mermaid
	}
	drawn, boxes := map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(pictureNames.ReplaceAllString(b.text, "$1")) {
		nodes, arrows := pictureArrows.Split(strings.TrimSpace(line), -1), pictureArrows.FindAllStringSubmatch(line, -1)
		for i, arrow := range arrows {
			from := nodes[i]
			boxes[from] = true
			for to := range strings.SplitSeq(nodes[i+1], " & ") {
				boxes[to] = true
				switch {
				case outside(from) || outside(to):
				case short[from] == "" || short[to] == "":
					t.Errorf("architecture_test.go does not know both ends of %s %s %s", from, arrow[1], to)
				case arrow[1] == "-->":
					drawn[short[from]] = append(drawn[short[from]], short[to])
				case slices.Contains(allowed[short[from]], short[to]):
					t.Errorf("%s -.-> %s is an import: draw a solid arrow", from, to)
				}
			}
		}
	}
	if len(boxes) > maxBoxes {
		t.Errorf("the picture has %d boxes, want at most %d", len(boxes), maxBoxes)
	}
	for _, pkg := range slices.Sorted(maps.Keys(allowed)) {
		slices.Sort(allowed[pkg])
		slices.Sort(drawn[pkg])
		if !slices.Equal(allowed[pkg], drawn[pkg]) {
			t.Errorf("%s may import %v, but the picture has arrows to %v", pkg, allowed[pkg], drawn[pkg])
		}
	}
}

// outside reports whether a node of the flowchart is not a package.
func outside(node string) bool { return strings.Contains(node, "([") }

// allowedImports returns the allowed imports of each package. It parses architecture_test.go, which is in another package.
func allowedImports(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "tests/architecture/architecture_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	arrows := map[string][]string{}
	texts := func(n ast.Node) string {
		literal, ok := n.(*ast.BasicLit)
		if !ok {
			t.Fatalf("the variable arrows in architecture_test.go contains a %T, want a literal", n)
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
		t.Fatalf("the variable arrows in architecture_test.go has only %d packages", len(arrows))
	}
	return arrows
}
