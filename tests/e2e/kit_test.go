package e2e

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph"
	"oddsgraph/internal/market"
	"oddsgraph/tests/tool"
)

// TestKitPackage checks that an app can install the client kit from the service, use the kit without a GraphQL client, and compile
// with each entry point of the kit.
func TestKitPackage(t *testing.T) {
	t.Parallel()
	requireNode(t)
	s := startLive(t)
	resp, err := http.Get(s.URL() + "/kit.tgz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		t.Fatal("the pages are not built; run make web")
	}
	if resp.Header.Get("Content-Type") != "application/gzip" || resp.Header.Get("ETag") == "" || resp.ContentLength > 64<<10 {
		t.Errorf("/kit.tgz: got status %s, header %v and %d bytes", resp.Status, resp.Header, resp.ContentLength)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("package.json", `{"type": "module", "private": true}`)
	node(t, dir, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=peer", s.URL()+"/kit.tgz")
	write("app.mjs", `import { applyDelta, compareDecimals, decimal, isRetryable, possibleTypes } from '@oddsgraph/kit'
import types from '@oddsgraph/kit/possibleTypes.json' with { type: 'json' }
const book = applyDelta(undefined, { kind: 'SNAPSHOT', sequence: '1', bids: [{ price: '0.5', size: '1' }], asks: [] })
if (book.bids.length !== 1 || compareDecimals('0.5', decimal('0.50')) !== 0 || isRetryable({}) || !types.Node || !possibleTypes.Node) throw new Error('wrong')`)
	node(t, dir, "node", "app.mjs")
	for entry, packages := range kitPackages {
		t.Run("types of "+entry, func(t *testing.T) {
			checkKitTypes(t, filepath.Join(dir, "node_modules", "@oddsgraph", "kit"), entry, packages)
		})
	}
}

// kitPackages are the packages that an app needs for each entry point of the kit.
var kitPackages = map[string][]string{
	"@oddsgraph/kit":        nil,
	"@oddsgraph/kit/apollo": {"@apollo/client", "graphql", "rxjs"},
	"@oddsgraph/kit/urql":   {"@urql/core", "@urql/exchange-graphcache", "graphql", "wonka"},
}

// checkKitTypes compiles an app that imports one entry point of the kit, with the strictest compiler options. The app has only the
// given packages of clients/.
func checkKitTypes(t *testing.T, kit, entry string, packages []string) {
	root, err := filepath.Abs("clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".bin/tsc")); err != nil {
		tool.Missing(t, "the packages of clients/ are missing: run make clients")
	}
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	if err := os.CopyFS(filepath.Join(modules, "@oddsgraph", "kit"), os.DirFS(kit)); err != nil {
		t.Fatal(err)
	}
	for _, name := range packages {
		link := filepath.Join(modules, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(filepath.Join(root, name), link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"package.json": `{"type": "module", "private": true}`,
		"app.ts":       "import * as kit from '" + entry + "'\nexport default kit\n",
		"tsconfig.json": `{"compilerOptions": {"strict": true, "noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true,
		  "noPropertyAccessFromIndexSignature": true, "noEmit": true, "target": "es2022", "lib": ["es2023", "dom"], "types": [],
		  "module": "esnext", "moduleResolution": "bundler"}, "files": ["app.ts"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".bin/tsc"), "--pretty", "false", "--listFiles")
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput() // the error is ignored, because tsc also fails for type errors in other packages
	read := 0
	for line := range strings.Lines(string(out)) {
		own := strings.HasPrefix(line, "app.ts") || strings.Contains(line, "@oddsgraph/kit/")
		switch {
		case own && strings.Contains(line, ": error TS"):
			t.Error(strings.TrimSpace(line))
		case own:
			read++
		}
	}
	if read < 2 {
		t.Errorf("the compiler has read %d files of the app and the kit, want at least 2:\n%s", read, out)
	}
}

// TestErrorCodes compares the enum ErrorCode of the schema with the error codes in the service's code.
func TestErrorCodes(t *testing.T) {
	var want []string
	for _, file := range []string{"internal/market/errors.go", "httpapi/persisted/store.go"} {
		for _, match := range regexp.MustCompile(`Code = "([A-Z_]+)"`).FindAllStringSubmatch(read(t, file), -1) {
			if match[1] != string(market.CodeNotFound) { // the service never sends this code to clients
				want = append(want, match[1])
			}
		}
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: graph.SDL()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, value := range schema.Types["ErrorCode"].EnumValues {
		got = append(got, value.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("error codes of the schema:\n got %q\nwant %q", got, want)
	}
}
