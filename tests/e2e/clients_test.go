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

// TestClients runs the usual GraphQL clients, as their packages are, against the whole program with a market that moves:
// each file in clients/src has a server of its own, which it may ask to be restarted.
func TestClients(t *testing.T) {
	t.Parallel() // they wait for much
	prepareClients(t)
	files, err := filepath.Glob("clients/src/*.test.ts")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		t.Run(name, func(t *testing.T) {
			// One market, which stays open since the smallest account has a stake in it: each token moves about every second.
			runNodeTest(t, "clients", "dist/"+name+".test.js", nil, "--demo-still=false", "--demo-markets=1")
		})
	}
}

// prepareClients generates and compiles the clients, whose packages make has installed. Nobody else does until the test has ended.
func prepareClients(t *testing.T) {
	t.Helper()
	requireNode(t)
	lock, err := os.Open("clients/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("clients/node_modules/.installed.json") // a copy of the lock file
	if err != nil || string(have) != read(t, "clients/package-lock.json") {
		tool.Missing(t, "the packages of clients/ are missing or out of date: run make clients")
	}
	node(t, "clients", "npm", "run", "--silent", "generate")
	node(t, "clients", "npm", "run", "--silent", "build")
}
