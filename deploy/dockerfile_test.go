package deploy

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// imageEnviron returns the environment variables of the image.
func imageEnviron(t testing.TB) []string {
	t.Helper()
	return find(t, read(t, "../Dockerfile"), `^ENV (\S+)$`)
}

// TestDockerfile compares the text of the Dockerfile with the tree.
func TestDockerfile(t *testing.T) {
	text := read(t, "../Dockerfile")
	if image, mod := find(t, text, ` golang:(\S+)`)[0], find(t, read(t, "../go.mod"), `^go (\d+\.\d+)`)[0]; image != mod {
		t.Errorf("the image is built with Go %s, but go.mod requires Go %s", image, mod)
	}
	ignored := "\n" + read(t, "../.dockerignore")
	var copied []string
	for _, paths := range find(t, text, `^COPY ([^-].*) \S+$`) {
		for path := range strings.FieldsSeq(paths) {
			if copied = append(copied, path); strings.Contains(ignored, "\n"+path+"\n") {
				t.Errorf(".dockerignore excludes %s", path)
			}
		}
	}
	for _, paths := range find(t, text, `^COPY --from=build (.*) \S+$`) {
		for path := range strings.FieldsSeq(paths) {
			if path = strings.TrimPrefix(path, "/src/"); !strings.HasPrefix(path, "bin/") && !strings.HasPrefix(path, "web/dist/") { // not built
				copied = append(copied, path)
			}
		}
	}
	for _, path := range copied {
		if _, err := os.Stat(filepath.Join("..", path)); err != nil {
			t.Errorf("the Dockerfile copies a missing file: %v", err)
		}
	}
	for _, target := range find(t, text, `^RUN .*\bmake (\w+)`) {
		find(t, read(t, "../Makefile"), `^(`+target+`):`)
	}
	program := find(t, text, `^COPY --from=build /src/bin/oddsgraph (\S+)$`)[0]
	health := strings.Split(find(t, text, `^HEALTHCHECK .* CMD \["(.*)"\]$`)[0], `", "`)
	if entry := find(t, text, `^ENTRYPOINT \["(.*)"\]$`)[0]; entry != program || health[0] != program {
		t.Errorf("the image runs %s and %s, but the program is %s", entry, health[0], program)
	}
	if cfg := parse(t, health[1:], imageEnviron(t)); cfg.Command != "healthcheck" {
		t.Errorf("the health check runs the command %q, want healthcheck", cfg.Command)
	}
}

// docker runs a command of Docker and returns its output.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output()
	if err != nil {
		stderr := ""
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = string(exit.Stderr)
		}
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, stderr)
	}
	return strings.TrimSpace(string(out))
}

// TestImage builds the image. The image's program must report the given version, become healthy and serve the built pages.
func TestImage(t *testing.T) {
	tool.NightlyTier(t)
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		t.Skipf("no Docker engine answers: %v: %s", err, out)
	}
	id := filepath.Join(t.TempDir(), "id")
	docker(t, "build", "--quiet", "--build-arg", "VERSION=1.2.3-test", "--iidfile", id, "..")
	image := strings.TrimSpace(read(t, id))
	if version := docker(t, "run", "--rm", image, "version"); version != "1.2.3-test" {
		t.Errorf("the program has the version %q, want 1.2.3-test", version)
	}
	container := docker(t, "run", "--detach", "--publish", "127.0.0.1::8080", image)
	t.Cleanup(func() { docker(t, "rm", "--force", container) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for state := ""; state != "healthy"; {
		if state = docker(t, "inspect", "--format", "{{.State.Health.Status}}", container); ctx.Err() != nil {
			t.Fatalf("the container is %s:\n%s", state, docker(t, "logs", container))
		}
		time.Sleep(time.Second)
	}
	address, _, _ := strings.Cut(docker(t, "port", container, "8080"), "\n")
	resp, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if page, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(page), "assets/") {
		t.Errorf("got the page %s (error %v), want the built page, which loads files from assets/", page, err)
	}
}

// TestComposeConfig checks the compose files with docker compose.
func TestComposeConfig(t *testing.T) {
	tool.NightlyTier(t)
	if out, err := exec.Command("docker", "compose", "version").CombinedOutput(); err != nil {
		t.Skipf("docker compose is missing: %v: %s", err, out)
	}
	for _, path := range []string{"compose/compose.yaml", "compose/replicas.yaml"} {
		docker(t, "compose", "--file", path, "config", "--quiet")
	}
}
