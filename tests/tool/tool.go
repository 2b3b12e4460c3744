// Package tool has what tests of several packages share. It finds the programs that tests run besides Go, starts Redis servers,
// and has a clock and a sink for feeds.
package tool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Require returns the path of a program that scripts/tools lists. If it is missing, Require ends the test as Missing does.
func Require(t testing.TB, name string) string {
	t.Helper()
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd := exec.Command("sh", filepath.Join(root, "scripts", "tools"), "find", name)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case err == nil:
		return strings.TrimSpace(string(out))
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1:
		Missing(t, "%s", strings.TrimSpace(stderr.String()))
	default:
		t.Fatalf("looking for %s: %v: %s", name, err, stderr.String())
	}
	return ""
}

// Missing skips a test because the machine lacks something that the test needs. With CI=true, Missing fails the test.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// ModuleRoot returns the directory of go.mod. It searches the working directory and the directories above it.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
		dir = parent
	}
}
