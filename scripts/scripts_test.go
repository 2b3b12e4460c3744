// Package scripts tests the scripts of the Makefile.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notes runs scripts/notes over a changelog.
func notes(t *testing.T, changelog, version string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("notes")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"scripts/notes": string(script), "CHANGELOG.md": changelog} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("sh", filepath.Join(dir, "scripts", "notes"), version).CombinedOutput()
	return string(out), err
}

func TestNotes(t *testing.T) {
	const changelog = "# Changelog\n\nAll of it.\n\n## [Unreleased]\n\n## [1.10.0] - 2026-03-01\n\n### Added\n\n- One.\n\n- Two, see [x].\n\n## [1.1.0] - 2026-01-01\n### Fixed\n- Three.\n\n[1.10.0]: https://example.com/b\n[1.1.0]: https://example.com/a\n"
	for version, want := range map[string]string{
		"1.10.0": "### Added\n\n- One.\n\n- Two, see [x].\n", "v1.10.0": "### Added\n\n- One.\n\n- Two, see [x].\n", "1.1.0": "### Fixed\n- Three.\n",
	} {
		if got, err := notes(t, changelog, version); err != nil || got != want {
			t.Errorf("the notes of %s are %q, %v; want %q", version, got, err, want)
		}
	}
	for _, version := range []string{"1.1", "1x1.0", "2.0.0", "Unreleased", ""} {
		if got, err := notes(t, changelog, version); err == nil || !strings.Contains(got, "Unreleased 1.10.0 1.1.0") {
			t.Errorf("the notes of %q are %q, %v; want an error with the versions that there are", version, got, err)
		}
	}
}

// TestChangelog checks the headings of the changelog, and that scripts/notes can read it.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	release := regexp.MustCompile(`^## \[(\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?)\] - \d{4}-\d{2}-\d{2}$`)
	kinds := []string{"### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"}
	versions, kind := 0, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			if versions++; versions == 1 && line != "## [Unreleased]" || versions > 1 && !release.MatchString(line) {
				t.Errorf("%q is not the heading of a version", line)
			}
			kind = ""
		case strings.HasPrefix(line, "### "):
			if !slices.Contains(kinds, line) || line == kind {
				t.Errorf("%q is not a kind of change, or appears twice in a row", line)
			}
			kind = line
		case strings.HasPrefix(line, "- ") && (versions == 0 || kind == ""):
			t.Errorf("%q belongs to no version or kind of change", line)
		}
	}
	if versions == 0 {
		t.Error("the changelog has no version")
	}
	if got, err := exec.Command("./notes", "Unreleased").CombinedOutput(); err != nil || !strings.HasPrefix(string(got), "### ") {
		t.Errorf("scripts/notes Unreleased prints %q (error %v), want a list that begins with a kind of change", got, err)
	}
}
