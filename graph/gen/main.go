// Command gen generates files from schema.graphqls: gqlgen's code, the executor for package exec, the reference and the changelog
// of the schema, and the configuration of clients' caches. `make generate` runs it in the module's root. With -release it records
// the present schema as the schema of a release instead.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

const schemaFile = "schema.graphqls"

func main() {
	version := flag.String("release", "", "record the schema as that of the release with this `version`, such as 1.2.3")
	flag.Parse()
	run := generate
	if *version != "" {
		run = func() error { return release(*version, time.Now()) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate() error {
	for _, dir := range []string{"graph/exec/internal/sample", "graph"} {
		if err := code(dir); err != nil {
			return err
		}
	}
	files, err := texts(".")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(name, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// code writes gqlgen's code and the executor into a directory. It uses the gqlgen.yml in that directory. If the directory has no
// gqlgen.yml, code uses the gqlgen.yml in the module's root.
func code(dir string) error {
	file := filepath.Join(dir, "gqlgen.yml")
	if _, err := os.Stat(file); err != nil {
		file = "gqlgen.yml"
	}
	cfg, err := config.LoadConfig(file)
	if err != nil {
		return err
	}
	return api.Generate(cfg, api.AddPlugin(&compiler{filename: filepath.Join(dir, "executor.generated.go")}))
}

// texts returns the generated files that are not Go code. The keys are the paths relative to the module's root.
func texts(root string) (map[string][]byte, error) {
	schema, err := load(filepath.Join(root, schemaFile))
	if err != nil {
		return nil, err
	}
	released, err := load(filepath.Join(root, releasedFile))
	if err != nil {
		return nil, err
	}
	old, err := os.ReadFile(filepath.Join(root, changelogFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	kit, err := kit(schema)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"docs/schema.md": reference(schema), changelogFile: []byte(changelog(string(old), released, schema))}
	for name, text := range kit {
		files[filepath.Join("web/kit", name)] = text
	}
	return files, nil
}
