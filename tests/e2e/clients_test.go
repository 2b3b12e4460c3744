//go:build unix

package e2e

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"oddsgraph/tests/tool"
)

// TestClients runs the published packages of widely used GraphQL clients against the program.
func TestClients(t *testing.T) {
	requireNode(t)
	wait := startOffline(t, 1)
	t.Parallel() // waits for the tests that are not parallel; the child process runs meanwhile
	if wait != nil {
		if err := wait(); err != nil {
			t.Errorf("the tests fail in a process without network access: %v", err)
		}
		return
	}
	prepareClients(t)
	files, err := filepath.Glob("clients/src/*.test.ts")
	if err != nil || len(files) == 0 {
		t.Fatalf("error %v; found %d test files in clients/src", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".test.ts")
		t.Run(name, func(t *testing.T) {
			if name == "venues" {
				runOverSimulators(t, "clients", "dist/venues.test.js", nil)
				return
			}
			// The venue's only market stays open, because the smallest account holds a position in it. With one market, each
			// token's price changes about once a second.
			runNodeTest(t, "clients", "dist/"+name+".test.js", nil, "--demo-markets=1")
		})
	}
}

// prepareClients generates and compiles the code in clients/, with the packages that make has installed. It holds a file lock until
// the test ends, so that no other process builds this code during the test.
func prepareClients(t *testing.T) {
	t.Helper()
	lock, err := os.Open("clients/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("clients/node_modules/.installed.json") // a copy of package-lock.json
	if err != nil || string(have) != read(t, "clients/package-lock.json") {
		tool.Missing(t, "the packages of clients/ are missing or out of date: run make clients")
	}
	node(t, "clients", "npm", "run", "--silent", "generate")
	node(t, "clients", "npm", "run", "--silent", "build")
}

// TestGateway tests the gateway of examples/federation in front of two subgraphs: the whole program and a small second service.
func TestGateway(t *testing.T) {
	t.Parallel()
	requireNode(t)
	const dir = "examples/federation"
	have, err := os.ReadFile(filepath.Join(dir, "node_modules/.installed.json")) // a copy of package-lock.json
	if err != nil || string(have) != read(t, filepath.Join(dir, "package-lock.json")) {
		tool.Missing(t, "the packages of %s are missing or out of date: run make pages", dir)
	}
	runNodeTest(t, dir, "gateway.test.js", nil, "--federation", "--demo-markets=60")
}

// checkExample checks that a file in examples/federation contains the block.
func (d *docs) checkExample(t *testing.T, b block) {
	files, err := filepath.Glob(filepath.Join(d.root, "examples/federation/*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.Contains(read(t, file), strings.TrimSpace(b.text)) {
			return
		}
	}
	t.Errorf("none of the %d files in examples/federation contains the block", len(files))
}

// newestNode is the newest supported version of Node.js. The tests run the code of the documentation on this version and on the
// installed version.
const newestNode = "26.10.0"

// installNode installs a version of Node.js from a package of npm, and returns the directory of its program.
func installNode(t *testing.T, version string) string {
	t.Helper()
	name := "node-" + runtime.GOOS + "-" + cmp.Or(map[string]string{"amd64": "x64"}[runtime.GOARCH], runtime.GOARCH)
	g := &guide{ctx: t.Context(), dir: t.TempDir(), addresses: strings.NewReplacer()}
	step := block{file: "Node.js " + version}
	g.runLine(t, step, "npm init --yes")
	g.runLine(t, step, "npm install --ignore-scripts "+name+"@"+version)
	g.bin = filepath.Join(g.dir, "node_modules", ".bin")
	g.runLine(t, step, `test "$(node --version)" = v`+version)
	return g.bin
}

// runCodegen checks the file that GraphQL Code Generator writes with each configuration of the documentation. The file must be the
// same for the schema from /schema.graphql and from /graphql, and for each version of Node.js. It must compile with the page of
// docs/frontend.md.
func (g *guide) runCodegen(t *testing.T, origin string) {
	g.ctx = t.Context()
	generated := filepath.Join(g.dir, "src/operations.ts")
	configs := g.codegenConfigs(t)
	written := map[string]string{}
	for _, version := range []string{"", newestNode} {
		names := slices.Sorted(maps.Keys(configs))
		if version != "" {
			g.bin, names = installNode(t, version), []string{"guide"}
		}
		for _, name := range names {
			schemas := []string{"/schema.graphql"}
			if name == "guide" && version == "" {
				schemas = append(schemas, "/graphql")
			}
			for _, schema := range schemas {
				config := strings.Replace(configs[name], origin+"/schema.graphql", origin+schema, 1)
				if !strings.Contains(config, "schema: "+origin+schema+"\n") {
					t.Fatalf("the configuration of the code generator does not name the schema of the service:\n%s", config)
				}
				if err := errors.Join(os.WriteFile(filepath.Join(g.dir, "codegen.yml"), []byte(config), 0o600), os.Remove(generated)); err != nil {
					t.Fatal(err)
				}
				g.runLine(t, block{file: name + schema}, "npx graphql-codegen")
				text := read(t, generated)
				if written[name] == "" {
					written[name] = text
					g.runLine(t, block{file: name + schema}, "npx tsc")
				}
				if text != written[name] {
					t.Errorf("the configuration %q writes another file with the schema of %s and Node.js %s", name, schema, cmp.Or(version, "as installed"))
				}
			}
		}
	}
}

// codegenConfigs returns the configurations of GraphQL Code Generator in docs/frontend.md and in docs/client-kit.md. It also checks
// the scalars in the YAML blocks of docs/client-kit.md.
func (g *guide) codegenConfigs(t *testing.T) map[string]string {
	t.Helper()
	type configuration struct {
		Config struct{ Scalars map[string]any }
	}
	parse := func(text string) (c configuration) {
		if err := yaml.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	chapter := read(t, filepath.Join(g.dir, "codegen.yml"))
	configs := map[string]string{"guide": chapter}
	var packaged map[string]any
	decode(t, read(t, "web/kit/scalars.json"), &packaged)
	want := map[string]map[string]any{"codegen": packaged, "": parse(chapter).Config.Scalars}
	compared := 0
	for _, b := range readDocs(t) {
		if b.file != "docs/client-kit.md" || b.lang != "yaml" {
			continue
		}
		compared++
		if got := yamlText(t, parse(b.text).Config.Scalars); got != yamlText(t, want[b.kind]) {
			t.Errorf("%s: scalars are %s, want %s", b, got, yamlText(t, want[b.kind]))
		}
		if b.kind == "codegen" {
			configs["kit"] = g.addresses.Replace(b.text)
		}
	}
	if compared != 2 || configs["kit"] == "" {
		t.Fatalf("docs/client-kit.md has %d YAML blocks, want 2, and one of them marked \"codegen\"", compared)
	}
	return configs
}

// yamlText returns a value as YAML with sorted keys.
func yamlText(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// runProxy checks that Vite, with the configuration in docs/frontend.md, forwards queries and WebSockets to the service.
func (g *guide) runProxy(t *testing.T) {
	var config string
	for _, b := range readDocs(t) {
		if b.file == "docs/frontend.md" && b.lang == "js" && strings.Contains(b.text, "server: { proxy") {
			config = g.addresses.Replace(b.text)
		}
	}
	path := filepath.Join(g.dir, "vite.config.ts")
	if config == "" || os.WriteFile(path, []byte(config), 0o600) != nil {
		t.Fatal("docs/frontend.md has no configuration of Vite, or the test cannot write the configuration to a file")
	}
	g.ctx = t.Context()
	g.runLine(t, block{file: path}, "npx vite")
	resp, err := http.Post(g.url+"/graphql", "application/json", strings.NewReader(`{"query": "{ serviceStatus { demo } }"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != `{"data":{"serviceStatus":{"demo":true}}}` {
		t.Errorf("a query through the proxy got status %s, body %s and error %v", resp.Status, body, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // Vite does not respond to an upgrade that it does not forward
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/graphql", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol": "graphql-transport-ws", "Origin": g.url,
	} {
		r.Header.Set(name, value)
	}
	socket, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Body.Close()
	if socket.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("the handshake of a WebSocket through the proxy got status %s, want 101", socket.Status)
	}
}
