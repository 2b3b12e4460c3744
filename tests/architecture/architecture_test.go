package architecture

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "oddsgraph"

// root is the root of the module.
var root = filepath.Join("..", "..")

// arrows maps a package to the packages of this module that the package and its subpackages may import. docs/architecture.md draws
// these imports as arrows. The packages below one key may import each other, and every package may import those in ground.
var arrows = map[string][]string{
	"httpapi":            {"graph", "resolvers", "loaders", "internal/feed"},
	"resolvers":          {"graph", "loaders", "internal/feed"},
	"graph":              {},
	"loaders":            {},
	"internal/cache":     {"internal/venue"},
	"internal/config":    {},
	"internal/demo":      {},
	"internal/feed":      {},
	"internal/fleet":     {},
	"internal/market":    {},
	"internal/ratelimit": {},
	"internal/reads":     {},
	"internal/request":   {},
	"internal/telemetry": {},
	"internal/upstream":  {},
	"internal/venue":     {},
	"web":                {},
}

// ground lists the packages that every package may import. Each of them may import only those before it.
var ground = []string{"internal/market", "internal/reads", "internal/upstream", "internal/request"}

// standsOn reports whether a package may import a package of ground.
func standsOn(pkg, to string) bool {
	at, from := slices.Index(ground, to), slices.Index(ground, pkg)
	return at >= 0 && (from < 0 || at < from)
}

// free lists the folders whose packages may import all packages of this module: the program, the programs that measure it, and the
// tests.
var free = []string{".", "app", "bench", "tests"}

// decimals is the only package of another module that internal/market may import.
const decimals = "github.com/cockroachdb/apd/v3"

// redis is the client of Redis. Only internal/fleet may import it.
const redis = "github.com/redis/rueidis"

// runtimes are the packages of gqlgen that execute operations. Only test files and bench may import them.
var runtimes = map[string]bool{"github.com/99designs/gqlgen/graphql/executor": true, "github.com/99designs/gqlgen/graphql/handler": true}

// contract is the package with the interface of the drivers. All folders below it are drivers, except the registry and those in the
// variable shared. Only the registry imports drivers, and only the program and the tests import the registry.
const contract, registry = "internal/venue", "internal/venue/drivers"

var shared = []string{"rest", "stream", "wire"}

// driver returns the name of the driver that a package belongs to, or "".
func driver(dir string) string {
	below, ok := strings.CutPrefix(dir, contract+"/")
	if name, _, _ := strings.Cut(below, "/"); ok && dir != registry && !slices.Contains(shared, name) {
		return name
	}
	return ""
}

// brokenArrows returns a line for each import that the rules of this file do not allow. imports maps the name of each file,
// relative to the module's root, to the packages that the file imports.
func brokenArrows(imports map[string][]string) (broken []string) {
	for _, file := range slices.Sorted(maps.Keys(imports)) {
		from := path.Dir(file)
		pkg := owner(from)
		for _, imported := range imports[file] {
			to, ours := strings.CutPrefix(imported, module+"/")
			switch {
			case strings.HasPrefix(imported, redis) && pkg != "internal/fleet":
				broken = append(broken, fmt.Sprintf("%s imports %s: only internal/fleet may import the client of Redis", file, imported))
			case runtimes[imported] && pkg != "bench":
				broken = append(broken, fmt.Sprintf("%s imports %s: only tests and bench may execute operations with gqlgen", file, imported))
			case pkg == "internal/market" && !ours:
				if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") && imported != decimals {
					broken = append(broken, fmt.Sprintf("%s imports %s: internal/market may import only the standard library and %s", file, imported, decimals))
				}
			case ours && driver(to) != "" && from != registry && driver(from) != driver(to):
				broken = append(broken, fmt.Sprintf("%s imports %s: only %s may import drivers", file, imported, registry))
			case ours && to == "internal/request" && pkg == contract:
				broken = append(broken, fmt.Sprintf("%s imports %s: a driver knows the call (internal/upstream), and not the client's request", file, imported))
			case ours && to == registry && !slices.Contains(free, pkg):
				broken = append(broken, fmt.Sprintf("%s imports %s: only the program and the tests may import the registry of drivers", file, imported))
			case ours && to == contract && from != registry && pkg == contract:
				broken = append(broken, fmt.Sprintf("%s imports %s: a driver may import only the packages %s below %s", file, imported, strings.Join(shared, ", "), contract))
			case ours && owner(to) == contract && to != contract && pkg != contract && !slices.Contains(free, pkg):
				broken = append(broken, fmt.Sprintf("%s imports %s: of %s, %s may import only the interface of the drivers", file, imported, contract, pkg))
			case !ours, slices.Contains(free, pkg), owner(to) == pkg, standsOn(pkg, owner(to)):
			case arrows[pkg] == nil:
				broken = append(broken, fmt.Sprintf("%s imports %s: %s is not in the picture; add its arrows to architecture_test.go and docs/architecture.md", file, imported, from))
			case !slices.Contains(arrows[pkg], owner(to)):
				allowed := append(slices.Clone(ground), arrows[pkg]...)
				broken = append(broken, fmt.Sprintf("%s imports %s: of this module, %s may import only %s", file, imported, pkg, strings.Join(allowed, ", ")))
			}
		}
	}
	return broken
}

