// Package deploy holds the deployment files. Its tests check that the program has the settings, ports and paths in these files.
package deploy

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oddsgraph/internal/config"
)

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decode parses a YAML file.
func decode(t testing.TB, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, path)), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func parse(t testing.TB, args, environ []string) *config.Config {
	t.Helper()
	c, err := config.Parse(args, environ, io.Discard)
	if err != nil {
		t.Fatalf("arguments %q, environment %q: %v", args, environ, err)
	}
	return c
}

// environ returns variables in the form of os.Environ.
func environ(variables map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list = append(list, name+"="+variables[name])
	}
	return list
}

// wantStopTimeout requires the given stop timeout to exceed the program's longest shutdown by at least five seconds.
func wantStopTimeout(t testing.TB, timeout time.Duration, c *config.Config) {
	t.Helper()
	if longest := c.DrainDelay + c.ShutdownTimeout; timeout < longest+5*time.Second {
		t.Errorf("the stop timeout is %v, want at least 5 s more than the longest shutdown of %v", timeout, longest)
	}
}

// wantMemory requires a memory limit of at least GOMEMLIMIT plus the memory that the kernel needs for connections. The limit may
// be up to a quarter greater than this sum.
func wantMemory(t testing.TB, heap, memory string) {
	t.Helper()
	// The kernel holds up to 80 KiB of unsent bytes for each connection; docs/limits.md has the sum.
	least := size(t, heap) + float64(config.Default().MaxConnections)*(80<<10)
	if got := size(t, memory); got < least || got > 1.25*least {
		t.Errorf("the memory limit is %s; want at least %.0f MiB and at most a quarter more, for GOMEMLIMIT=%s and the kernel's buffers", memory, least/(1<<20), heap)
	}
}

// size returns the bytes of a size in MiB.
func size(t testing.TB, s string) float64 {
	t.Helper()
	for _, unit := range []string{"MiB", "Mi", "M", "m"} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return float64(n) * (1 << 20)
			}
		}
	}
	t.Fatalf("%q is not a size in MiB", s)
	return 0
}

// TestVariables checks that the program has each ODDSGRAPH_ variable of the Dockerfile and the deployment files.
func TestVariables(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.Lines(config.Default().String()) {
		name, _, _ := strings.Cut(line, "=")
		known[name] = true
	}
	variable := regexp.MustCompile(`\bODDSGRAPH_[A-Z0-9_]+`)
	found := 0
	check := func(path string) {
		for _, name := range variable.FindAllString(read(t, path), -1) {
			if found++; !known[name] {
				t.Errorf("%s: the program has no variable %s", path, name)
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, "_test.go") {
			check(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	check(filepath.Join("..", "Dockerfile"))
	if found < 20 {
		t.Errorf("the files have %d variables, want at least 20", found)
	}
}
