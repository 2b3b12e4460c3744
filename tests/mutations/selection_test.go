package mutations

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// changes are the differences between the working tree and a commit, the base.
type changes struct {
	head, base string   // hashes of commits
	files      []string // paths relative to the module's root
	entries    string   // the difference of this package, with a few lines of context
	err        error    // why git does not know the changes; then head is a hash of the mutated files
}

// share is the part of all mutations that runs if the changes say too little: one of share.
const share = 10

// choose returns the mutations that make check runs, and the reason. These are the mutations whose file, test or entry has changed.
// On the main branch, which has few changes, and if the changes are not known, one of ten mutations is chosen, too. The hash of the
// commit says which.
func choose(all []mutation, c changes) (chosen []mutation, why string) {
	sample := c.err != nil || c.base == c.head
	turn := -1
	if n, err := strconv.ParseUint(c.head[:min(len(c.head), 15)], 16, 64); sample && err == nil {
		turn = int(n % share)
	}
	for i, m := range all {
		changed := slices.ContainsFunc(c.files, func(file string) bool { return file == m.file || path.Dir(file) == m.dir() })
		if changed || i%share == turn || strings.Contains(c.entries, strconv.Quote(m.name)) {
			chosen = append(chosen, m)
		}
	}
	why = fmt.Sprintf("running %d of %d mutations: those whose file, test or entry differs from the commit %.12s", len(chosen), len(all), c.base)
	switch {
	case c.err != nil:
		why = fmt.Sprintf("running %d of %d mutations, chosen by a hash of the files, because the changes are not known: %v", len(chosen), len(all), c.err)
	case sample:
		why += ", and one of ten, because this is the main branch"
	}
	return chosen, why
}

// readChanges asks git for the changes since the commit base. By default the base is the last commit that HEAD has in common with
// the main branch. Changes that are not committed count.
func readChanges(root, base string) (c changes) {
	ask := func(args ...string) (out string) {
		if c.err == nil {
			out, c.err = git(root, args...)
		}
		return out
	}
	if base == "" {
		main := "main"
		if _, err := git(root, "rev-parse", "--verify", main); err != nil {
			main = "origin/main"
		}
		base = ask("merge-base", "HEAD", main)
	}
	c.head, c.base = ask("rev-parse", "HEAD"), ask("rev-parse", base+"^{commit}")
	c.files = strings.Fields(ask("diff", "--name-only", "--no-renames", c.base) + "\n" + ask("ls-files", "--others", "--exclude-standard"))
	c.entries = ask("diff", "--unified=5", c.base, "--", "tests/mutations")
	if c.err != nil {
		hash := sha256.New()
		for _, m := range all {
			text, _ := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
			hash.Write(text)
		}
		c.head = hex.EncodeToString(hash.Sum(nil))
	}
	return c
}

// git runs a command of git in a directory. A hook of git sets variables that name another directory, so git does not get them.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), err
}

func TestChoose(t *testing.T) {
	var list []mutation
	for i := range 30 {
		list = append(list, mutation{name: fmt.Sprint("m", i), file: fmt.Sprintf("p%d/file.go", i)})
	}
	list[7].tests = "elsewhere"
	names := func(ms []mutation) (names []string) {
		for _, m := range ms {
			names = append(names, m.name)
		}
		return names
	}
	for name, test := range map[string]struct {
		changes changes
		want    []string
		why     string
	}{
		"nothing":                        {changes{head: "2", base: "1"}, nil, "0 of 30"},
		"the file":                       {changes{head: "2", base: "1", files: []string{"p4/file.go", "q/file.go", "p5/sub/file.go"}}, []string{"m4"}, "1 of 30"},
		"the package of the test":        {changes{head: "2", base: "1", files: []string{"p3/other_test.go", "elsewhere/a_test.go"}}, []string{"m3", "m7"}, "2 of 30"},
		"a file whose test is elsewhere": {changes{head: "2", base: "1", files: []string{"p7/file.go", "p7/other.go"}}, []string{"m7"}, "1 of 30"},
		"the entry":                      {changes{head: "2", base: "1", entries: "+\t\tname: \"m1\",\n"}, []string{"m1"}, "1 of 30"},
		"the main branch":                {changes{head: "13", base: "13"}, []string{"m9", "m19", "m29"}, "this is the main branch"},
		"another commit of it":           {changes{head: "14", base: "14", files: []string{"p1/file.go"}}, []string{"m0", "m1", "m10", "m20"}, "this is the main branch"},
		"no git":                         {changes{head: "ff", err: os.ErrNotExist}, []string{"m5", "m15", "m25"}, "file does not exist"},
	} {
		if chosen, why := choose(list, test.changes); !slices.Equal(names(chosen), test.want) || !strings.Contains(why, test.why) {
			t.Errorf("%s: got the mutations %v with the reason %q, want %v and %q", name, names(chosen), why, test.want, test.why)
		}
	}
	seen := map[string]bool{}
	for _, head := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		chosen, _ := choose(list, changes{head: head, base: head})
		for _, m := range chosen {
			seen[m.name] = true
		}
	}
	if len(seen) != len(list) {
		t.Errorf("ten commits of the main branch choose %d of %d mutations, want all", len(seen), len(list))
	}
}

// TestReadChanges checks what git says about a branch with a commit, a change that is not committed, and a new file.
func TestReadChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing")
	}
	root := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := git(root, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(root, file)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	commit := func() string {
		t.Helper()
		run("add", ".")
		run("commit", "--quiet", "--allow-empty", "--message=m")
		return run("rev-parse", "HEAD")
	}
	if c := readChanges(root, ""); c.err == nil || len(c.head) != 64 {
		t.Errorf("outside of a repository: got %+v (error %v), want an error and a hash of the files", c, c.err)
	}
	run("init", "--quiet", "--initial-branch=main")
	for _, file := range []string{"a.go", "b.go", "c.go", "tests/mutations/list.go"} {
		write(file, "1\n")
	}
	base := commit()
	if c := readChanges(root, ""); c.err != nil || c.head != base || c.base != base || len(c.files) > 0 {
		t.Errorf("on the main branch: got %+v (error %v), want no changes", c, c.err)
	}
	run("branch", "work")
	write("main.go", "1\n")
	commit() // the main branch goes on
	run("checkout", "--quiet", "work")
	write("a.go", "2\n")
	head := commit()
	write("b.go", "2\n")
	write("new/d.go", "1\n")
	write("tests/mutations/list.go", "2\n")
	c := readChanges(root, "")
	if want := []string{"a.go", "b.go", "tests/mutations/list.go", "new/d.go"}; c.err != nil || c.head != head || c.base != base || !slices.Equal(c.files, want) || !strings.Contains(c.entries, "+2") {
		t.Errorf("on a branch: got %+v (error %v), want the files %v since %s", c, c.err, want, base)
	}
	if c := readChanges(root, head); c.base != head || slices.Contains(c.files, "a.go") {
		t.Errorf("since the last commit: got %+v, want no a.go", c)
	}
	if c := readChanges(root, "0123456789"); c.err == nil {
		t.Error("a base that is not in the repository gives no error")
	}
}
