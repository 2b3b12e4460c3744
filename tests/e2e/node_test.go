package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// nodeTimeout is how long a file of checks may take, or the installation of what all of them need.
const nodeTimeout = 5 * time.Minute

// nodeMajor is the oldest Node.js that the packages in clients/ and web/ run on.
const nodeMajor = 18

// requireNode ends the test as tool.Missing does unless npm and a Node.js that is new enough are installed.
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

// node runs a command in a directory, which must succeed.
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

// runNodeTest runs a file of checks, by its name from dir, with a server of these arguments, and shows what came of each.
// More of its environment than env: ODDSGRAPH_URL is where GraphQL is served, ODDSGRAPH_VENUE the base URL of the demo venue,
// whose control endpoints are open (see internal/demo/control.go), and a POST to ODDSGRAPH_RESTART_URL stops both and starts
// them on the same ports.
func runNodeTest(t *testing.T, dir, file string, env []string, args ...string) {
	serve := func(listen, venue string) (*service, func() error) {
		return startStoppable(t, append(args, "--listen="+listen, "--demo-listen="+venue)...)
	}
	s, stop := serve("127.0.0.1:0", "127.0.0.1:0")
	address, venue := s.Addr().String(), s.Demo.Addr().String()

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

	checks := startChecks(t, dir, file, append(env,
		"ODDSGRAPH_URL=http://"+address+"/graphql", "ODDSGRAPH_VENUE=http://"+venue, "ODDSGRAPH_RESTART_URL="+control.URL)...)
	for {
		select {
		case restarted := <-restarts:
			if err := stop(); err != nil {
				t.Errorf("the service ended with: %v", err)
			}
			_, stop = serve(address, venue)
			close(restarted)
		case err := <-checks.ended:
			wantPassed(t, err, &checks.stdout, checks.stderr.String())
			return
		}
	}
}

// checks is a file of checks that runs. What it wrote may be read when it has ended.
type checks struct {
	ended          chan error
	stdout, stderr bytes.Buffer
}

// startChecks runs a file of checks, by its name from dir, with more of an environment.
func startChecks(t *testing.T, dir, file string, env ...string) *checks {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nodeTimeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "node", "--enable-source-maps", "--test-reporter=../clients/reporter.mjs", file)
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
