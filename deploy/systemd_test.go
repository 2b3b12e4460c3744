package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// TestSystemd checks that the program accepts the commands and settings of the unit, and that the unit gives it enough time and
// memory.
func TestSystemd(t *testing.T) {
	unit := read(t, "systemd/oddsgraph.service")
	setting := func(name string) string { return find(t, unit, `^`+name+`=(.*)$`)[0] }
	// args returns the arguments of a command. The shipped files are in systemd/ instead of /etc/oddsgraph/.
	args := func(name string) []string {
		command := strings.ReplaceAll(setting(name), "/etc/oddsgraph/", "systemd/")
		return strings.Fields(strings.TrimPrefix(command, "/usr/local/bin/oddsgraph "))
	}
	served := parse(t, args("ExecStart"), nil)
	if checked := parse(t, args("ExecStartPre"), nil); checked.Command != "config check" || len(checked.Differences(*served)) > 0 {
		t.Errorf("ExecStartPre runs %q with other settings than ExecStart, want config check with the same settings", checked.Command)
	}
	if served.Command != "serve" || served.Venue.URL == "" {
		t.Errorf("ExecStart runs %q over the venue %q, want serve over a venue", served.Command, served.Venue.URL)
	}
	wantStopTimeout(t, duration(t, setting("TimeoutStopSec")), served)
	wantMemory(t, setting("Environment=GOMEMLIMIT"), setting("MemoryMax"))
	if group := setting("SupplementaryGroups"); !strings.Contains(read(t, "systemd/oddsgraph.sysusers"), "\ng "+group+" -\n") {
		t.Errorf("systemd/oddsgraph.sysusers does not create the group %s", group)
	}
}

// TestSystemdVerifies checks the unit with systemd-analyze.
func TestSystemdVerifies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("systemd is for Linux")
	}
	analyze := tool.Require(t, "systemd-analyze")
	path := filepath.Join(t.TempDir(), "oddsgraph.service")
	unit := strings.ReplaceAll(read(t, "systemd/oddsgraph.service"), "/usr/local/bin/oddsgraph", "/bin/true")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	// systemd-analyze prints a warning for a line that it does not understand, but exits with status 0.
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "oddsgraph.service") {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}
