//go:build unix

package tool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// probe records how a test ended.
type probe struct {
	testing.TB
	outcome, message string
}

func (p *probe) Helper() {}

func (p *probe) Skipf(format string, args ...any) { p.end("skipped", fmt.Sprintf(format, args...)) }

func (p *probe) Fatalf(format string, args ...any) { p.end("failed", fmt.Sprintf(format, args...)) }

func (p *probe) Fatal(args ...any) { p.end("failed", fmt.Sprint(args...)) }

func (p *probe) end(outcome, message string) {
	p.outcome, p.message = outcome, message
	runtime.Goexit()
}

// require calls Require as a separate test would.
func require(t *testing.T, name string) (path string, p *probe) {
	t.Helper()
	p = &probe{TB: t, outcome: "ran"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		path = Require(p, name)
	}()
	<-done
	return path, p
}

// limitPath sets PATH to a directory that has only the given programs of the machine. It returns the directory.
func limitPath(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

func TestRequire(t *testing.T) {
	t.Setenv("TIER", "check")
	dir := limitPath(t, "sh", "cat", "tr")
	t.Setenv("CHROMIUM", "")
	for _, test := range []struct{ ci, outcome string }{{"", "skipped"}, {"false", "skipped"}, {"true", "failed"}} {
		t.Setenv("CI", test.ci)
		for name, install := range map[string]string{"promtool": "apt-get install prometheus", "cc": "apt-get install gcc libc6-dev", "chromium": "apt-get install chromium-headless-shell"} {
			if _, p := require(t, name); p.outcome != test.outcome || !strings.Contains(p.message, name+" is missing") || !strings.HasSuffix(p.message, install) {
				t.Errorf("CI=%q without %s: the test %s with the message %q, want that it %s and says what to install", test.ci, name, p.outcome, p.message, test.outcome)
			}
		}
		if _, p := require(t, "nonsense"); p.outcome != "failed" || !strings.Contains(p.message, "does not list nonsense") {
			t.Errorf("CI=%q and a program that scripts/tools does not list: the test %s with the message %q, want that it failed", test.ci, p.outcome, p.message)
		}
	}
	for name, file := range map[string]string{"promtool": "promtool", "chromium": "google-chrome"} {
		want := filepath.Join(dir, file)
		if err := os.WriteFile(want, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if path, p := require(t, name); path != want || p.outcome != "ran" {
			t.Errorf("%s: got the path %q, want %q (the test %s with the message %q)", name, path, want, p.outcome, p.message)
		}
	}
	t.Setenv("CHROMIUM", "/opt/browser")
	if path, p := require(t, "chromium"); path != "/opt/browser" {
		t.Errorf("with CHROMIUM=/opt/browser: got the path %q (the test %s)", path, p.outcome)
	}
}