// owner returns dir if arrows or free contains it, or else the nearest parent that they contain. If there is none, owner returns
// dir.
func owner(dir string) string {
	for p := dir; p != "."; p = path.Dir(p) {
		if arrows[p] != nil || slices.Contains(free, p) {
			return p
		}
	}
	return dir
}

// TestArchitecture checks that brokenArrows reports no import in the module's non-test files.
func TestArchitecture(t *testing.T) {
	imports := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		list := []string{}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			list = append(list, imported)
		}
		imports[filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))] = list
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(imports) < 10 {
		t.Fatalf("the test found only %d files, want at least 10", len(imports))
	}
	for _, broken := range brokenArrows(imports) {
		t.Error(broken)
	}
}

// TestArchitectureCheck checks that brokenArrows reports every kind of wrong import.
func TestArchitectureCheck(t *testing.T) {
	for _, test := range []struct {
		file, imports string
		ok            bool
	}{
		{"app/app.go", "oddsgraph/internal/venue", true},
		{"bench/plain/main.go", "oddsgraph/internal/demo", true},
		{"internal/market/decimal.go", "encoding/json", true},
		{"internal/market/decimal.go", "github.com/cockroachdb/apd/v3", true},
		{"internal/market/decimal.go", "github.com/shopspring/decimal", false},
		{"internal/market/decimal.go", "oddsgraph/internal/venue", false},
		{"internal/market/decimal.go", "oddsgraph/internal/upstream", false},
		{"internal/market/market.go", "oddsgraph/internal/reads", false},
		{"internal/reads/reads.go", "oddsgraph/internal/market", true},
		{"internal/upstream/call.go", "oddsgraph/internal/market", true},
		{"internal/upstream/call.go", "oddsgraph/internal/request", false},
		{"internal/request/log.go", "oddsgraph/internal/upstream", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/upstream", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/request", false},
		{"internal/cache/fetch.go", "oddsgraph/internal/request", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/market", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/venue/wire", true},
		{"internal/venue/generic/client.go", "github.com/failsafe-go/failsafe-go", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/cache", false},
		{"internal/venue/venue.go", "oddsgraph/internal/venue/generic", false},
		{"internal/venue/venue.go", "oddsgraph/internal/venue/drivers", false},
		{"internal/venue/venue.go", "oddsgraph/internal/venue/rest", true},
		{"internal/venue/drivers/drivers.go", "oddsgraph/internal/venue/generic", true},
		{"internal/venue/drivers/drivers.go", "oddsgraph/internal/venue", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/venue/drivers", false},
		{"internal/cache/cache.go", "oddsgraph/internal/venue", true},
		{"internal/cache/cache.go", "oddsgraph/internal/venue/drivers", false},
		{"internal/cache/cache.go", "oddsgraph/internal/venue/rest", false},
		{"app/venue.go", "oddsgraph/internal/venue/drivers", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/venue/rest", true},
		{"internal/venue/generic/client.go", "oddsgraph/internal/venue", false},
		{"internal/venue/generic/client.go", "oddsgraph/internal/venue/another", false},
		{"internal/venue/stream/client.go", "oddsgraph/internal/venue/generic", false},
		{"app/venue.go", "oddsgraph/internal/venue/generic", false},
		{"internal/venue/kalshi/driver.go", "oddsgraph/internal/venue/stream", true},
		{"internal/venue/kalshi/driver.go", "oddsgraph/internal/venue/kalshi/codec", true},
		{"internal/venue/rest/client.go", "oddsgraph/internal/venue", false},
		{"internal/venue/rest/client.go", "oddsgraph/internal/venue/generic", false},
		{"app/venue.go", "oddsgraph/internal/venue/rest", true},
		{"internal/demo/demo.go", "oddsgraph/internal/venue", false},
		{"internal/demo/demo.go", "oddsgraph/internal/venue/stream", false},
		{"internal/venue/stream/dial.go", "oddsgraph/internal/feed", false},
		{"internal/cache/cache.go", "oddsgraph/internal/feed", false},
		{"internal/feed/topic.go", "oddsgraph/internal/cache", false},
		{"internal/fleet/ledger.go", "github.com/redis/rueidis", true},
		{"internal/fleet/ledger.go", "oddsgraph/internal/ratelimit", false},
		{"internal/cache/cache.go", "github.com/redis/rueidis", false},
		{"app/fleet.go", "github.com/redis/rueidis", false},
		{"loaders/set.go", "oddsgraph/internal/market", true},
		{"loaders/set.go", "oddsgraph/graph", false},
		{"resolvers/markets.go", "oddsgraph/graph/scalar", true},
		{"resolvers/markets.go", "oddsgraph/loaders", true},
		{"resolvers/markets.go", "oddsgraph/internal/cache", false},
		{"resolvers/markets.go", "oddsgraph/httpapi/quota", false},
		{"graph/schema.generated.go", "oddsgraph/graph/model", true},
		{"graph/model/model.go", "oddsgraph/resolvers", false},
		{"httpapi/handler.go", "oddsgraph/resolvers", true},
		{"httpapi/handler.go", "oddsgraph/httpapi/respcache", true},
		{"httpapi/handler.go", "oddsgraph/internal/config", false},
		{"httpapi/handler.go", "oddsgraph/internal/cache", false},
		{"httpapi/handler.go", "oddsgraph/app", false},
		{"internal/telemetry/log.go", "oddsgraph/internal/cache", false},
		{"internal/unknown/new.go", "oddsgraph/internal/market", true},
		{"internal/unknown/new.go", "oddsgraph/internal/cache", false},
		{"httpapi/engine.go", "github.com/99designs/gqlgen/graphql", true},
		{"httpapi/engine.go", "github.com/99designs/gqlgen/graphql/executor", false},
		{"server.go", "github.com/99designs/gqlgen/graphql/handler", false},
		{"bench/plain/server.go", "github.com/99designs/gqlgen/graphql/handler", true},
		{"internal/cachet/new.go", "oddsgraph/internal/cache", false},
		{"internal/cache/cache.go", "oddsgraph/internal/unknown", false},
	} {
		broken := brokenArrows(map[string][]string{test.file: {"context", test.imports}})
		if test.ok && len(broken) > 0 {
			t.Errorf("%s may import %s, but brokenArrows reports %q", test.file, test.imports, broken)
		}
		if !test.ok && (len(broken) != 1 || !strings.HasPrefix(broken[0], test.file+" imports "+test.imports+": ")) {
			t.Errorf("%s must not import %s, but brokenArrows reports %q", test.file, test.imports, broken)
		}
	}
}
