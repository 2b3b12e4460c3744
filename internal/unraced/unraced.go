// Package unraced is runs tests of what is allocated, which the race detector adds to.
package unraced

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Run runs the tests of the present package whose names match, as of -test.run, in a binary without the race detector.
func Run(t testing.TB, tests string) {
	t.Helper()
	plain := filepath.Join(t.TempDir(), "plain.test")
	if out, err := exec.Command("go", "test", "-race=false", "-c", "-o", plain, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(plain, "-test.v", "-test.run", tests).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
