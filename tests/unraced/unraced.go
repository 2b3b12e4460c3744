// Package unraced runs tests of what is allocated without the race detector, which adds to it.
package unraced

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Run tells whether the test has run already: with the race detector in this binary, Run runs it in one of the same package
// that is built without, as the program is.
func Run(t *testing.T) bool {
	t.Helper()
	if !Raced {
		return false
	}
	// The tests may run in another directory. A file is named by its path, or by its package's if paths are trimmed.
	_, file, _, ok := runtime.Caller(1)
	if !ok {
		t.Fatal("the caller is not known")
	}
	plain := filepath.Join(t.TempDir(), "plain.test")
	build := exec.Command("go", "test", "-race=false", "-c", "-o", plain, filepath.Dir(file))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(plain, "-test.v", "-test.run", "^"+t.Name()+"$").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return true
}
