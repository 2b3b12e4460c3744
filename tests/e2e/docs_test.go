//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
	"github.com/yuin/goldmark"
	markdown "github.com/yuin/goldmark/ast"
	source "github.com/yuin/goldmark/text"
	"go.yaml.in/yaml/v3"

	"oddsgraph/graph"
	"oddsgraph/internal/config"
)

// block is a code block of a Markdown file.
type block struct {
	file string
	line int
	// section is the last heading of level 1 or 2 above the block.
	section string
	// lang is the first word of the line that opens the block, and kind is the rest of this line. An indented block has neither.
	lang, kind string
	text       string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// docsRules say how to execute a block, by language and kind. A block without a rule fails. In each block, the test replaces the
// documented addresses by the addresses of the running program, and /etc/oddsgraph/ by a directory of the test.
var docsRules = map[string]func(*docs, *testing.T, block){
	"sh":              (*docs).runShell,     // each line must succeed; docs_commands_test.go replaces make and other commands
	"graphql":         (*docs).runGraphQL,   // executed, with variables if the next block has them; fragments are only validated
	"graphql part":    (*docs).checkExample, // must be in a file of examples/federation; TestGateway runs these files
	"json variables":  (*docs).parseJSON,    // the variables of the previous GraphQL block
	"json answer":     (*docs).wantAnswer,   // compared with the output of the previous block, by members and types
	"json request":    (*docs).runRequests,  // one body for POST /graphql on each line
	"json accounts":   (*docs).checkFile,    // a file for --accounts-file
	"json manifest":   (*docs).checkFile,    // a file for --documents-manifest
	"json questions":  (*docs).checkFile,    // a file for --questions-file
	"http":            (*docs).runHTTP,      // sent as it is; the status must be below 400
	"ts":              (*docs).runModule,    // compiled strictly; all blocks of a section are one module
	"js":              (*docs).importConfig, // the configuration of a build tool, which exports an object; TestGuide runs Vite with it
	"json apollo-ios": (*docs).parseJSON,    // the configuration of a code generator that does not run here
	"kotlin":          (*docs).checkKotlin,  // a Gradle file; it must map the schema's scalars
	"yaml":            (*docs).parseYAML,    // parsed; TestDocsLinks checks the variables in it
	"yaml codegen":    (*docs).parseYAML,    // TestGuide runs GraphQL Code Generator with it
	"ini":             (*docs).checkINI,     // a file for --config, if the first line names its path; otherwise only the syntax is checked
	"mermaid":         (*docs).checkPicture,
	"diff":            func(*docs, *testing.T, block) {}, // tests/walkthrough applies these edits
	"text":            (*docs).countPicture,
}

// pictures maps a file to the number of its plain-text blocks, which are not executed.
var pictures = map[string]int{"README.md": 1, "docs/configuration.md": 1}

// docs executes the blocks one after the other, and keeps the results that later blocks need.
type docs struct {
	*service
	root, dir string
	schema    *ast.Schema
	modules   map[string]string // maps the first block of a module to the compiled file
	answer    []byte            // output of the previous block that was executed
	skipped   bool              // the previous block was skipped
	next      block             // the following block of the same file
	pictures  map[string]int
}

// TestDocs applies docsRules to all code blocks of the Markdown files, except the blocks for TestGuide.
func TestDocs(t *testing.T) {
	t.Parallel()
	blocks := readDocs(t)
	if len(blocks) < 50 {
		t.Fatalf("only %d blocks were found", len(blocks))
	}
	d := newDocs(t, blocks)
	for i, b := range blocks {
		t.Run(b.String(), func(t *testing.T) {
			rule := docsRules[strings.TrimSpace(b.lang+" "+b.kind)]
			switch {
			case b.kind == guideKind:
				return // TestGuide follows these blocks
			case b.lang == "":
				t.Fatal("the block has no language: fence it, and name one that docsRules has")
			case rule == nil:
				t.Fatalf("there is no rule for blocks of %q", strings.TrimSpace(b.lang+" "+b.kind))
			}
			d.next = block{}
			if i+1 < len(blocks) && blocks[i+1].file == b.file {
				d.next = blocks[i+1]
			}
			if b.kind != "answer" && b.kind != "variables" {
				d.answer = nil
			}
			defer func() { d.skipped = t.Skipped() }()
			rule(d, t, b)
		})
	}
	t.Run("Node.js "+newestNode, d.runOnNewestNode)
	if !maps.Equal(d.pictures, pictures) {
		t.Errorf("the numbers of plain-text blocks are %v, want %v", d.pictures, pictures)
	}
}

// newDocs starts a service whose prices change all the time, so that the subscriptions in the blocks get events at once.
func newDocs(t *testing.T, blocks []block) *docs {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	d := &docs{service: startLive(t, "--demo-markets=1200"), root: root, dir: t.TempDir(), pictures: map[string]int{}}
	if d.schema, err = gqlparser.LoadSchema(&ast.Source{Name: "schema.graphqls", Input: graph.SDL()}); err != nil {
		t.Fatal(err)
	}
	for _, b := range slices.Backward(blocks) { // if two blocks show the same file, the first block overwrites the second block
		if name := d.fileOf(b); name != "" {
			d.write(t, name, b.text)
		}
	}
	d.modules = compileModules(t, d, blocks)
	d.stageCommands(t)
	stepped := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(stepped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				d.venue.Step()
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stepped })
	return d
}

