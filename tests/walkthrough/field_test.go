// Package walkthrough applies the example in CONTRIBUTING.md that adds a field.
package walkthrough

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// TestAddAField checks that the steps in CONTRIBUTING.md add a field to the schema. It applies the steps to a copy of the module,
// builds the program and queries the field.
func TestAddAField(t *testing.T) {
	tool.NightlyTier(t)
	root, err := tool.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(guide), "\n```diff\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !ok || !closed {
		t.Fatal("CONTRIBUTING.md has no block of language diff")
	}
	work := copyModule(t, root)
	edited := insertLines(t, work, block)
	command(t, work, "go", "run", "./graph/gen")
	if changed := changedFiles(t, root, work); !slices.Equal(changed, edited) {
		t.Errorf("the files %q differ from the module, want only the edited files %q", changed, edited)
	}
	exe := filepath.Join(t.TempDir(), "oddsgraph")
	command(t, work, "go", "build", "-o", exe, ".")
	got := ask(t, exe, `{"query":"{ searchMarkets(first: 1) { nodes { feeBps } } }"}`)
	if want := `{"data":{"searchMarkets":{"nodes":[{"feeBps":"20"}]}}}`; got != want {
		t.Errorf("the response is %s, want %s", got, want)
	}
}

// copyModule copies the module without its version history, its npm packages and the folder bin.
func copyModule(t *testing.T, root string) string {
	t.Helper()
	work := t.TempDir()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || name == "bin"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(work, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(work, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return work
}

// insertLines applies the edits of a block. An edit has three lines. The first line is the name of a file. The second
// line is a space and an existing line of that file. The third line is a plus sign and the line to insert below the existing line.
// insertLines returns the names of the changed files, sorted.
func insertLines(t *testing.T, work, block string) (files []string) {
	t.Helper()
	file, existing := "", ""
	for line := range strings.SplitSeq(block, "\n") {
		switch {
		case strings.HasPrefix(line, " "):
			existing = line[1:]
		case !strings.HasPrefix(line, "+"):
			file = line
		default:
			name := filepath.Join(work, file)
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte(existing+"\n")); n != 1 {
				t.Fatalf("%s has the line %q %d times, want it once", file, existing, n)
			}
			text = bytes.Replace(text, []byte(existing+"\n"), []byte(existing+"\n"+line[1:]+"\n"), 1)
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

// generated matches the paths of the files that the generator writes.
var generated = regexp.MustCompile(`^(graph/.*generated.*|graph/model/models_gen\.go|resolvers/.*generated.*|web/kit/.*|docs/schema(-changelog)?\.md)$`)

// changedFiles returns the files in the directory work that are missing in the directory root, or have other content there. It
// omits generated files.
func changedFiles(t *testing.T, root, work string) (changed []string) {
	t.Helper()
	err := filepath.WalkDir(work, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(work, file)
		if err != nil {
			return err
		}
		now, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		before, err := os.ReadFile(filepath.Join(root, name))
		if name = filepath.ToSlash(name); !generated.MatchString(name) && (err != nil || !bytes.Equal(before, now)) {
			changed = append(changed, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(changed)
	return changed
}

// command runs a command in a directory, and fails the test if the command fails.
func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// ask starts the program, sends it one request and returns the response.
func ask(t *testing.T, exe, body string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, "--listen=127.0.0.1:0", "--admin-listen=off", "--log-format=json")
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	url := ""
	for lines := json.NewDecoder(logs); url == ""; {
		var line struct {
			Message string `json:"msg"`
			URL     string `json:"url"`
		}
		if err := lines.Decode(&line); err != nil {
			t.Fatalf("reading the program's log: %v", err)
		}
		if line.Message == "oddsgraph is ready" {
			url = line.URL
		}
	}
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Post(url+"/graphql", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(resp.Body); err != nil {
		t.Fatal(fmt.Errorf("reading the response: %w", err))
	}
	return strings.TrimSpace(out.String())
}
