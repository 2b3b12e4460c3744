package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These constants limit the lines of server.go, of other files, of test files and of functions, and the packages directly in
// internal.
const maxServer, maxFile, maxTestFile, maxFunction, maxInternal = 150, 400, 600, 60, 12

// goFiles returns the text of each Go file whose path the filter accepts. It omits generated files.
func goFiles(t *testing.T, filter func(name string) bool) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || !filter(file) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err == nil && !bytes.Contains(text, []byte("\n// Code generated ")) && !bytes.HasPrefix(text, []byte("// Code generated ")) {
			files[filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))] = text
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("the test found only %d files, want at least 10", len(files))
	}
	return files
}

// contextKeys are the only files that may put a value into a context: the client's request. Everything else is a field of this value,
// or a parameter.
var contextKeys = []string{"internal/request/context.go"}

var keepsValue = regexp.MustCompile(`context\.WithValue\(|\) Value\(\w+ any\) any \{`)

// TestContextKeys checks that the files in contextKeys, and no others, put values into contexts.
func TestContextKeys(t *testing.T) {
	product := func(file string) bool {
		return !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/bench/") && !strings.Contains(file, "/tests/")
	}
	for name, text := range goFiles(t, product) {
		if keepsValue.Match(text) != slices.Contains(contextKeys, name) {
			t.Errorf("%s puts a value into a context: %v; want that of %q alone", name, keepsValue.Match(text), contextKeys)
		}
	}
}

// TestSizes checks that no file is longer than its limit, and that no function outside test files is longer than maxFunction.
func TestSizes(t *testing.T) {
	check := func(what string, lines, most int) {
		if lines > most {
			t.Errorf("%s has %d lines, want at most %d: split it", what, lines, most)
		}
	}
	for name, text := range goFiles(t, func(string) bool { return true }) {
		most := maxFile
		switch {
		case name == "server.go":
			most = maxServer
		case strings.HasSuffix(name, "_test.go"):
			most = maxTestFile
		}
		check(name, bytes.Count(text, []byte("\n")), most)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				check(name+" "+f.Name.Name, files.Position(f.End()).Line-files.Position(f.Pos()).Line+1, maxFunction)
			}
		}
	}
}

// TestFolders checks that internal has at most maxInternal packages, and that server.go is the only Go file in the root.
func TestFolders(t *testing.T) {
	packages, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) > maxInternal {
		t.Errorf("internal has %d packages, want at most %d: move a package that only one other package imports into that package", len(packages), maxInternal)
	}
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if !slices.Equal(files, []string{"server.go"}) {
		t.Errorf("the Go files in the root are %q, want only server.go", files)
	}
}

// TestDomainIsSmall checks that internal/market exports at most 150 names. Methods do not count.
func TestDomainIsSmall(t *testing.T) {
	const maxNames = 150
	var names []string
	for file, text := range goFiles(t, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		if filepath.ToSlash(filepath.Dir(file)) != "internal/market" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			names = append(names, exported(decl)...)
		}
	}
	if len(names) == 0 || len(names) > maxNames {
		t.Errorf("internal/market exports %d names; want 1 to %d: move some of them to a package below internal/market", len(names), maxNames)
	}
}

// exported returns the exported names that a declaration adds to its package.
func exported(decl ast.Decl) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				add(s.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					add(name)
				}
			}
		}
	}
	return names
}
