//go:build race

package httpapi

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCost runs the test of allocations, which the race detector adds to, in a binary without it.
func TestCost(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain.test")
	if out, err := exec.Command("go", "test", "-race=false", "-c", "-o", plain, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(plain, "-test.v", "-test.run", "^TestAHitAllocatesLittle$").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
