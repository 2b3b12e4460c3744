//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oddsgraph/tests/tool"
)

// TestClients runs the published packages of widely used GraphQL clients against the program.
func TestClients(t *testing.T) {
	requireNode(t)
	wait := startOffline(t, 1)
	t.Parallel() // waits for the tests that are not parallel; the child process runs meanwhile
	if wait != nil {
		if err := wait(); err != nil {
			t.Errorf("the tests fail in a process without network access: %v", err)
		}
		return
	}
	prepareClients(t)
	files, err := filepath.Glob("clients/src/*.test.ts")
	if err != nil || len(files) == 0 {
		t.Fatalf("error %v; found %d test files in clients/src", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		t.Run(name, func(t *testing.T) {
			if name == "venues" {
				runOverSimulators(t, "clients", "dist/venues.test.js", nil)
				return
			}
			// The venue's only market stays open, because the smallest account holds a position in it. With one market, each
			// token's price changes about once a second.
			runNodeTest(t, "clients", "dist/"+name+".test.js", nil, "--demo-markets=1")
		})
	}
}

// prepareClients generates and compiles the code in clients/, with the packages that make has installed. It holds a file lock until
// the test ends, so that no other process builds this code during the test.
func prepareClients(t *testing.T) {
	t.Helper()
	lock, err := os.Open("clients/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("clients/node_modules/.installed.json") // a copy of package-lock.json
	if err != nil || string(have) != read(t, "clients/package-lock.json") {
		tool.Missing(t, "the packages of clients/ are missing or out of date: run make clients")
	}
	node(t, "clients", "npm", "run", "--silent", "generate")
	node(t, "clients", "npm", "run", "--silent", "build")
}
