package resolvers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestResolversAreShort checks that the methods of types such as tokenResolver have few lines. Longer code belongs in the packages
// that the methods call.
func TestResolversAreShort(t *testing.T) {
	const mean, most = 9, 25
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fields, total := 0, 0
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || !method.Name.IsExported() {
				continue
			}
			star, ok := method.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			receiver, ok := star.X.(*ast.Ident)
			if !ok || !strings.HasSuffix(receiver.Name, "Resolver") || receiver.Name == "Resolver" {
				continue
			}
			lines := set.Position(method.Body.Rbrace).Line - set.Position(method.Body.Lbrace).Line - 1
			fields, total = fields+1, total+lines
			if lines > most {
				t.Errorf("%s.%s has %d lines, more than %d", receiver.Name, method.Name.Name, lines, most)
			}
			if testing.Verbose() {
				t.Logf("%3d %s.%s", lines, receiver.Name, method.Name.Name)
			}
		}
	}
	if fields < 50 {
		t.Errorf("only %d resolvers were found", fields)
	}
	if total > mean*fields {
		t.Errorf("%d resolvers have %d lines, more than %d on average", fields, total, mean)
	}
}
