package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Unraced runs the calling test in a test binary without the race detector and returns true. If this binary has no race detector,
// Unraced does nothing and returns false. Tests that count allocations need this, because the race detector allocates, too.
// Tests that compute much on one goroutine are faster this way.
func Unraced(t *testing.T) bool {
	t.Helper()
	if !Raced {
		return false
	}
	// Tests may run in another directory, so Unraced takes the package from the path of the calling function's file. With
	// -trimpath, this path begins with the import path of the package.
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
