//go:build unix

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
	"oddsgraph/web"
)

// TestBrowser runs the tests of web/tests in a browser, except those of TestGuide. If the kernel permits network namespaces, the
// tests have no access to the network. The environment variable SCREENSHOTS names a directory for screenshots.
func TestBrowser(t *testing.T) {
	requireNode(t)
	if _, err := fs.Stat(web.Built(), "index.html"); err != nil {
		t.Fatal("the pages are not built: run make web first, as make check does, or make pages for these checks alone")
	}
	chromium := tool.Require(t, "chromium")
	wait := startOffline(t, 4, "CHROMIUM="+chromium) // the checks mostly wait
	t.Parallel()                                     // waits for the tests that are not parallel; the child process runs meanwhile
	if wait != nil {
		if err := wait(); err != nil {
			t.Errorf("the tests fail in a process without network access: %v", err)
		}
		return
	}
	files, err := filepath.Glob("web/tests/*.test.ts")
	if err != nil || len(files) == 0 {
		t.Fatalf("error %v; found %d test files in web/tests", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		t.Run(name, func(t *testing.T) {
			if name == guideChecks {
				t.Skip("TestGuide runs these checks")
			}
			t.Parallel() // the checks mostly wait
			checks, env := "tests/dist/"+name+".test.js", []string{"CHROMIUM=" + chromium}
			switch name {
			case "explore", "live-design", "live-wallet":
				runNodeTest(t, "web", checks, env, "--demo-markets=1200") // the examples and the account with 2,000 positions need 1,200 markets
			case "trusted":
				manifest := filepath.Join(t.TempDir(), "manifest.json")
				if err := os.WriteFile(manifest, []byte(`{"other": "query Other { __typename }"}`), 0o600); err != nil {
					t.Fatal(err)
				}
				runNodeTest(t, "web", checks, env, "--demo-markets=1200", "--documents-trusted=require", "--documents-manifest="+manifest)
			case "several":
				runNodeTest(t, "web", checks, env, "--demo-driver=polymarket,kalshi", "--demo-markets=60")
			case "questions":
				file := filepath.Join(t.TempDir(), "questions.json")
				if err := os.WriteFile(file, []byte(`{"version": 1, "questions": []}`), 0o600); err != nil {
					t.Fatal(err)
				}
				runNodeTest(t, "web", checks, append(env, "QUESTIONS="+file), "--demo-driver=polymarket,kalshi", "--demo-markets=60", "--demo-still", "--cache-market-fresh=2s", "--questions-file="+file)
			case "venues":
				runOverSimulators(t, "web", checks, env)
			case "react-apollo", "react-relay":
				buildExample(t, name)
				fallthrough
			default:
				runNodeTest(t, "web", checks, env, "--demo-markets=60") // with few markets, the prices of each market change often
			}
		})
	}
}

// buildExample builds an app of examples/ with the packages that make has installed. It builds react-apollo for development,
// because only a development build of Apollo Client warns if its cache loses data.
func buildExample(t *testing.T, name string) {
	t.Helper()
	dir := filepath.Join("examples", name)
	have, err := os.ReadFile(filepath.Join(dir, "node_modules/.installed.json")) // a copy of package-lock.json
	if err != nil || string(have) != read(t, filepath.Join(dir, "package-lock.json")) {
		tool.Missing(t, "the packages of %s are missing or out of date: run make pages", dir)
	}
	if name == "react-apollo" {
		node(t, dir, "env", "NODE_ENV=development", "npm", "run", "--silent", "build", "--", "--mode", "development")
		return
	}
	node(t, dir, "npm", "run", "--silent", "build")
}

// TestPageSize checks that the files of all pages together take less than 1.2 MB, compressed with gzip. A file without a compressed
// copy counts with its full size.
func TestPageSize(t *testing.T) {
	requireNode(t) // make builds the pages with Node.js
	const limit = 1_200_000
	total, files := int64(0), 0
	err := fs.WalkDir(web.Built(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".br") || strings.HasSuffix(name, ".gz") {
			return err
		}
		info, err := fs.Stat(web.Built(), name+".gz")
		if err != nil {
			info, err = d.Info()
		}
		if err == nil {
			total, files = total+info.Size(), files+1
		}
		return err
	})
	if err != nil || files < 10 {
		t.Fatalf("the built pages have %d files, error %v: run make web first, as make check does", files, err)
	}
	t.Logf("%d files, %d bytes", files, total)
	if total >= limit {
		t.Errorf("%d files take %d bytes, want fewer than %d", files, total, limit)
	}
}

// TestSizeOfEachPage checks that the assets of the board (live.html) take less than 250 KiB, and those of GraphiQL (index.html)
// less than 500 KiB. Both limits apply to the files compressed with gzip, and to the files compressed with Brotli.
func TestSizeOfEachPage(t *testing.T) {
	requireNode(t) // make builds the pages with Node.js
	for name, limit := range map[string]int64{"live.html": 250 << 10, "index.html": 500 << 10} {
		html, err := fs.ReadFile(web.Built(), name)
		if err != nil {
			t.Fatalf("%v: run make web first, as make check does", err)
		}
		for _, coding := range []string{".gz", ".br"} {
			size, files := int64(0), 0
			for _, file := range regexp.MustCompile(`assets/[^"]+`).FindAllString(string(html), -1) {
				info, err := fs.Stat(web.Built(), file+coding)
				if err != nil {
					info, err = fs.Stat(web.Built(), file)
				}
				if err == nil { // the icon is in another folder, and is not counted
					size, files = size+info.Size(), files+1
				}
			}
			t.Logf("%s%s: %d files, %d bytes", name, coding, files, size)
			if files < 3 || size >= limit {
				t.Errorf("%s with %s files: %d assets take %d bytes, want at least 3 assets and fewer than %d bytes", name, coding, files, size, limit)
			}
		}
	}
}
