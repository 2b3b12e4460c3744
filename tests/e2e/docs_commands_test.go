//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/config"
	"oddsgraph/tests/tool"
)

// realCommands are the commands that code blocks of the documentation really run. fakeCommands replaces all other commands.
var realCommands = []string{
	"awk", "base64", "cat", "chmod", "curl", "cut", "grep", "head", "jq", "mkdir", "mv", "od", "openssl", "sed", "sha256sum", "sort", "tr",
}

// fakeCommands has the names of the programs that a test cannot or must not run. The code blocks run the test binary under these
// names. The function of each name checks the arguments.
var fakeCommands = map[string]func(args []string) error{
	"make":            makeCommand,
	"go":              goCommand,
	"npm":             npmCommand,
	"oddsgraph":       oddsgraphCommand,
	"docker":          checkPaths,
	"kubectl":         checkPaths,
	"systemctl":       checkPaths,
	"systemd-analyze": checkPaths,
	"journalctl":      checkPaths,
	"promtool":        checkPaths,
	"install":         checkPaths,
	"benchstat":       checkPaths,
	"kill":            checkPaths,
}

func init() {
	rule := fakeCommands[filepath.Base(os.Args[0])]
	if rule == nil {
		return
	}
	if err := rule(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// stageCommands prepares the working directory of the code blocks. The directory has links to the files of the project, so that the
// blocks create no files in the project.
func (d *docs) stageCommands(t *testing.T) {
	t.Helper()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin", "tools", "home"} {
		if err := os.Mkdir(filepath.Join(d.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(d.root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "bin" && !strings.HasPrefix(entry.Name(), ".") {
			link(filepath.Join(d.root, entry.Name()), entry.Name())
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range fakeCommands {
		link(self, filepath.Join("tools", name))
	}
	link(self, "bin/oddsgraph")
	for _, name := range realCommands {
		path, err := exec.LookPath(name)
		if err != nil {
			continue // runShell fails or skips the test if an important tool is missing
		}
		link(path, filepath.Join("tools", name))
	}
	// With this file, curl fails for a status of 400 or more. The proxy does not exist, so curl reaches local addresses only.
	d.write(t, "home/.curlrc", "fail-with-body\nsilent\nshow-error\nmax-time = 30\nproxy = http://127.0.0.1:9\nnoproxy = 127.0.0.1\n")
}

// followsStream matches code blocks that read a stream. The test ends such a block when the first event has arrived.
var followsStream = regexp.MustCompile(`\bcurl -N\b`)

func (d *docs) runShell(t *testing.T, b block) {
	for _, name := range []string{"bash", "curl", "jq", "openssl"} {
		tool.Require(t, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// kill is a builtin of the shell, so a function has to replace it.
	script := "kill() { " + filepath.Join(d.dir, "tools", "kill") + " \"$@\"; }\n" + d.replaceAddresses(b.text)
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = d.dir
	if dir := filepath.Dir(b.file); dir != "." {
		if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
			cmd.Dir = filepath.Join(d.dir, dir)
		}
	}
	cmd.Env = []string{
		"PATH=" + filepath.Join(d.dir, "tools"), "HOME=" + filepath.Join(d.dir, "home"), "DOCS_ROOT=" + d.root, "DOCS_PATH=" + os.Getenv("PATH"),
		"PWD=" + cmd.Dir,
		"GORACE=atexit_sleep_ms=0", // by default, the race detector delays the exit of each command by a second
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if !followsStream.MatchString(b.text) {
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("the block failed with %v and printed\n%s%s", err, out, stderr.Bytes())
		}
		d.answer = out
		d.wantData(t, out)
		return
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []byte
	buffer := make([]byte, 4096)
	for eventData.Find(seen) == nil {
		n, err := out.Read(buffer)
		seen = append(seen, buffer[:n]...)
		if err != nil {
			_ = cmd.Wait()
			t.Fatalf("the block ended before an event came: %v\n%s%s", err, seen, stderr.Bytes())
		}
	}
	_ = cmd.Cancel()
	_ = cmd.Wait()
	d.answer = eventData.FindSubmatch(seen)[1]
	d.wantData(t, d.answer)
}

// projectPath returns the path of a file in the project.
func projectPath(name string) string { return filepath.Join(os.Getenv("DOCS_ROOT"), name) }

// makeCommand runs make -n, which prints the commands without running them.
func makeCommand(args []string) error {
	_ = os.Setenv("PATH", os.Getenv("DOCS_PATH"))
	cmd := exec.Command("make", append([]string{"-n"}, args...)...)
	cmd.Dir = os.Getenv("DOCS_ROOT")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// goCommand checks that the project has the packages, programs, tests and flags that the arguments name. It accepts every command
// of go tool, and every package with a version.
func goCommand(args []string) error {
	if len(args) < 2 {
		return errors.New("there is no rule for go without a verb and an argument")
	}
	verb, args := args[0], args[1:]
	switch {
	case verb == "run" && args[0] == ".":
		return oddsgraphCommand(args[1:])
	case verb == "tool", strings.Contains(args[0], "@"):
		return nil
	case verb == "run":
		if err := checkPaths(args[:1]); err != nil {
			return err
		}
		return checkFlags(args[0], args[1:])
	case verb == "test":
		var dirs []string
		for i, arg := range args {
			switch {
			case strings.HasPrefix(arg, "./"), arg == ".":
				dirs = append(dirs, arg)
			case arg == "-run" || arg == "-bench" || arg == "-fuzz":
				if pattern := args[i+1]; pattern != "^$" && pattern != "." && !testExists(pattern) {
					return fmt.Errorf("no test matches %s", pattern)
				}
			}
		}
		return checkPaths(dirs)
	case verb == "generate", verb == "build", verb == "vet":
		return checkPaths(args)
	}
	return fmt.Errorf("there is no rule for go %s", verb)
}

// testExists reports whether a pattern matches a test, benchmark or fuzz test.
func testExists(pattern string) bool {
	fits, err := regexp.Compile(pattern)
	if err != nil {
		return false
	}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	found := false
	_ = filepath.WalkDir(os.Getenv("DOCS_ROOT"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || found || entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			source, _ := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(source, -1) {
				found = found || fits.Match(m[1])
			}
		}
		return nil
	})
	return found
}

// checkFlags checks that a program of the project declares the given flags.
func checkFlags(dir string, args []string) error {
	var source []byte
	files, _ := filepath.Glob(filepath.Join(projectPath(dir), "*.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		source = append(source, text...)
	}
	for _, arg := range args {
		if name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); strings.HasPrefix(arg, "-") && name != "help" && !strings.Contains(arg, " ") &&
			!bytes.Contains(source, []byte(`"`+name+`"`)) {
			return fmt.Errorf("%s has no flag %s", dir, arg)
		}
	}
	return nil
}

// npmCommand checks that the named scripts and packages exist.
func npmCommand(args []string) error {
	text, err := os.ReadFile("package.json")
	if err != nil && args[0] != "install" {
		return err
	}
	switch {
	case args[0] == "ci":
		_, err = os.Stat("package-lock.json")
		return err
	case args[0] == "run" && bytes.Contains(text, []byte(`"`+args[1]+`": "`)), args[0] == "test" && bytes.Contains(text, []byte(`"test": "`)):
		return nil
	case args[0] == "install":
		if text, err = os.ReadFile(projectPath("clients/package.json")); err != nil {
			return err
		}
		for _, name := range args[1:] {
			if strings.HasPrefix(name, "./") { // a file that an earlier line has written
				if _, err := os.Stat(name); err != nil {
					return err
				}
				continue
			}
			if !strings.HasPrefix(name, "-") && !bytes.Contains(text, []byte(`"`+name+`": "`)) {
				return fmt.Errorf("clients/ does not use the package %s", name)
			}
		}
		return nil
	}
	return fmt.Errorf("there is no rule for npm %s", strings.Join(args, " "))
}

// oddsgraphCommand runs the program in this process. If the arguments would start a server or print the help, oddsgraphCommand only
// parses the flags.
func oddsgraphCommand(args []string) error {
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool { return !strings.HasPrefix(v, "ODDSGRAPH_") })
	cfg, err := config.Parse(args, environ, io.Discard)
	if errors.Is(err, config.ErrHelp) || err == nil && (cfg.Command == config.CommandServe || cfg.Command == config.CommandVenue) {
		return nil
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--ask" }) // the venues in the documentation do not exist, so config check cannot call them
	return errors.Join(err, run(context.Background(), args, environ, os.Stdout, os.Stderr))
}

// checkPaths checks that all arguments that look like paths of the project exist.
func checkPaths(args []string) error {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			_, arg, _ = strings.Cut(arg, "=")
		}
		arg = strings.TrimSuffix(arg, "/...")
		if !strings.Contains(arg, "/") || strings.HasPrefix(arg, "/") || strings.ContainsAny(arg, ":$*@") {
			continue
		}
		if _, err := os.Stat(projectPath(arg)); err != nil {
			return err
		}
	}
	return nil
}
