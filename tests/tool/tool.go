// Package tool has helpers that tests of several packages share. It finds the programs other than Go that tests run, starts Redis
// servers, and has a clock and a sink for feeds.
package tool

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// MissingError reports that a program is not installed. It names the program and says what to install.
type MissingError string

// Error implements error.
func (e MissingError) Error() string { return string(e) }

// Find returns the path of a program that scripts/tools lists. If the program is not installed, the error is a MissingError.
func Find(name string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	var stderr strings.Builder
	cmd := exec.Command("sh", filepath.Join(root, "scripts", "tools"), "find", name)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case err == nil:
		return strings.TrimSpace(string(out)), nil
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1:
		return "", MissingError(strings.TrimSpace(stderr.String()))
	default:
		return "", fmt.Errorf("looking for %s: %w: %s", name, err, stderr.String())
	}
}

// Require is like Find, but ends the test if there is an error. If the program is not installed, Require calls Missing. Tests that
// run other programs belong to make check, so make test skips them.
func Require(t testing.TB, name string) string {
	t.Helper()
	CheckTier(t)
	path, err := Find(name)
	if missing := MissingError(""); errors.As(err, &missing) {
		Missing(t, "%s", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Missing skips a test because the machine lacks something that the test needs. With CI=true, Missing fails the test.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// PolymarketSamples returns the folder of recorded responses of Polymarket, which POLYMARKET_SAMPLES names. It skips the
// test if the variable is not set. The licences of the recorded responses do not allow a copy in this repository.
func PolymarketSamples(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("POLYMARKET_SAMPLES")
	if dir == "" {
		t.Skip("POLYMARKET_SAMPLES does not name a folder of recorded responses")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("POLYMARKET_SAMPLES: %v", err)
	}
	return dir
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
