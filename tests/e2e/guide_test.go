//go:build unix

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

const (
	// guideKind marks the blocks of the chapters that TestGuide follows.
	guideKind = "guide"
	// guideSection is the heading of the chapter in docs/frontend.md with which every page begins.
	guideSection = "From an empty folder to a live portfolio"
	// guideTypes is the heading of the chapter about generated types.
	guideTypes = "Types for Apollo Client and urql"
	// guideChecks is the name of the file in web/tests that tests the finished page, without .test.ts.
	guideChecks = "guide"
	// guideTime limits the time of all commands together, so that no command hangs. The limit is long, because other tests may keep
	// the processor busy.
	guideTime = 15 * time.Minute
	// guideOutage is the time for which the service is away. The page must be live again soon after the service is back.
	guideOutage = 45 * time.Second
)

var (
	// firstLine matches the first line of a file if this line is a comment with the name of the file.
	firstLine = regexp.MustCompile(`^(?://|#|<!--) ([\w./-]+)(?: -->)?\n`)
	// devServer matches the address that a dev server prints.
	devServer = regexp.MustCompile(`http://localhost:\d+`)
	// noRegistry matches what npm prints if no registry of packages can be reached.
	noRegistry = regexp.MustCompile(`code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTCACHED|ERR_SOCKET_TIMEOUT)`)
	// packageVersion matches a package with its version in a command.
	packageVersion = regexp.MustCompile(`(\S+)@(\d+\.\d+\.\d+)`)
)

// guides maps each GraphQL client to the chapters that build a page with it.
var guides = map[string][]string{
	"Apollo Client": {guideSection, guideTypes, "With Apollo Client"},
	"urql":          {guideSection, guideTypes, "With urql"},
	"Relay":         {guideSection, "With Relay"},
}

// TestGuide checks that the commands and files of the chapters for Apollo Client give a working page. The test changes only the
// ports. It needs an npm registry, or the packages in npm's cache.
func TestGuide(t *testing.T) {
	t.Parallel()
	requireNode(t)
	g := followGuide(t, "Apollo Client", tool.Nightly())
	t.Run("proxy of Vite", func(t *testing.T) { g.runProxy(t) })
	t.Run("code generator", func(t *testing.T) { g.runCodegen(t, g.origin) })
}

// TestGuideForOtherClients does what TestGuide does, for the other clients. It is part of make nightly, and of make check when the
// guide or the kit has changed since CI_BASE.
func TestGuideForOtherClients(t *testing.T) {
	if !guideHasChanged() {
		tool.NightlyTier(t)
	}
	t.Parallel()
	requireNode(t)
	for client := range guides {
		if client != "Apollo Client" {
			t.Run(client, func(t *testing.T) { followGuide(t, client, tool.Nightly()) })
		}
	}
}

