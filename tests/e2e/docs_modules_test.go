//go:build unix

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

// compileModules compiles the TypeScript blocks of each section as one module, with the packages and the generated code of
// clients/. It omits the blocks for TestGuide. The result maps the first block of each module to the compiled file.
func compileModules(t *testing.T, d *docs, blocks []block) map[string]string {
	t.Helper()
	requireNode(t)
	prepareClients(t)
	frontend := filepath.Join(d.dir, "frontend")
	if err := os.MkdirAll(frontend, 0o755); err != nil {
		t.Fatal(err)
	}
	d.write(t, "frontend/operations.ts", read(t, "clients/src/__generated__/operations.ts"))
	if err := os.Symlink(filepath.Join(d.root, "clients", "node_modules"), filepath.Join(frontend, "node_modules")); err != nil {
		t.Fatal(err)
	}
	d.write(t, "frontend/package.json", `{"type": "module"}`)
	d.write(t, "frontend/browser.js", browser)
	d.write(t, "frontend/tsconfig.json", `{"extends": "`+d.root+`/clients/tsconfig.json",
	  "compilerOptions": {"rootDir": ".", "outDir": "dist", "resolveJsonModule": true, "sourceMap": false,
	    "lib": ["es2023", "dom", "esnext.disposable"], "typeRoots": ["node_modules/@types"]},
	  "include": ["*.ts"]}`)

	modules, open, written := map[string]string{}, map[string]string{}, map[string]string{}
	for _, b := range blocks {
		if b.lang != "ts" || b.kind == guideKind {
			continue
		}
		section := b.file + "#" + b.section
		if open[section] == "" {
			open[section] = fmt.Sprintf("block%d", len(open))
			modules[b.String()] = filepath.Join(frontend, "dist", open[section]+".js")
		}
		// The added empty lines give each line of the block the same line number as in the Markdown file. So the compiler's errors
		// name the right lines.
		lines := strings.Count(written[section], "\n")
		written[section] += strings.Repeat("\n", max(b.line-1-lines, 0)) + b.text
	}
	sources := map[string]string{}
	for section, name := range open {
		d.write(t, "frontend/"+name+".ts", written[section]+"\nexport {}\n")
		sources[name+".ts"] = section
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(d.root, "clients/node_modules/.bin/tsc"), "-p", ".")
	cmd.Dir = frontend
	if out, err := cmd.CombinedOutput(); err != nil {
		text := string(out)
		for name, section := range sources {
			text = strings.ReplaceAll(text, name, section+" ")
		}
		t.Fatalf("the TypeScript compiler failed with %v and printed\n%s", err, text)
	}
	return modules
}

// browser is a program that runs a module with the browser APIs that old versions of Node.js lack. The program exits without
// waiting for sockets to close.
const browser = `
globalThis.WebSocket ??= (await import('ws')).default
globalThis.crypto ??= (await import('node:crypto')).webcrypto
await import(process.argv[2])
process.exit(0)`

// runModule runs the module of a block. The module must end by itself without an error.
func (d *docs) runModule(t *testing.T, b block) {
	module := d.modules[b.String()]
	if module == "" {
		return // this block is a later part of a module that has run
	}
	d.answer = d.execModule(t, "node", module)
}

// execModule runs a compiled module and returns what it printed.
func (d *docs) execModule(t *testing.T, program, module string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "browser.js", module)
	cmd.Dir = filepath.Join(d.dir, "frontend")
	cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("the module failed with %v and printed\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

func (d *docs) runOnNewestNode(t *testing.T) {
	program := filepath.Join(installNode(t, newestNode), "node")
	for first, module := range d.modules {
		t.Run(first, func(t *testing.T) { d.execModule(t, program, module) })
	}
}

// importConfig checks that a block is a module whose default export is an object.
func (d *docs) importConfig(t *testing.T, b block) {
	requireNode(t)
	d.write(t, "config.mjs", b.text)
	node(t, d.dir, "node", "--input-type=module", "-e", `import config from './config.mjs'
if (typeof config !== 'object') throw new Error('no object is exported')`)
}

// checkKotlin checks that a Gradle file of Apollo Kotlin maps all scalars of the schema and no others.
func (d *docs) checkKotlin(t *testing.T, b block) {
	var want, got []string
	for _, def := range d.schema.Types {
		if def.Kind == ast.Scalar && !def.BuiltIn {
			want = append(want, def.Name)
		}
	}
	for _, match := range regexp.MustCompile(`mapScalar\w*\("(\w+)"`).FindAllStringSubmatch(b.text, -1) {
		got = append(got, match[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the Gradle file maps the scalars %q, want %q", got, want)
	}
}
