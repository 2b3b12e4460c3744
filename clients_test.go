//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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

// prepareClients installs what clients/ needs unless it is there, and generates and compiles. Nobody else does until the
// test has ended.
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
	// The copy tells what is installed, whatever the times of the files are.
	want, installed := read(t, "clients/package-lock.json"), "clients/node_modules/.installed.json"
	if have, err := os.ReadFile(installed); err != nil || string(have) != want {
		node(t, "clients", "npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
		if err := os.WriteFile(installed, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node(t, "clients", "npm", "run", "--silent", "generate")
	node(t, "clients", "npm", "run", "--silent", "build")
}
