//go:build unix

package scripts

import (
	"archive/zip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// release runs scripts/release in a folder whose make and go write short texts instead of the program and its SBOM. It returns the
// folder of the release.
func release(t *testing.T, pages bool, args ...string) (out, printed string, err error) {
	t.Helper()
	script, err := os.ReadFile("release")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"scripts/release": string(script),
		"fake/make":       "#!/bin/sh\nfor a; do case $a in BINARY=*) program=${a#BINARY=} ;; VERSION=*) version=${a#VERSION=} ;; esac; done\necho $version for $GOOS $GOARCH >$program\nchmod +x $program\n",
		"fake/go":         "#!/bin/sh\nfor program; do :; done\n" + `echo "{\"metadata\":{\"tools\":[{\"hashes\":[\"$$\"]}]},\"components\":[{\"purl\":\"$(cat $program)\"}]}"` + "\n",
		"LICENSE":         "ours", "README.md": "readme", "CHANGELOG.md": "changes", "THIRD_PARTY_LICENSES": "of Go\n",
	}
	if pages {
		files["web/dist/licenses.txt"], files["web/dist/packages.json"] = "of npm\n", `[{"name":"@a/b","version":"1.2.0","license":"MIT"}]`
	}
	dir := t.TempDir()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(dir, "scripts", "release"), args...)
	cmd.Env = append(os.Environ(), "GO=go", "PATH="+filepath.Join(dir, "fake")+":"+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	return filepath.Join(dir, "bin", "release"), string(text), err
}

// TestRelease checks the archives, the SBOMs and the checksums. A release of the real program needs the network: `make release
// PLATFORMS=linux/amd64` builds one.
func TestRelease(t *testing.T) {
	for _, name := range []string{"jq", "zip"} {
		tool.Require(t, name)
	}
	if text, err := exec.Command("tar", "--version").Output(); err != nil || !strings.Contains(string(text), "GNU") {
		tool.Missing(t, "scripts/release needs GNU tar")
	}
	out, printed, err := release(t, true, "v1.2.3", "linux/amd64", "windows/arm64")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	inRelease := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = out
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", cmd, err, text)
		}
		return strings.Join(strings.Fields(string(text)), " ")
	}
	const linux, windows = "oddsgraph-v1.2.3-linux-amd64", "oddsgraph-v1.2.3-windows-arm64"
	const date = " 1980-01-01 00:00 " + linux + "/"
	if got, want := inRelease("tar", "--utc", "-tvzf", linux+".tar.gz"), "drwxr-xr-x 0/0 0"+date+" -rw-r--r-- 0/0 7"+date+"CHANGELOG.md -rw-r--r-- 0/0 4"+date+"LICENSE "+
		"-rw-r--r-- 0/0 6"+date+"README.md -rw-r--r-- 0/0 13"+date+"THIRD_PARTY_LICENSES -rwxr-xr-x 0/0 23"+date+"oddsgraph"; got != want {
		t.Errorf("the archive for Linux has the files\n%s, want\n%s", got, want)
	}
	z, err := zip.OpenReader(filepath.Join(out, windows+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if len(z.File) != 5 || z.File[4].Name != windows+"/oddsgraph.exe" || z.File[4].Mode() != 0o755 || z.File[4].Modified.Year() != 1980 {
		t.Errorf("the archive for Windows has the files %+v", z.File)
	}
	for name, program := range map[string]string{linux: "v1.2.3 for linux amd64", windows: "v1.2.3 for windows arm64"} {
		const npm = `{"type":"library","bom-ref":"pkg:npm/%40a/b@1.2.0","name":"@a/b","version":"1.2.0","purl":"pkg:npm/%40a/b@1.2.0","licenses":[{"expression":"MIT"}]}`
		if got, want := inRelease("jq", "-c", ".", name+".cdx.json"), `{"metadata":{"tools":[{}]},"components":[{"purl":"`+program+`"},`+npm+`]}`; got != want {
			t.Errorf("the SBOM of %s is\n%s, want\n%s", name, got, want)
		}
	}
	if got, want := inRelease("sha256sum", "--check", "--strict", "SHA256SUMS"), linux+".cdx.json: OK "+linux+".tar.gz: OK "+windows+".cdx.json: OK "+windows+".zip: OK"; got != want {
		t.Errorf("SHA256SUMS has\n%s, want\n%s", got, want)
	}
}

// TestReleaseErrors checks that no release is built without a version or without the pages.
func TestReleaseErrors(t *testing.T) {
	for want, args := range map[string][]string{"the version is missing": nil, "run make web": {"v1.2.3"}} {
		out, printed, err := release(t, false, args...)
		files, _ := filepath.Glob(filepath.Join(out, "*"))
		if err == nil || !strings.Contains(printed, want) || len(files) > 0 {
			t.Errorf("%q: printed %q (error %v) and built %q, want an error with %q", args, printed, err, files, want)
		}
	}
}
