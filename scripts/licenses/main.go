// Command licenses writes THIRD_PARTY_LICENSES: the licence texts of Go and of every module whose code the program contains on
// any platform with releases. Run it in the top folder after a change of go.mod.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are the GOOS values of the releases. Builds for different systems may contain different modules. GOARCH does not change
// the modules.
var platforms = []string{"linux", "darwin", "windows"}

func main() {
	out := flag.String("o", "THIRD_PARTY_LICENSES", "file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	components, err := list()
	if err != nil {
		return err
	}
	text, err := join(components)
	if err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

// component is a module, or Go itself. folders are the directories of the packages that the program contains, with their parents
// below root.
type component struct {
	name    string
	root    string
	folders map[string]bool
}

// list returns Go, followed by the modules of the program, sorted by name.
func list() ([]*component, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	modules := map[string]*component{}
	for _, platform := range platforms {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", ".")
		cmd.Env = append(os.Environ(), "GOOS="+platform, "GOARCH=amd64", "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		packages, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", platform, err)
		}
		if err := collect(modules, packages); err != nil {
			return nil, fmt.Errorf("go list for %s: %w", platform, err)
		}
	}
	components := []*component{{name: "Go standard library and runtime", root: strings.TrimSpace(string(goroot))}}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		components = append(components, modules[path])
	}
	return components, nil
}

// collect adds the modules of a `go list` output.
func collect(modules map[string]*component, packages []byte) error {
	for d := json.NewDecoder(bytes.NewReader(packages)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case p.Module == nil || p.Module.Main:
			continue
		}
		m := modules[p.Module.Path]
		if m == nil {
			m = &component{name: p.Module.Path + " " + p.Module.Version, root: p.Module.Dir, folders: map[string]bool{}}
			modules[p.Module.Path] = m
		}
		for dir := p.Dir; len(dir) > len(m.root); dir = filepath.Dir(dir) {
			m.folders[dir] = true
		}
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([._-].*)?$`)

// texts returns the distinct normalized texts of the licence files in the component's root and folders.
func (c *component) texts() ([]string, error) {
	folders := []string{c.root}
	for dir := range c.folders {
		folders = append(folders, dir)
	}
	slices.Sort(folders)
	var texts []string
	for _, dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			if normal := normalize(string(text)); !slices.Contains(texts, normal) {
				texts = append(texts, normal)
			}
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s has no licence file", c.name)
	}
	return texts, nil
}

// normalize unifies line ends. It removes space at the ends of lines, and empty lines at the start and the end of the text.
func normalize(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// join returns each licence text once, after the names of all components that have this text.
func join(components []*component) ([]byte, error) {
	var order []string
	names := map[string][]string{}
	for _, c := range components {
		texts, err := c.texts()
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], c.name)
		}
	}
	var out []byte
	for _, text := range order {
		out = fmt.Appendf(out, "%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(names[text], "\n"), text)
	}
	return out, nil
}
