//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clientsTimeout is how long one client's checks may take, or the installation of all of them.
const clientsTimeout = 5 * time.Minute

// nodeMajor is the oldest Node.js that the packages in clients/ run on.
const nodeMajor = 18

// TestClients runs the usual GraphQL clients, as their packages are, against the whole program with a market that moves:
// each file in clients/src has a server of its own, which it may ask to be restarted.
func TestClients(t *testing.T) {
	prepareClients(t)
	files, err := filepath.Glob("clients/src/*.test.ts")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		t.Run(name, func(t *testing.T) { runClient(t, "dist/"+name+".test.js") })
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
		node(t, "npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
		if err := os.WriteFile(installed, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node(t, "npm", "run", "--silent", "generate")
	node(t, "npm", "run", "--silent", "build")
}

// requireNode fails unless a Node.js that is new enough and npm are there.
func requireNode(t *testing.T) {
	t.Helper()
	const install = "the checks with real clients need Node.js %d or newer and npm: see https://nodejs.org/en/download " +
		"(Debian: apt-get install nodejs npm)"
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatalf("%v; "+install, err, nodeMajor)
	}
	version, err := exec.Command("node", "--version").Output()
	if err != nil {
		t.Fatalf("%v; "+install, err, nodeMajor)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < nodeMajor {
		t.Fatalf("found Node.js %s; "+install, bytes.TrimSpace(version), nodeMajor)
	}
}

// node runs a command in clients/, which must succeed.
func node(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientsTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "clients"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// runClient runs a file of checks with a server, and shows what came of each.
func runClient(t *testing.T, file string) {
	// One market, which stays open since the smallest account has a stake in it: each token moves about every second.
	serve := func(listen string) (*service, func() error) {
		return startStoppable(t, "--listen="+listen, "--demo-still=false", "--demo-markets=1")
	}
	s, stop := serve("127.0.0.1:0")
	address := s.Addr().String()

	// Only this goroutine may fail the test, so it restarts the server and the handler asks it to.
	restarts := make(chan chan<- struct{})
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		restarted := make(chan struct{})
		select {
		case restarts <- restarted:
		case <-r.Context().Done():
			return
		}
		select {
		case <-restarted:
		case <-r.Context().Done():
		}
	}))
	defer control.Close()

	ctx, cancel := context.WithTimeout(t.Context(), clientsTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--enable-source-maps", "--test-reporter=./reporter.mjs", file)
	cmd.Dir = "clients"
	cmd.Env = append(os.Environ(), "ODDSGRAPH_URL=http://"+address+"/graphql", "ODDSGRAPH_RESTART_URL="+control.URL)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case restarted := <-restarts:
			if err := stop(); err != nil {
				t.Errorf("the service ended with: %v", err)
			}
			_, stop = serve(address)
			close(restarted)
		case err := <-ended:
			wantPassed(t, err, &stdout, stderr.String())
			return
		}
	}
}

// wantPassed shows each check as a test, from the lines of clients/reporter.mjs.
func wantPassed(t *testing.T, ended error, report *bytes.Buffer, stderr string) {
	t.Helper()
	checks, failed := 0, 0
	for line := range strings.Lines(report.String()) {
		var check struct {
			Name, Error string
			MS          int
		}
		if err := json.Unmarshal([]byte(line), &check); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		checks++
		if check.Error != "" {
			failed++
		}
		t.Run(check.Name, func(t *testing.T) {
			t.Logf("took %d ms", check.MS)
			if check.Error != "" {
				t.Error(check.Error)
			}
		})
	}
	if (ended != nil && failed == 0) || checks == 0 {
		t.Errorf("%d checks, %v\n%s", checks, ended, stderr)
	}
}