// guideHasChanged reports whether docs/frontend.md or the kit differ from the commit that CI_BASE names, by default main. Without
// git, it returns false.
func guideHasChanged() bool {
	err := exec.Command("git", "diff", "--quiet", cmp.Or(os.Getenv("CI_BASE"), "main"), "--", "docs/frontend.md", "web/kit").Run()
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// followGuide builds the page with a GraphQL client in a new folder, and checks it in a browser. The page's dev server runs until the
// test ends. If restarts is set, the service stops for a while behind the page.
func followGuide(t *testing.T, client string, restarts bool) *guide {
	t.Helper()
	chromium := tool.Require(t, "chromium")
	s, stop := startStoppable(t, "--demo-markets=1200")
	ctx, cancel := context.WithTimeout(t.Context(), guideTime)
	t.Cleanup(cancel)
	g := &guide{
		ctx: ctx, dir: t.TempDir(), addresses: strings.NewReplacer("127.0.0.1:8080", s.Addr().String()), origin: "http://" + s.Addr().String(),
	}
	begun := time.Now()
	blocks := guideBlocks(t)
	for _, section := range guides[client] {
		for _, b := range blocks[section] {
			if b.lang != "sh" {
				g.writeFile(t, b)
				continue
			}
			for line := range strings.Lines(b.text) {
				g.runLine(t, b, strings.TrimSpace(line))
			}
		}
	}
	if g.url == "" {
		t.Fatal("no command has started a dev server")
	}
	t.Logf("the commands took %v", time.Since(begun).Round(time.Second))
	env := []string{"CHROMIUM=" + chromium, "GUIDE_URL=" + g.url, "ODDSGRAPH_URL=" + g.origin + "/graphql", "ODDSGRAPH_VENUE=" + s.Demo.URL()}
	if restarts {
		env = append(env, "GUIDE_RESTARTS=true")
	}
	runChecks(t, "web", "tests/dist/"+guideChecks+".test.js", env, func() {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(guideOutage)
		startLive(t, "--demo-markets=1200", "--listen="+s.Addr().String(), "--demo-listen="+strings.TrimPrefix(s.Demo.URL(), "http://"))
	})
	return g
}

// guideBlocks returns the code blocks of each chapter of the guide.
func guideBlocks(t *testing.T) map[string][]block {
	t.Helper()
	blocks := map[string][]block{}
	for _, sections := range guides {
		for _, section := range sections {
			blocks[section] = nil
		}
	}
	for _, b := range readDocs(t) {
		_, chapter := blocks[b.section]
		chapter = chapter && b.file == "docs/frontend.md"
		switch {
		case chapter && b.kind != guideKind:
			t.Errorf("%s: the block is not marked %q, so the test would not follow it", b, guideKind)
		case !chapter && b.kind == guideKind:
			t.Errorf("%s: a block outside of the chapters is marked %q", b, guideKind)
		case chapter:
			blocks[b.section] = append(blocks[b.section], b)
		}
	}
	for section, found := range blocks {
		if len(found) < 2 {
			t.Fatalf("the chapter %q has %d code blocks, want at least 2", section, len(found))
		}
	}
	return blocks
}

// guide executes the commands of the chapters in a new folder.
type guide struct {
	ctx       context.Context
	dir       string
	addresses *strings.Replacer // replaces the addresses in the documentation by the test's addresses
	origin    string            // the address of the service
	url       string            // the URL of the page; set when the dev server runs
	bin       string            // if not empty, a directory that the shell searches for programs before PATH
}

// writeFile writes a code block into the file that the block's first line names.
func (g *guide) writeFile(t *testing.T, b block) {
	t.Helper()
	match := firstLine.FindStringSubmatch(b.text)
	if match == nil {
		t.Fatalf("%s: the first line does not name the file", b)
	}
	path := filepath.Join(g.dir, match[1])
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(g.addresses.Replace(b.text)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runLine runs a command until it ends. If the command is a dev server, runLine returns when the server has printed its address,
// and the server runs until the test ends.
func (g *guide) runLine(t *testing.T, b block, line string) {
	t.Helper()
	cmd := exec.CommandContext(g.ctx, "sh", "-c", g.addresses.Replace(line))
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "npm_config_prefer_offline=true")
	if g.bin != "" {
		cmd.Env = append(cmd.Env, "PATH="+g.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	var output strings.Builder
	for lines := bufio.NewScanner(read); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		if url := devServer.FindString(lines.Text()); url != "" {
			g.url = url
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				_, _ = io.Copy(io.Discard, read)
			}()
			t.Cleanup(func() {
				_ = cmd.Cancel()
				_ = cmd.Wait()
				<-drained
				read.Close()
			})
			return
		}
	}
	read.Close()
	if err := cmd.Wait(); err != nil {
		if noRegistry.MatchString(output.String()) {
			tool.Missing(t, "npm reaches no registry: %s", output.String())
		}
		t.Fatalf("%s: %s: %v\n%s", b, line, err, output.String())
	}
}

// TestGuideVersions checks that the guide names the same versions of packages as clients/, web/ and the apps of examples/. Other tests
// run these versions without a registry.
func TestGuideVersions(t *testing.T) {
	want := map[string]string{}
	for _, file := range []string{"clients/package.json", "web/package.json", "examples/react-relay/package.json", "examples/react-apollo/package.json"} {
		var p struct{ Dependencies, DevDependencies map[string]string }
		decode(t, read(t, file), &p)
		for _, packages := range []map[string]string{p.Dependencies, p.DevDependencies} {
			for name, version := range packages {
				want[name] = version
			}
		}
	}
	compared := 0
	for _, blocks := range guideBlocks(t) {
		for _, b := range blocks {
			if b.lang != "sh" {
				continue
			}
			for _, match := range packageVersion.FindAllStringSubmatch(b.text, -1) {
				if version, ok := want[match[1]]; ok {
					compared++
					if version != match[2] {
						t.Errorf("%s: the chapter names %s@%s, but the examples use version %s", b, match[1], match[2], version)
					}
				}
			}
		}
	}
	if compared < 15 {
		t.Errorf("the test compared only %d packages, want at least 15", compared)
	}
}
