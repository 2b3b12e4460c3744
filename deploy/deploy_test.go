// Package deploy holds the deployment files. Its tests check that the program has the settings, ports and paths in these files.
package deploy

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/config"
	"oddsgraph/tests/tool"
)

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parse(t testing.TB, args, environ []string) *config.Config {
	t.Helper()
	c, err := config.Parse(args, environ, io.Discard)
	if err != nil {
		t.Fatalf("arguments %q, environment %q: %v", args, environ, err)
	}
	return c
}

// find returns what the first group of a pattern matches in each place of a text. There must be at least one place.
func find(t testing.TB, text, pattern string) (found []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	if found == nil {
		t.Fatalf("nothing matches %q", pattern)
	}
	return found
}

func duration(t testing.TB, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wantStopTimeout requires the given stop timeout to exceed the program's longest shutdown by at least five seconds.
func wantStopTimeout(t testing.TB, timeout time.Duration, c *config.Config) {
	t.Helper()
	if longest := c.DrainDelay + c.ShutdownTimeout; timeout < longest+5*time.Second {
		t.Errorf("the stop timeout is %v, want at least 5 s more than the longest shutdown of %v", timeout, longest)
	}
}

// wantMemory requires the memory of kubernetes/deployment.yaml, which TestMemorySum of app compares with the sum in docs/limits.md.
func wantMemory(t testing.TB, heap, limit string) {
	t.Helper()
	if heap != "768MiB" || strings.TrimRight(limit, "MmiB") != "1024" {
		t.Errorf("GOMEMLIMIT is %q and the memory limit is %q, want 768MiB and 1024 MiB", heap, limit)
	}
}

// makeSecrets runs compose/secrets.sh and returns the directory of the secrets. The deployment file at path must name exactly
// these secrets.
func makeSecrets(t testing.TB, path string) string {
	t.Helper()
	tool.Require(t, "openssl")
	dir := t.TempDir()
	if out, err := exec.Command("sh", "compose/secrets.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := exec.Command("sh", "compose/secrets.sh", dir).CombinedOutput(); err == nil {
		t.Error("secrets.sh replaces the secrets")
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, f := range files {
		made = append(made, f.Name())
	}
	named := find(t, read(t, path), `[ /]secrets/([\w.-]+)$`)
	slices.Sort(named)
	if named = slices.Compact(named); !slices.Equal(named, made) {
		t.Errorf("%s names the secrets %v, but secrets.sh makes %v", path, named, made)
	}
	return dir
}

// TestNames checks that the program has each variable and each flag that the deployment files name.
func TestNames(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.Lines(config.Default().String()) {
		variable, _, _ := strings.Cut(line, "=")
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "ODDSGRAPH_"), "_", "-"))
		known[variable], known["--"+flag] = true, true
	}
	// These flags are of Docker and Prometheus.
	for _, flag := range []string{"--build", "--no-deps", "--wait", "--config.file", "--storage.tsdb.retention.time"} {
		known[flag] = true
	}
	name := regexp.MustCompile(`\bODDSGRAPH_[A-Z0-9_]+|--[a-z][a-z.-]+`)
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, n := range name.FindAllString(read(t, path), -1) {
			if found++; !known[strings.TrimRight(n, ".")] {
				t.Errorf("%s: the program has no %s", path, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("the files name %d variables and flags, want at least 40", found)
	}
}
