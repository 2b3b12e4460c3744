// Package mutations proves that tests cover the defences of the product. It removes one defence at a time and requires that a named
// test fails.
package mutations

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// mutation removes one defence from a copy of a source file. A test must fail with the copy.
type mutation struct {
	name string
	// tests is the folder of the test. By default it is the folder of the file.
	tests string
	// file is the path of the source file below the module's root. The text find occurs in the file exactly once and is replaced by
	// the text replace.
	file, find, replace string
	// run selects the test, as in go test -run. It may name a subtest.
	run string
	// message is a text that the output of the failed test must contain. If it is empty, any failure is accepted.
	message string
	// needs is a program that the test runs. Without this program, the test would be skipped.
	needs string
}

var mutations = []mutation{
	{
		name: "two callers share an account's cache entry",
		file: "internal/cache/users.go", find: "c != nil {\n\t\tmac.Write([]byte{0})", replace: "c != nil && false {\n\t\tmac.Write([]byte{0})",
		run: "^TestCallersNeverShareUserData$", message: "sees data of another caller",
	},
	{
		name: "a credential's entries hold another credential's responses",
		file: "httpapi/respcache/identity.go", find: `c.identities.of("account", string(address), credentials.Wire())`, replace: `c.identities.of("account", string(address))`,
		run: "^TestCallersAreKeptApart$",
	},
	{
		name: "a caller that leaves drops the keys of other callers",
		file: "internal/cache/batch.go", find: "f.waiters > 0 || f.ended", replace: "f.ended",
		run: "^TestOneCallersCancellationFailsNobodyElse$/^queued$", message: "got call for [c]",
	},
	{
		name:  "failed keys are read again at once",
		tests: "internal/venue/generic", file: "internal/venue/rest/backoff.go", find: "if !ok {\n\t\treturn nil\n\t}\n\tif left", replace: "if ok || !ok {\n\t\treturn nil\n\t}\n\tif left",
		run: "^TestFailedKeysAreNotReadDuringBackoff$",
	},
	{
		name:  "the circuit never opens",
		tests: "internal/venue/generic", file: "internal/venue/rest/breaker.go", find: "return b.failures >= minFailures && len(b.subjects) >= minSubjects", replace: "return false",
		run: "^TestCircuitOpensAndCloses$",
	},
	{
		name: "a bad element fails its whole list",
		file: "internal/venue/generic/lookup.go", find: "c.Report(l.endpoint, n)\n\tif err != nil {", replace: "c.Report(l.endpoint, n)\n\tif len(n) > 0 && err == nil {\n\t\terr = rest.BadElement(l.endpoint, errors.New(n[0]))\n\t}\n\tif err != nil {",
		run: "^(TestPriceForms|TestSpreadForms)$",
	},
	{
		name: "a repeated change counts as a gap",
		file: "internal/feed/messages.go", find: "if seen(&t.state, m) || late &&", replace: "if late &&",
		run: "^TestTopics$", message: "TestTopics/orderbook/duplicates",
	},
	{
		name: "gaps in the numbers are ignored",
		file: "internal/feed/messages.go", find: "return m.Seq == 0 || s.Seq == 0 ||", replace: "return true || s.Seq == 0 ||",
		run: "^TestChaos$/^seed_1$", message: "wrong: ",
	},
	{
		name: "messages get no internal numbers",
		file: "internal/venue/stream/send_queue.go", find: "m.Internal = messages.Internal{Epoch: q.epoch, Seq: s.numbered}", replace: "m.Internal = messages.Internal{}",
		run: "^TestInternalNumbers$",
	},
	{
		name: "internal numbers reveal no lost message",
		file: "internal/feed/internal.go", find: "return before.Seq != 0 && (!same || number.Seq != before.Seq+1), false", replace: "return false, false",
		run: "^TestLossBetweenParts$", message: "the book is",
	},
	{
		name: "an old snapshot replaces a newer state",
		file: "internal/feed/messages.go", find: "if !t.state.Known || !seen(&t.state, m) {\n\t\treturn false", replace: "if true {\n\t\treturn false",
		run: "^TestTopics$", message: "TestTopics/orderbook/an_old_snapshot_in_a_gap",
	},
	{
		name: "crossed books are published",
		file: "internal/feed/book.go", find: "return bid != nil && ask != nil && bid.Cmp(*ask) >= 0", replace: "return bid != nil && ask != nil && false",
		run: "^TestChaos$/^seed_1$", message: "wrong: ",
	},
	{
		name: "a snapshot is merged with the book before it",
		file: "internal/feed/messages.go", find: "s.Book = withPosition(m.Book, m)\n\tcase messages.KindTradesSnapshot", replace: `book := m.Book
		if s.Book != nil && m.Book.Seq != 0 {
			var levels []market.LevelChange
			for _, l := range m.Book.Bids.Levels() {
				levels = append(levels, market.LevelChange{Side: market.SideBuy, Level: l})
			}
			for _, l := range m.Book.Asks.Levels() {
				levels = append(levels, market.LevelChange{Side: market.SideSell, Level: l})
			}
			book = applyChanges(s.Book, levels)
		}
		s.Book = withPosition(book, m)
	case messages.KindTradesSnapshot`,
		run: "^TestChaos$/^seed_1$", message: "wrong: ",
	},
	{
		name: "heartbeats reveal no lost message",
		file: "internal/feed/messages.go", find: "if t.ended || t.phase != following || epoch != \"\" && epoch == t.previousEpoch {", replace: "if true {",
		run: "^TestChaos$/^seed_1$", message: "hang: ",
	},
}

