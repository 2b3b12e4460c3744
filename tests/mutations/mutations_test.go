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
	"runtime"
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
	// file is the path of the source file, relative to the module's root. oldText occurs in the file exactly once. The mutation
	// replaces oldText by newText.
	file, oldText, newText string
	// run selects the test, as in go test -run. It may name a subtest.
	run string
	// message is a text that the output of the failed test must contain. If it is empty, any failure is accepted.
	message string
	// needs is a program that the test runs. Without this program, the test skips itself and cannot fail.
	needs string
}

// all has the mutations of this package's files.
var all = slices.Concat(mutations, bounds, calls, replicas, kalshi, polymarket, venues)

var mutations = []mutation{
	{
		name: "two callers share an account's cache entry",
		file: "internal/cache/users.go", oldText: "c != nil {\n\t\tmac.Write([]byte{0})", newText: "c != nil && false {\n\t\tmac.Write([]byte{0})",
		run: "^TestCallersNeverShareUserData$", message: "sees data of another caller",
	},
	{
		name: "a refresh that outlives its request uses the credentials of another caller",
		file: "internal/cache/refresh.go", oldText: "credentials = request.CredentialsFrom(ctx)", newText: "credentials, _ = market.ParseCredentials([]byte(`{\"apiKey\":\"other\"}`))",
		run: "^TestCredentialsStayWithTheirCaller$", message: "a call for",
	},
	{
		name: "the context of a response gives the loaders of the next response",
		file: "loaders/set.go", oldText: "s.scope.set = nil //", newText: "_ = s.scope.set //",
		run: "^TestDoneForgets$", message: "the context still has a set",
	},
	{
		name: "different credentials share a cached response",
		file: "httpapi/respcache/identity.go", oldText: `c.identities.of("account", string(address), credentials.Wire())`, newText: `c.identities.of("account", string(address))`,
		run: "^TestCallersAreKeptApart$",
	},
	{
		name: "a caller that leaves drops the keys of other callers",
		file: "internal/cache/batch.go", oldText: "f.waiters > 0 || f.ended", newText: "f.ended",
		run: "^TestOneCallersCancellationFailsNobodyElse$/^queued$", message: "got call for [c]",
	},
	{
		name:  "failed keys are read again at once",
		tests: "internal/venue/generic", file: "internal/venue/rest/backoff.go", oldText: "if !ok {\n\t\treturn nil\n\t}\n\tif left", newText: "if ok || !ok {\n\t\treturn nil\n\t}\n\tif left",
		run: "^TestFailedKeysAreNotReadDuringBackoff$",
	},
	{
		name:  "the circuit breaker never opens",
		tests: "internal/venue/generic", file: "internal/venue/rest/breaker.go", oldText: "return b.failures >= minFailures && len(b.subjects) >= minSubjects", newText: "return false",
		run: "^TestCircuitOpensAndCloses$",
	},
	{
		name:  "a bad element fails its whole list",
		tests: "internal/venue/generic", file: "internal/venue/rest/lookup.go", oldText: "if err == nil {\n\t\terr = found.attribute(l.Endpoint, ids)\n\t}", newText: "for _, r := range found {\n\t\terr = cmp.Or(err, r.Err)\n\t}",
		run: "^(TestPriceForms|TestSpreadForms)$",
	},
	{
		name: "a repeated change counts as a gap",
		file: "internal/feed/messages.go", oldText: "if seen(&t.state, m) {\n\t\treturn\n\t}\n\tif lost ||", newText: "if lost ||",
		run: "^TestTopics$", message: "TestTopics/orderbook/duplicates",
	},
	{
		name: "gaps in the sequence numbers are ignored",
		file: "internal/feed/messages.go", oldText: "return m.Seq == 0 || s.Seq == 0 ||", newText: "return true || s.Seq == 0 ||",
		run: "^TestChaos$/^seed_1$", message: "wrong: ",
	},
	{
		name: "messages get no internal numbers",
		file: "internal/venue/stream/send_queue.go", oldText: "m.Internal = messages.Internal{Epoch: q.epoch, Seq: s.lastInternal}", newText: "m.Internal = messages.Internal{}",
		run: "^TestInternalNumbers$",
	},
	{
		name: "internal numbers reveal no lost message",
		file: "internal/feed/internal.go", oldText: "return before.Seq != 0 && (!same || number.Seq != before.Seq+1), false", newText: "return false, false",
		run: "^TestLossBetweenParts$", message: "the book is",
	},
	{
		name: "an old snapshot replaces a newer state",
		file: "internal/feed/messages.go", oldText: "if !t.state.Known || !seen(&t.state, m) {\n\t\treturn false", newText: "if true {\n\t\treturn false",
		run: "^TestTopics$", message: "TestTopics/orderbook/an_old_snapshot_in_a_gap",
	},
	{
		name: "crossed books are published",
		file: "internal/feed/book.go", oldText: "return bid != nil && ask != nil && bid.Cmp(*ask) >= 0", newText: "return bid != nil && ask != nil && false",
		run: "^TestChaos$/^seed_1$", message: "wrong: ",
	},
	{
		name: "a snapshot is merged with the book before it",
		file: "internal/feed/messages.go", oldText: "s.Book = withPosition(m.Book, m)\n\tcase messages.KindTradesSnapshot", newText: `book := m.Book
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
		file: "internal/feed/messages.go", oldText: "if t.ended || t.phase != following || epoch != \"\" && epoch == t.previousEpoch {", newText: "if true {",
		run: "^TestChaos$/^seed_1$", message: "hang: ",
	},
	{
		name: "the reads of all venues wait for each other",
		file: "internal/feed/follow/states.go", oldText: "venue: s.Names.Find(key)", newText: "venue: 0",
		run: "^TestReadsOfVenues$", message: "one read asks for",
	},
}

// TestDefencesAreInTheSource checks that each mutation's file contains oldText exactly once, and that the mutation's test
// exists. If the code changes, change the mutation too.
func TestDefencesAreInTheSource(t *testing.T) {
	root, err := tool.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			m.overlay(t, root)
			for _, name := range strings.Split(strings.Trim(strings.SplitN(m.run, "/", 2)[0], "^$()"), "|") {
				if !hasTest(t, filepath.Join(root, m.dir()), name) {
					t.Errorf("%s has no test with the name %s", m.dir(), name)
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

// TestMutations runs the test of each mutation and requires that the test fails. make check runs the mutations that choose returns,
// and make nightly and make mutations run all.
func TestMutations(t *testing.T) {
	root, err := tool.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	chosen := all
	if !tool.Nightly() {
		tool.CheckTier(t)
		why := ""
		chosen, why = choose(all, readChanges(root, os.Getenv("CI_BASE")))
		t.Log(why)
	}
	// Each mutation compiles, links and runs a test, which uses a processor. go test -parallel may allow more.
	processors := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, m := range chosen {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			processors <- struct{}{}
			defer func() { <-processors }()
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
	// The go command caches the result of TestMutations. It reuses the result until a file changes in a directory that
	// TestMutations has read, and does not know what the go test below reads. So read the directory of the mutation's test here.
	if _, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	// make builds the program with the same flags, so the build cache has the unchanged packages. Without the tables of debuggers, the
	// linker needs half the time.
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", m.overlay(t, root), "-trimpath", "-buildvcs=false", "-vet=off",
		"-ldflags=-w", "-count=1", "-timeout=2m", "-run", m.run, "./"+dir)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	output := string(out)
	switch {
	case err == nil:
		t.Errorf("the tests %s pass without the defence, want a failure:\n%s", m.run, output)
	case !strings.Contains(output, "--- FAIL: Test"):
		t.Errorf("go test ended with the error %v, but no test failed:\n%s", err, output)
	case !strings.Contains(output, m.message):
		t.Errorf("the output of the failed test does not contain %q:\n%s", m.message, output)
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
	if n := strings.Count(string(source), m.oldText); n != 1 {
		t.Fatalf("%s contains oldText %d times, want once; if the code has changed, change the mutation too:\n%s", m.file, n, m.oldText)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	replacement, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.oldText, m.newText, 1)), 0o600); err != nil {
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
