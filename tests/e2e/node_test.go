package e2e

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
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// nodeTimeout is the time limit for a command of Node.js, such as a test file or a build.
const nodeTimeout = 30 * time.Minute

// nodeMajor is the oldest major version of Node.js that clients/ and web/ support.
const nodeMajor = 20

// requireNode checks that npm and a recent Node.js are installed. If one of them is missing, requireNode ends the test as
// tool.Missing does.
func requireNode(t *testing.T) {
	t.Helper()
	tool.Require(t, "npm")
	version, err := exec.Command(tool.Require(t, "node"), "--version").Output()
	if err != nil {
		t.Fatalf("node --version: %v", err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < nodeMajor {
		tool.Missing(t, "found Node.js %s, want %d or newer: see https://nodejs.org/en/download", bytes.TrimSpace(version), nodeMajor)
	}
}

// node runs a command in a directory and fails the test if the command fails.
func node(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nodeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// runNodeTest runs a test file in dir with Node.js against the shipped program, and reports each test of the file as a subtest.
// Node.js gets env and three more variables: ODDSGRAPH_URL is the GraphQL endpoint, and ODDSGRAPH_VENUE is the base URL of the demo
// venue (see docs/ui-testing.md). A POST to ODDSGRAPH_RESTART_URL restarts the program on the same ports.
func runNodeTest(t *testing.T, dir, file string, env []string, args ...string) {
	exe := buildProgram(t)
	args = append([]string{"--demo-control", "--trusted-proxies="}, args...) // with a trusted proxy, the pages could not control the demo venue
	p := runBinary(t, exe, args...)
	address, venue := p.Addr().String(), p.venueURL(t)
	args = append(args, "--listen="+address, "--demo-listen="+strings.TrimPrefix(venue, "http://"))

	runChecks(t, dir, file, append(env, "ODDSGRAPH_URL=http://"+address+"/graphql", "ODDSGRAPH_VENUE="+venue), func() {
		p.terminate(t)
		p.wantExit(t, 0)
		p = runBinary(t, exe, args...)
	})
}

// runChecks runs a test file as startChecks does, and reports each test of the file as a subtest. It calls restart for each POST to
// the URL in the environment variable ODDSGRAPH_RESTART_URL, and responds when restart returns.
func runChecks(t *testing.T, dir, file string, env []string, restart func()) {
	t.Helper()
	// Only the test's goroutine may fail the test, so the handler asks this goroutine to restart the program.
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

	checks := startChecks(t, dir, file, append(env, "ODDSGRAPH_RESTART_URL="+control.URL)...)
	for {
		select {
		case restarted := <-restarts:
			restart()
			close(restarted)
		case err := <-checks.ended:
			wantPassed(t, err, &checks.stdout, checks.stderr.String())
			return
		}
	}
}

// checks is a process of Node.js that runs a test file. Its output may be read when the process has ended.
type checks struct {
	ended          chan error
	stdout, stderr bytes.Buffer
}

// startChecks starts Node.js with a test file in dir, with additional environment variables.
func startChecks(t *testing.T, dir, file string, env ...string) *checks {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nodeTimeout)
	t.Cleanup(cancel)
	reporter, err := filepath.Abs("clients/reporter.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", "--enable-source-maps", "--test-reporter="+reporter, file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	c := &checks{ended: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = &c.stdout, &c.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.ended <- cmd.Wait() }()
	return c
}

// wantPassed reports each test of a test file as a subtest. The report consists of the lines that clients/reporter.mjs printed.
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
		t.Errorf("Node.js reported %d tests, of which %d failed, and ended with the error %v:\n%s", checks, failed, ended, stderr)
	}
}
