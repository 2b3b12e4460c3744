package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph"
	"oddsgraph/internal/market"
)

// TestKitPackage installs the client kit in an empty directory from the running service, without any GraphQL client, and
// uses it.
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
		t.Errorf("got %s %v, %d bytes", resp.Status, resp.Header, resp.ContentLength)
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
}

// TestErrorCodes compares the enum ErrorCode of the schema, from which the kit's codes are generated, with the codes of the service.
func TestErrorCodes(t *testing.T) {
	var want []string
	for _, file := range []string{"internal/market/errors.go", "httpapi/persisted/store.go"} {
		for _, match := range regexp.MustCompile(`Code = "([A-Z_]+)"`).FindAllStringSubmatch(read(t, file), -1) {
			if match[1] != string(market.CodeNotFound) { // clients never see it
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
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