// markdownFiles returns the Markdown files of the project.
func markdownFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist") {
			return fs.SkipDir
		}
		if strings.HasSuffix(file, ".md") {
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readDocs returns the code blocks of all Markdown files.
func readDocs(t *testing.T) []block {
	t.Helper()
	var blocks []block
	for _, file := range markdownFiles(t) {
		source := []byte(read(t, file))
		section := ""
		err := markdown.Walk(parseMarkdown(source), func(n markdown.Node, entering bool) (markdown.WalkStatus, error) {
			if !entering {
				return markdown.WalkContinue, nil
			}
			switch n := n.(type) {
			case *markdown.Heading:
				if n.Level <= 2 {
					section = string(linesOf(n, source))
				}
			case *markdown.FencedCodeBlock:
				b := block{file: file, line: lineOf(n, source), section: section, text: string(linesOf(n, source))}
				if n.Info != nil {
					b.lang, b.kind, _ = strings.Cut(string(n.Info.Value(source)), " ")
				}
				blocks = append(blocks, b)
			case *markdown.CodeBlock:
				blocks = append(blocks, block{file: file, line: lineOf(n, source), section: section, text: string(linesOf(n, source))})
			}
			return markdown.WalkContinue, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return blocks
}

func parseMarkdown(content []byte) markdown.Node {
	return goldmark.DefaultParser().Parse(source.NewReader(content))
}

func linesOf(n markdown.Node, source []byte) []byte { return n.Lines().Value(source) }

// lineOf returns the line number of a block's first line, or 0 if the block is empty.
func lineOf(n markdown.Node, source []byte) int {
	if n.Lines().Len() == 0 {
		return 0
	}
	return 1 + bytes.Count(source[:n.Lines().At(0).Start], []byte("\n"))
}

// replaceAddresses replaces the documented addresses and the directory /etc/oddsgraph/ by those of the test.
func (d *docs) replaceAddresses(text string) string {
	return strings.NewReplacer(
		"127.0.0.1:8080", d.Addr().String(), "127.0.0.1:9091", d.Admin.Addr().String(), "127.0.0.1:8091", d.Demo.Addr().String(), "/etc/oddsgraph/", d.dir+"/etc/oddsgraph/",
	).Replace(text)
}

// write creates a file with mode 0600 for the blocks to read.
func (d *docs) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(d.replaceAddresses(content)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fileOf returns the name of the file that a block shows, or "" if the block shows no file.
func (*docs) fileOf(b block) string {
	first, _, _ := strings.Cut(b.text, "\n")
	if name, ok := strings.CutPrefix(first, "# /etc/oddsgraph/"); ok {
		return "etc/oddsgraph/" + name
	}
	switch b.kind {
	case "accounts":
		return "etc/oddsgraph/accounts.json"
	case "manifest":
		return "frontend/persisted-query-manifest.json"
	}
	return ""
}

// postDoc posts a GraphQL request with the credentials of the demo account that may read every wallet.
func (d *docs) postDoc(t *testing.T, body string) []byte {
	t.Helper()
	resp := d.do(t, d.request(t, body, keyOfAny))
	if !json.Valid([]byte(resp.body)) {
		t.Fatalf("the response has status %d and is not JSON: %s", resp.status, resp.body)
	}
	return []byte(resp.body)
}

// wantData fails the test if a response has errors. An error is allowed if the next block documents a response with errors.
func (d *docs) wantData(t *testing.T, answer []byte) {
	t.Helper()
	var out struct{ Errors []graphError }
	if json.Unmarshal(answer, &out) == nil && len(out.Errors) > 0 && !(d.next.kind == "answer" && strings.Contains(d.next.text, `"errors"`)) {
		t.Errorf("the answer has errors: %s", answer)
	}
}

func (d *docs) runGraphQL(t *testing.T, b block) {
	doc, errs := gqlparser.LoadQueryWithRules(d.schema, b.text, rules.NewDefaultRules())
	if len(errs) > 0 {
		var failedRules []string
		for _, err := range errs {
			if err.Rule != "NoUnusedFragments" {
				t.Error(err)
			}
			failedRules = append(failedRules, err.Rule)
		}
		if slices.Contains(failedRules, "NoUnusedFragments") && strings.HasPrefix(b.text, "fragment") {
			return // a document without an operation cannot be executed
		}
	}
	request := map[string]any{"query": b.text}
	if d.next.kind == "variables" {
		request["variables"] = json.RawMessage(d.next.text)
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if doc != nil && len(doc.Operations) == 1 && doc.Operations[0].Operation == ast.Subscription {
		d.answer = d.firstEvent(t, string(body))
	} else {
		d.answer = d.postDoc(t, string(body))
	}
	d.wantData(t, d.answer)
}

// firstEvent returns the first result of a subscription.
func (d *docs) firstEvent(t *testing.T, body string) []byte {
	t.Helper()
	r := d.request(t, body, keyOfAny)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := d.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var seen []byte
	buffer := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buffer)
		seen = append(seen, buffer[:n]...)
		if m := eventData.FindSubmatch(seen); m != nil {
			return m[1]
		}
		if err != nil {
			t.Fatalf("the stream ended before an event came: %v in %s", err, seen)
		}
	}
}

// eventData matches the data of an event in a graphql-sse stream.
var eventData = regexp.MustCompile(`event: next\ndata: (.*)\n`)

func (d *docs) parseJSON(t *testing.T, b block) {
	if !json.Valid([]byte(b.text)) {
		t.Error("the block is not valid JSON")
	}
}

func (d *docs) wantAnswer(t *testing.T, b block) {
	var want, got any
	decode(t, b.text, &want)
	if d.answer == nil && d.skipped {
		t.Skip("the previous block was skipped")
	}
	if d.answer == nil {
		t.Fatal("the previous block has no output to compare with")
	}
	decode(t, string(d.answer), &got)
	for _, difference := range jsonDifferences("", want, got) {
		t.Error(difference)
	}
	if t.Failed() {
		t.Logf("the answer is %s", d.answer)
	}
}

// jsonDifferences lists the members that only one of two JSON values has, and the values whose types differ. It compares error
// codes, but no other strings, numbers or booleans. A list in got may have more elements than the list in want.
func jsonDifferences(path string, want, got any) (differences []string) {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is not an object in the answer", path)}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := got[name]; !ok {
				differences = append(differences, fmt.Sprintf("%s.%s is not in the answer", path, name))
				continue
			}
			differences = append(differences, jsonDifferences(path+"."+name, want[name], got[name])...)
			if name == "code" && want[name] != got[name] {
				differences = append(differences, fmt.Sprintf("%s.code is %v, want %v", path, got[name], want[name]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[name]; !ok {
				differences = append(differences, fmt.Sprintf("%s.%s is in the answer only", path, name))
			}
		}
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) < len(want) {
			return []string{fmt.Sprintf("%s is not a list of at least %d elements in the answer", path, len(want))}
		}
		for i := range want {
			differences = append(differences, jsonDifferences(fmt.Sprintf("%s.%d", path, i), want[i], got[i])...)
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			return []string{fmt.Sprintf("%s is a %T in the answer, want a %T", path, got, want)}
		}
	}
	return differences
}

func (d *docs) runRequests(t *testing.T, b block) {
	for line := range strings.Lines(b.text) {
		d.answer = d.postDoc(t, line)
		d.wantData(t, d.answer)
	}
}

// checkFile runs config check with the file that a block shows.
func (d *docs) checkFile(t *testing.T, b block) {
	flags := map[string][]string{
		"accounts": {"--accounts-file="}, "manifest": {"--documents-trusted=require", "--documents-manifest="},
		"questions": {"--demo-driver=polymarket,kalshi", "--questions-file="},
	}[b.kind]
	flags[len(flags)-1] += d.write(t, b.kind+".json", b.text)
	d.configCheck(t, flags...)
}

func (d *docs) configCheck(t *testing.T, flags ...string) {
	t.Helper()
	if err := run(t.Context(), append([]string{"config", "check"}, flags...), nil, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

func (d *docs) runHTTP(t *testing.T, b block) {
	head, body, _ := strings.Cut(b.text, "\n\n")
	first, headers, _ := strings.Cut(strings.TrimSpace(head), "\n")
	method, target, ok := strings.Cut(first, " ")
	if !ok {
		t.Fatalf("%q is not a request line", first)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, d.URL()+strings.TrimSuffix(target, " HTTP/1.1"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(headers) {
		name, value, _ := strings.Cut(line, ":")
		r.Header.Set(name, strings.TrimSpace(value))
	}
	resp := d.do(t, r)
	if resp.status >= 400 {
		t.Errorf("the response has status %d, want less than 400: %s", resp.status, resp.body)
	}
	d.answer = []byte(resp.body)
}

// settingNames matches the program's environment variables.
var settingNames = regexp.MustCompile(`\bODDSGRAPH_[A-Z0-9_]*[A-Z0-9]\b`)

// checkSettings fails if a text names a variable that the program does not have.
func checkSettings(t *testing.T, text string) {
	t.Helper()
	known := config.Default().String()
	for _, name := range settingNames.FindAllString(text, -1) {
		if !strings.Contains(known, name+"=") && !slices.Contains(testSettings, name) {
			t.Errorf("the program has no environment variable %s", name)
		}
	}
}

// testSettings are environment variables that only test programs use.
var testSettings = []string{"ODDSGRAPH_URL"}

func (d *docs) parseYAML(t *testing.T, b block) {
	var v any
	if err := yaml.Unmarshal([]byte(b.text), &v); err != nil {
		t.Error(err)
	}
}

func (d *docs) checkINI(t *testing.T, b block) {
	if name := d.fileOf(b); name != "" {
		d.configCheck(t, "--config="+filepath.Join(d.dir, name))
		return
	}
	for line := range strings.Lines(b.text) {
		line = strings.TrimSpace(line)
		section := strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]")
		if line != "" && line[0] != '#' && !section && !strings.Contains(line, "=") {
			t.Errorf("%q is neither a section nor a setting", line)
		}
	}
}

func (d *docs) countPicture(_ *testing.T, b block) { d.pictures[b.file]++ }
