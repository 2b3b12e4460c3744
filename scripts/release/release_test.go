package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
	"oddsgraph/web"
)

// TestRelease builds a release for this platform and checks the archive, the program, the SBOM and the checksums.
func TestRelease(t *testing.T) {
	if web.Licenses() == "" {
		tool.Missing(t, "the pages are not built: run make web")
	}
	if tool.Unraced(t) { // the race detector slows the compression
		return
	}
	t.Chdir("../..")
	out := filepath.Join(t.TempDir(), "release")
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if err := run("v1.2.3", []string{platform}, out); err != nil {
		t.Fatal(err)
	}
	folder := "oddsgraph-v1.2.3-" + strings.ReplaceAll(platform, "/", "-")
	archive, err := os.ReadFile(filepath.Join(out, folder+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, archive)
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		if want, err := os.ReadFile(name); err != nil || files[folder+"/"+name] != string(want) {
			t.Errorf("%s in the archive differs from the file (error %v)", name, err)
		}
	}
	program := filepath.Join(t.TempDir(), "oddsgraph")
	if err := os.WriteFile(program, []byte(files[folder+"/oddsgraph"]), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := exec.Command(program, "version").Output(); err != nil || string(got) != "v1.2.3\n" {
		t.Errorf("the program prints version %q, %v", got, err)
	}
	if got, err := exec.Command(program, "licenses").Output(); err != nil || string(got) != files[folder+"/THIRD_PARTY_LICENSES"] {
		t.Errorf("the program prints licences that differ from THIRD_PARTY_LICENSES in the archive (error %v)", err)
	}

	sbom := "oddsgraph-v1.2.3-sbom.cdx.json"
	components := readSBOM(t, filepath.Join(out, sbom))
	for _, prefix := range []string{"pkg:golang/std@1.", "pkg:golang/github.com/99designs/gqlgen@v", "pkg:npm/react@", "pkg:npm/%40graphiql/react@"} {
		if !slices.ContainsFunc(components, func(purl string) bool { return strings.HasPrefix(purl, prefix) }) {
			t.Errorf("the SBOM lists no %s", prefix)
		}
	}
	want := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archive), folder)
	if sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS")); err != nil || !strings.Contains(string(sums), want) || !strings.Contains(string(sums), sbom) {
		t.Errorf("SHA256SUMS is %q, %v; want %q and %s", sums, err, want, sbom)
	}
}

// untar returns the files of a .tar.gz by name.
func untar(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if executable := h.Mode&0o111 != 0; executable != strings.HasSuffix(h.Name, "/oddsgraph") {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		files[h.Name] = string(content)
	}
}

// readSBOM returns the package URLs in an SBOM.
func readSBOM(t *testing.T, name string) (purls []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat  string
		Components []struct{ PURL string }
	}
	if err := json.Unmarshal(text, &bom); err != nil || bom.BOMFormat != "CycloneDX" {
		t.Fatalf("the SBOM is %.200q (error %v), want the format CycloneDX", text, err)
	}
	for _, c := range bom.Components {
		purls = append(purls, c.PURL)
	}
	return purls
}

// TestArchives checks that equal files give equal archives, even if their modification times differ. Archives for Windows must be
// .zip files.
func TestArchives(t *testing.T) {
	for _, platform := range []string{"linux/amd64", "windows/arm64"} {
		var first []byte
		for range 2 {
			dir := t.TempDir()
			file := filepath.Join(dir, "oddsgraph.exe")
			if err := os.WriteFile(file, []byte("program"), 0o755); err != nil {
				t.Fatal(err)
			}
			name, err := archive(dir, platform, "v1", []string{file})
			if err != nil {
				t.Fatal(err)
			}
			packed, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !bytes.Equal(packed, first) {
				t.Errorf("the second archive %s differs from the first, want equal archives", name)
			}
			first = packed
		}
		if platform == "windows/arm64" {
			z, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
			if err != nil || len(z.File) != 1 || z.File[0].Name != "oddsgraph-v1-windows-arm64/oddsgraph.exe" {
				t.Errorf("the zip is %+v, %v", z, err)
			}
		}
	}
}

func TestReleaseErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for want, version := range map[string]string{"-version is missing": "", "make web": "v1"} {
		if err := run(version, []string{"linux/amd64"}, "out"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: got the error %v, want %q", version, err, want)
		}
	}
}
