package deploy

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// TestSystemdVerifies checks the unit with systemd-analyze.
func TestSystemdVerifies(t *testing.T) {
	analyze := tool.Require(t, "systemd-analyze")
	path := filepath.Join(t.TempDir(), "oddsgraph.service")
	write(t, path, strings.ReplaceAll(read(t, "systemd/oddsgraph.service"), "/usr/local/bin/oddsgraph", "/bin/true"))
	// systemd-analyze prints a warning for a line that it does not understand, but exits with status 0.
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "oddsgraph.service") {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}
