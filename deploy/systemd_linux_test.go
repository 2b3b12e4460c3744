package deploy

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// TestSystemdVerifies has systemd read the unit.
func TestSystemdVerifies(t *testing.T) {
	analyze := tool.Require(t, "systemd-analyze")
	path := filepath.Join(t.TempDir(), "oddsgraph.service")
	write(t, path, strings.ReplaceAll(read(t, "systemd/oddsgraph.service"), "/usr/local/bin/oddsgraph", "/bin/true"))
	// What it can't make sense of it tells, and goes on.
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "oddsgraph.service") {
		t.Errorf("%v: %s", err, out)
	}
}
