package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/web"
)

// TestBrowser runs the pages in a browser against the whole program with a market that moves: each file in web/tests has a
// server of its own, which it may ask to be restarted. With SCREENSHOTS set the images are kept in that directory.
func TestBrowser(t *testing.T) {
	requireNode(t)
	if _, err := fs.Stat(web.Built(), "index.html"); err != nil {
		t.Fatal("the pages are not built: run make web first, as make test does, or make pages for these checks alone")
	}
	chromium := requireChromium(t)
	screenshots := os.Getenv("SCREENSHOTS")
	if screenshots == "" {
		screenshots = t.TempDir()
	}
	files, err := filepath.Glob("web/tests/*.test.ts")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		t.Run(name, func(t *testing.T) {
			env := []string{"CHROMIUM=" + chromium, "SCREENSHOTS=" + screenshots}
			runNodeTest(t, "web", "tests/dist/"+name+".test.js", env, "--demo-still=false", "--demo-markets=40")
		})
	}
}

// requireChromium returns the path of the browser, which it installs where it is missing and may be installed.
func requireChromium(t *testing.T) string {
	t.Helper()
	const install = "the checks of the pages need Chromium (Debian: apt-get install chromium), or CHROMIUM set to the path of one"
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	find := func() string {
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		return ""
	}
	if path := find(); path != "" {
		return path
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		t.Fatal(install)
	}
	for _, args := range [][]string{{"update", "-q"}, {"install", "-yq", "--no-install-recommends", "chromium"}} {
		cmd := exec.CommandContext(t.Context(), "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("apt-get %s: %v\n%s\n%s", strings.Join(args, " "), err, out, install)
		}
	}
	path := find()
	if path == "" {
		t.Fatal(install)
	}
	return path
}
