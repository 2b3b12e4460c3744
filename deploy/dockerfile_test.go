package deploy

import (
	"bufio"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// stage is a build stage of the Dockerfile.
type stage struct {
	from, name string
	steps      []step // WORKDIR, COPY and RUN instructions
	env, args  map[string]string
	user       string
	entrypoint []string
	health     []string
}

// step is an instruction, with its flags separated from its arguments.
type step struct {
	instruction string
	flags       []string
	arguments   string
}

// dockerfile parses the Dockerfile. It fails on instructions that it does not support.
func dockerfile(t testing.TB) (stages []*stage) {
	t.Helper()
	text := strings.ReplaceAll(read(t, "../Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		s := step{}
		s.instruction, s.arguments, _ = strings.Cut(line, " ")
		for s.arguments = strings.TrimSpace(s.arguments); strings.HasPrefix(s.arguments, "--"); s.arguments = strings.TrimSpace(s.arguments) {
			var flag string
			flag, s.arguments, _ = strings.Cut(s.arguments, " ")
			s.flags = append(s.flags, flag)
		}
		if s.instruction == "FROM" {
			from, name, _ := strings.Cut(s.arguments, " AS ")
			stages = append(stages, &stage{from: from, name: name, env: map[string]string{}, args: map[string]string{}})
			continue
		}
		last := stages[len(stages)-1]
		name, value, _ := strings.Cut(s.arguments, "=")
		switch s.instruction {
		case "WORKDIR", "COPY", "RUN":
			last.steps = append(last.steps, s)
		case "ENV":
			last.env[name] = value
		case "ARG":
			last.args[name] = value
		case "USER":
			last.user = s.arguments
		case "ENTRYPOINT":
			last.entrypoint = list(t, s.arguments)
		case "HEALTHCHECK":
			last.health = list(t, strings.TrimPrefix(s.arguments, "CMD "))
		case "LABEL", "EXPOSE":
		default:
			t.Fatalf("the Dockerfile has the instruction %s, which this test does not support", s.instruction)
		}
	}
	return stages
}

func list(t testing.TB, text string) (l []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &l); err != nil || len(l) == 0 {
		t.Fatalf("%s is not a list of arguments: %v", text, err)
	}
	return l
}

// imageUser returns the user id of the image.
func imageUser(t testing.TB) string {
	t.Helper()
	stages := dockerfile(t)
	user, _, _ := strings.Cut(stages[len(stages)-1].user, ":")
	return user
}

// imageStateDir returns the directory in which the image's program records calls.
func imageStateDir(t testing.TB) string {
	t.Helper()
	stages := dockerfile(t)
	dir := stages[len(stages)-1].env["ODDSGRAPH_STATE_DIR"]
	if dir == "" {
		t.Fatal("the image does not set ODDSGRAPH_STATE_DIR, so its program records no calls")
	}
	return dir
}

// ignored returns a function that reports whether .dockerignore excludes a file.
func ignored(t testing.TB) func(file string) bool {
	t.Helper()
	type rule struct {
		pattern *regexp.Regexp
		keeps   bool
	}
	var rules []rule
	for line := range strings.Lines(read(t, "../.dockerignore")) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		pattern, keeps := strings.CutPrefix(line, "!")
		quoted := regexp.QuoteMeta(pattern)
		quoted = strings.ReplaceAll(strings.ReplaceAll(quoted, `\*\*/`, `(.*/)?`), `\*`, `[^/]*`)
		rules = append(rules, rule{regexp.MustCompile(`^` + quoted + `(/|$)`), keeps})
	}
	return func(file string) (excluded bool) {
		for _, r := range rules {
			if r.pattern.MatchString(file) {
				excluded = !r.keeps
			}
		}
		return excluded
	}
}

// builder runs the build stages of the Dockerfile with the tools of this machine. Each stage has a directory instead of an image.
type builder struct {
	t      testing.TB
	roots  map[string]string
	ignore func(string) bool
	args   map[string]string
}

// build runs the steps of a stage and returns its root directory. Before each RUN step, build calls beforeRun with the working
// directory of the step.
func (b *builder) build(s *stage, beforeRun func(root string)) (root string) {
	b.t.Helper()
	root, dir := b.t.TempDir(), "/"
	for _, step := range s.steps {
		switch step.instruction {
		case "WORKDIR":
			dir = path.Join(dir, step.arguments)
			if err := os.MkdirAll(root+dir, 0o755); err != nil {
				b.t.Fatal(err)
			}
		case "COPY":
			b.copy(step, root, dir)
		case "RUN":
			beforeRun(root + dir)
			cmd := exec.Command("sh", "-c", step.arguments)
			cmd.Dir = root + dir
			cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
				return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") || strings.HasPrefix(v, "VERSION=")
			})
			for name, value := range s.args {
				if given, ok := b.args[name]; ok {
					value = given
				}
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				b.t.Fatalf("RUN %s: %v\n%s", step.arguments, err, out)
			}
		}
	}
	b.roots[s.name] = root
	return root
}

