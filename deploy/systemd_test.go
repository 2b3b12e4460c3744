package deploy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// unit returns the settings of a systemd unit.
func unit(t testing.TB, path string) map[string][]string {
	t.Helper()
	settings := map[string][]string{}
	for line := range strings.Lines(read(t, path)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("%s: %q is no setting", path, line)
		}
		settings[name] = append(settings[name], value)
	}
	return settings
}

func TestSystemd(t *testing.T) {
	u := unit(t, "systemd/oddsgraph.service")
	one := func(name string) string {
		t.Helper()
		if len(u[name]) != 1 {
			t.Fatalf("%s is there %d times", name, len(u[name]))
		}
		return u[name][0]
	}
	// args returns the arguments of a command. It replaces the paths in /etc/oddsgraph/ with the paths of the shipped files in
	// systemd/.
	args := func(command string) []string {
		const program = "/usr/local/bin/oddsgraph "
		if !strings.HasPrefix(command, program) {
			t.Fatalf("%q does not run the program", command)
		}
		return strings.Fields(strings.ReplaceAll(command[len(program):], "/etc/oddsgraph/", "systemd/"))
	}
	served := parse(t, args(one("ExecStart")), nil)
	if checked := parse(t, args(one("ExecStartPre")), nil); checked.Command != "config check" || len(checked.Differences(*served)) > 0 {
		t.Errorf("%s checks something else than is served", one("ExecStartPre"))
	}
	if served.Command != "serve" || served.Venue.URL == "" || served.StreamURL == "" {
		t.Errorf("it serves %v", served)
	}
	stop, err := time.ParseDuration(one("TimeoutStopSec"))
	if err != nil {
		t.Fatal(err)
	}
	wantPatience(t, stop, served)
	heap, ok := strings.CutPrefix(one("Environment"), "GOMEMLIMIT=")
	if !ok {
		t.Errorf("Environment=%s", one("Environment"))
	}
	wantMemory(t, heap, one("MemoryMax"))
	if one("ExecReload") != "/bin/kill -HUP $MAINPID" {
		t.Errorf("it is reloaded by %s", one("ExecReload"))
	}
	if one("StateDirectory") != "oddsgraph" || one("StateDirectoryMode") != "0700" || served.StateDir != "" {
		t.Errorf("calls are recorded in %s, mode %s, by the settings in %q", one("StateDirectory"), one("StateDirectoryMode"), served.StateDir)
	}
	group := one("SupplementaryGroups")
	if !slices.Contains(strings.Split(read(t, "systemd/oddsgraph.sysusers"), "\n"), "g "+group+" -") {
		t.Errorf("systemd/oddsgraph.sysusers does not create the group %s", group)
	}
}
