// Command release builds the files of a release in a folder: an archive for each platform, SHA256SUMS, and an SBOM in the format of
// CycloneDX. An archive contains the program, its licences and documents. Equal sources give equal bytes. Build the pages first;
// `make release` does so.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// documents are the files that each archive contains in addition to the program and the licence texts.
var documents = []string{"LICENSE", "README.md", "CHANGELOG.md"}

func main() {
	version := flag.String("version", "", "version that the program prints, such as v1.2.3")
	platforms := flag.String("platforms", allPlatforms, "GOOS/GOARCH, separated by commas")
	out := flag.String("out", "bin/release", "folder to write to; its content is replaced")
	flag.Parse()
	if err := run(*version, strings.Split(*platforms, ","), *out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version string, platforms []string, out string) error {
	if version == "" {
		return errors.New("-version is missing")
	}
	if _, err := os.Stat("web/dist/licenses.txt"); err != nil {
		return fmt.Errorf("the pages are not built, run make web: %w", err)
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return err
	}
	thirdParty, err := licenses(work)
	if err != nil {
		return err
	}
	var programs, files []string
	for _, platform := range platforms {
		program, err := build(work, platform, version)
		if err != nil {
			return fmt.Errorf("building for %s: %w", platform, err)
		}
		name, err := archive(out, platform, version, append([]string{program, thirdParty}, documents...))
		if err != nil {
			return fmt.Errorf("archive for %s: %w", platform, err)
		}
		programs, files = append(programs, program), append(files, name)
	}
	sbom := fmt.Sprintf("oddsgraph-%s-sbom.cdx.json", version)
	if err := writeSBOM(filepath.Join(out, sbom), version, programs); err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	return writeSums(out, append(files, sbom))
}

// licenses writes the licence texts of the program and the pages into a file and returns its name.
func licenses(work string) (string, error) {
	name := filepath.Join(work, "THIRD_PARTY_LICENSES")
	var text []byte
	for _, part := range []string{"THIRD_PARTY_LICENSES", "web/dist/licenses.txt"} {
		more, err := os.ReadFile(part)
		if err != nil {
			return "", err
		}
		text = append(text, more...)
	}
	return name, os.WriteFile(name, text, 0o644)
}

// build compiles the program in the same way as make binary. It returns the path of the program.
func build(work, platform, version string) (string, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return "", errors.New("a platform is GOOS/GOARCH")
	}
	program := filepath.Join(work, goos+"_"+goarch, "oddsgraph")
	if goos == "windows" {
		program += ".exe"
	}
	cmd := exec.Command("make", "--no-print-directory", "binary", "BINARY="+program, "VERSION="+version)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return program, cmd.Run()
}

// archive writes a .tar.gz, or a .zip for Windows, with the files in one folder. It returns the archive's name.
func archive(out, platform, version string, files []string) (name string, err error) {
	folder := fmt.Sprintf("oddsgraph-%s-%s", version, strings.ReplaceAll(platform, "/", "-"))
	name = folder + ".tar.gz"
	pack := packTar
	if strings.HasPrefix(platform, "windows/") {
		name, pack = folder+".zip", packZip
	}
	f, err := os.Create(filepath.Join(out, name))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return name, pack(f, folder, files)
}

// archiveTime is the time of every archived file, so that an archive does not depend on the time of its build. ZIP files have no
// times before 1980.
var archiveTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func mode(file string) os.FileMode {
	if strings.HasPrefix(filepath.Base(file), "oddsgraph") {
		return 0o755
	}
	return 0o644
}

func packTar(w io.Writer, folder string, files []string) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: folder + "/" + filepath.Base(file), Mode: int64(mode(file)), Size: int64(len(content)), ModTime: archiveTime}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func packZip(w io.Writer, folder string, files []string) error {
	z := zip.NewWriter(w)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: folder + "/" + filepath.Base(file), Method: zip.Deflate, Modified: archiveTime}
		h.SetMode(mode(file))
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
	}
	return z.Close()
}

// writeSums writes the checksums of files to SHA256SUMS, in the format that sha256sum reads.
func writeSums(out string, files []string) error {
	var sums strings.Builder
	for _, name := range slices.Sorted(slices.Values(files)) {
		content, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