// copy copies files from another stage, or from the source tree without the ignored files.
func (b *builder) copy(s step, root, dir string) {
	b.t.Helper()
	from, fromTree := "..", true
	for _, flag := range s.flags {
		stage, ok := strings.CutPrefix(flag, "--from=")
		if from = b.roots[stage]; !ok || from == "" {
			b.t.Fatalf("COPY has the flag %s, want --from with the name of an earlier stage", flag)
		}
		fromTree = false
	}
	names := strings.Fields(s.arguments)
	sources, target := names[:len(names)-1], names[len(names)-1]
	into := strings.HasSuffix(target, "/")
	if !path.IsAbs(target) {
		target = path.Join(dir, target)
	}
	for _, source := range sources {
		base, copied := filepath.Join(from, source), 0
		err := filepath.WalkDir(base, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(from, file)
			if err != nil {
				return err
			}
			if d.IsDir() && (fromTree && (d.Name() == "node_modules" || inside == ".git")) {
				return fs.SkipDir // ignored by .dockerignore, and large
			}
			if !d.Type().IsRegular() || fromTree && b.ignore(inside) {
				return nil
			}
			below, err := filepath.Rel(base, file)
			if err != nil {
				return err
			}
			to := root + path.Join(target, filepath.ToSlash(below))
			if below == "." && into {
				to = root + path.Join(target, filepath.Base(file))
			}
			copied++
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			return os.WriteFile(to, content, info.Mode().Perm())
		})
		if err != nil || copied == 0 {
			b.t.Fatalf("COPY %s copies %d files: %v", source, copied, err)
		}
	}
}

func get(t testing.TB, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestDockerfile runs the stages of the Dockerfile in directories that have only the files that the Dockerfile copies. Then it runs
// the program of the image. The program must be static, report the given version, serve the pages and be healthy.
func TestDockerfile(t *testing.T) {
	for _, name := range []string{"make", "node", "npm"} {
		tool.Require(t, name)
	}
	stages := dockerfile(t)
	if len(stages) != 3 {
		t.Fatalf("the Dockerfile has %d stages, want 3", len(stages))
	}
	for _, s := range stages[1:2] {
		if want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]; s.from != "golang:"+want {
			t.Errorf("the program is built in the image %s, but go.mod requires Go %s", s.from, want)
		}
	}
	b := &builder{t: t, roots: map[string]string{}, ignore: ignored(t), args: map[string]string{
		"TARGETOS": runtime.GOOS, "TARGETARCH": runtime.GOARCH, "VERSION": "1.2.3-test",
	}}
	// lendModules makes npm ci in the stage unnecessary. It links or copies web/node_modules if npm has installed the packages there.
	lendModules := func(root string) {
		if _, err := os.Stat("../web/node_modules/.installed"); err != nil {
			return
		}
		marker := root + "/web/node_modules/.installed"
		const script = `cp -al "$0" "$1" 2>/dev/null || cp -a "$0" "$1"; rm "$2"; touch "$2"`
		if out, err := exec.Command("sh", "-c", script, "../web/node_modules", root+"/web/", marker).CombinedOutput(); err != nil {
			t.Fatalf("copying web/node_modules: %v: %s", err, out)
		}
	}
	b.build(stages[0], lendModules)
	b.build(stages[1], func(string) {})
	last := stages[2]
	root := b.build(last, func(string) {})
	if !strings.HasPrefix(last.from, "gcr.io/distroless/static-") {
		t.Errorf("the image is based on %s, want a static distroless image", last.from)
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(last.user) {
		t.Errorf("got user %q, want the numeric ids of an unprivileged user and group", last.user)
	}
	var files []string
	_ = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(file, root))
		}
		return err
	})
	want := append([]string{"/licenses/LICENSE", "/licenses/THIRD_PARTY_LICENSES", "/licenses/licenses.txt"}, last.entrypoint...)
	if !slices.Equal(files, want) {
		t.Fatalf("the image has the files %v, want %v", files, want)
	}
	program := root + last.entrypoint[0]
	if runtime.GOOS == "linux" {
		f, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			t.Errorf("the program needs a dynamic linker and the libraries %v, want a static program", libraries)
		}
	}
	if out, err := exec.Command(program, "version").Output(); err != nil || string(out) != "1.2.3-test\n" {
		t.Errorf("the program prints the version %q (error %v), want 1.2.3-test", out, err)
	}

	serve(t, root, last)
}

// serve runs the image's program on a free port, calls its health check and loads its page.
func serve(t testing.TB, root string, image *stage) {
	t.Helper()
	// The image's ports may be in use on this machine.
	env := append(environ(image.env), "ODDSGRAPH_LISTEN=127.0.0.1:0", "ODDSGRAPH_ADMIN_LISTEN=127.0.0.1:0", "ODDSGRAPH_DEMO_MARKETS=20")
	env = slices.DeleteFunc(env, func(v string) bool { return v == "ODDSGRAPH_LISTEN=:8080" || v == "ODDSGRAPH_ADMIN_LISTEN=:9091" })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	served := exec.CommandContext(ctx, root+image.entrypoint[0])
	served.Env = env
	served.Cancel = func() error { return served.Process.Signal(os.Interrupt) }
	stderr, err := served.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	// The log names the chosen port.
	ready := regexp.MustCompile(`oddsgraph is ready.*?http://(127\.0\.0\.1:\d+)`)
	address, said := "", strings.Builder{}
	lines := bufio.NewReader(stderr)
	for address == "" {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if m := ready.FindStringSubmatch(line); m != nil {
			address = m[1]
		}
		if err != nil {
			break
		}
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&said, lines)
	}()
	healthy := false
	for address != "" && !healthy && ctx.Err() == nil {
		check := exec.CommandContext(ctx, root+image.health[0], image.health[1:]...)
		check.Env = append(slices.Clip(env), "ODDSGRAPH_LISTEN="+address)
		healthy = check.Run() == nil
	}
	if !healthy {
		t.Error("the program does not become healthy")
	} else if page := get(t, "http://"+address); !strings.Contains(page, "/assets/") {
		t.Errorf("got the page %s, want the built page, which loads files from /assets/", page)
	}
	cancel()
	<-read
	if err := served.Wait(); err != nil && !errors.Is(err, context.Canceled) || !healthy {
		t.Errorf("the program ended with the error %v and logged: %s", err, said.String())
	}
}
