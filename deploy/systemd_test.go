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
			t.Fatalf("%s: %q is not a setting", path, line)
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
			t.Fatalf("the unit has the setting %s %d times, want once", name, len(u[name]))
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
		t.Errorf("%s does not check the settings that ExecStart uses", one("ExecStartPre"))
	}
	if served.Command != "serve" || served.Venue.URL == "" || served.StreamURL == "" {
		t.Errorf("ExecStart runs %v, want the command serve with a venue and its stream", served)
	}
	stop, err := time.ParseDuration(one("TimeoutStopSec"))
	if err != nil {
		t.Fatal(err)
	}
	wantStopTimeout(t, stop, served)
	heap, ok := strings.CutPrefix(one("Environment"), "GOMEMLIMIT=")
	if !ok {
		t.Errorf("Environment is %s, want GOMEMLIMIT", one("Environment"))
	}
	wantMemory(t, heap, one("MemoryMax"))
	if one("ExecReload") != "/bin/kill -HUP $MAINPID" {
		t.Errorf("the service is reloaded by %s, want a SIGHUP", one("ExecReload"))
	}
	if one("StateDirectory") != "oddsgraph" || one("StateDirectoryMode") != "0700" || served.StateDir != "" {
		t.Errorf("the unit has the state directory %s with the mode %s, and the settings have %q; want oddsgraph, 0700 and no setting", one("StateDirectory"), one("StateDirectoryMode"), served.StateDir)
	}
	group := one("SupplementaryGroups")
	if !slices.Contains(strings.Split(read(t, "systemd/oddsgraph.sysusers"), "\n"), "g "+group+" -") {
		t.Errorf("systemd/oddsgraph.sysusers does not create the group %s", group)
	}
}