// TestDefencesAreInTheSource checks that each mutation's file contains the text find exactly once, and that the mutation's test
// exists. If the code changes, change the mutation too.
func TestDefencesAreInTheSource(t *testing.T) {
	root, err := tool.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range slices.Concat(mutations, bounds, calls, replicas, kalshi, polymarket) {
		t.Run(m.name, func(t *testing.T) {
			m.overlay(t, root)
			for _, name := range strings.Split(strings.Trim(strings.SplitN(m.run, "/", 2)[0], "^$()"), "|") {
				if !hasTest(t, filepath.Join(root, m.dir()), name) {
					t.Errorf("no test of %s has the name %s", m.dir(), name)
				}
			}
		})
	}
}

// dir returns the folder of the mutation's test.
func (m *mutation) dir() string { return cmp.Or(m.tests, path.Dir(m.file)) }

// hasTest reports whether a directory has a test function with the given name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "func "+name+"(")
	})
}

// TestMutations runs the test of each mutation and requires that the test fails.
func TestMutations(t *testing.T) {
	if os.Getenv("MUTATIONS") == "" {
		t.Skip("make mutations and make check run this test, because it compiles the code once for each mutation")
	}
	root, err := tool.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range slices.Concat(mutations, bounds, calls, replicas, kalshi, polymarket) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.mustFail(t, root)
		})
	}
}

// mustFail runs the mutation's test and requires that the test fails.
func (m *mutation) mustFail(t *testing.T, root string) {
	t.Helper()
	if m.needs != "" {
		tool.Require(t, m.needs)
	}
	dir := m.dir()
	// go test reuses a cached result only while no file has changed in the directories that the test has read. So read the
	// directory.
	if _, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// make builds the program with the same flags, so the build cache has the unchanged packages.
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", m.overlay(t, root), "-trimpath", "-buildvcs=false", "-vet=off", "-count=1", "-timeout=2m", "-run", m.run, "./"+dir)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	output := string(out)
	switch {
	case err == nil:
		t.Errorf("the tests %s pass without the defence:\n%s", m.run, output)
	case !strings.Contains(output, "--- FAIL: Test"):
		t.Errorf("no test failed: %v\n%s", err, output)
	case !strings.Contains(output, m.message):
		t.Errorf("the failure does not mention %q:\n%s", m.message, output)
	default:
		t.Log(firstFailure(output))
	}
}

// overlay writes the mutated file. It returns the path of a file for go test -overlay.
func (m *mutation) overlay(t *testing.T, root string) string {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.find); n != 1 {
		t.Fatalf("%s has the text %d times, want once: change the mutation with the code:\n%s", m.file, n, m.find)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	replacement, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.find, m.replace, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replacement, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// firstFailure returns the lines of a test's output that name the first failure.
func firstFailure(output string) string {
	_, failure, _ := strings.Cut(output, "--- FAIL: ")
	lines := strings.SplitN(failure, "\n", 5)
	return strings.Join(lines[:min(len(lines), 4)], "\n")
}
