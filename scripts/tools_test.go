//go:build unix

package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bareMachine simulates a machine without the programs that tests need. It records the calls of apt-get.
type bareMachine struct {
	bin, calls string
}

// newBareMachine returns a machine whose user has the given id. Its apt-get can install only the packages in installable.
func newBareMachine(t *testing.T, uid string, installable ...string) *bareMachine {
	t.Helper()
	dir := t.TempDir()
	m := &bareMachine{bin: filepath.Join(dir, "bin"), calls: filepath.Join(dir, "calls")}
	if err := os.Mkdir(m.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "cat", "tr", "ln"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.program(t, "uname", "echo Linux")
	m.program(t, "id", "echo "+uid)
	m.program(t, "apt-get", `echo "$*" >>`+m.calls+`
		case "$*" in install*) for name in `+strings.Join(installable, " ")+`; do ln -sf sh `+m.bin+`/$name; done ;; esac`)
	return m
}

func (m *bareMachine) program(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.bin, name), []byte("#!"+filepath.Join(m.bin, "sh")+"\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// tools runs scripts/tools. It returns the output, whether the script succeeded, and the calls of apt-get.
func (m *bareMachine) tools(t *testing.T, ci string, args ...string) (printed string, ok bool, calls string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(m.bin, "sh"), append([]string{"tools"}, args...)...)
	cmd.Env = []string{"PATH=" + m.bin, "CI=" + ci, "SSL_CERT_FILE=tools"}
	out, err := cmd.CombinedOutput()
	if b, err := os.ReadFile(m.calls); err == nil {
		calls = string(b)
	}
	return string(out), err == nil, calls
}

func TestToolsInstalls(t *testing.T) {
	sudo := func(t *testing.T, script string) *bareMachine {
		m := newBareMachine(t, "1000", "promtool", "jq")
		m.program(t, "sudo", script)
		return m
	}
	for name, test := range map[string]struct {
		machine  *bareMachine
		installs bool
	}{
		"root":                          {newBareMachine(t, "0", "promtool", "jq"), true},
		"a user without sudo":           {newBareMachine(t, "1000", "promtool", "jq"), false},
		"sudo without a password":       {sudo(t, `shift; case "$1" in true) ;; *) "$@" ;; esac`), true},
		"sudo that asks for a password": {sudo(t, "exit 1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			printed, ok, calls := test.machine.tools(t, "", "promtool", "jq")
			if !ok || strings.Contains(calls, "install -yqq --no-install-recommends prometheus jq\n") != test.installs {
				t.Errorf("scripts/tools succeeded: %v, want true; apt-get was called with %q, want an installation: %v; the script printed\n%s", ok, calls, test.installs, printed)
			}
			if says := strings.Contains(printed, "promtool is missing") && strings.Contains(printed, "apt-get install prometheus jq\n"); says == test.installs {
				t.Errorf("scripts/tools printed %q, want instructions for an installation: %v", printed, !test.installs)
			}
		})
	}
}

func TestToolsReportsWhatIsMissing(t *testing.T) {
	m := newBareMachine(t, "0", "promtool") // promtool is the only package that apt-get can install
	for _, test := range []struct {
		ci string
		ok bool
	}{{"", true}, {"true", false}} {
		printed, ok, _ := m.tools(t, test.ci)
		if ok != test.ok || !strings.Contains(printed, "chromium is missing") || strings.Contains(printed, "promtool is missing") {
			t.Errorf("CI=%q: scripts/tools succeeded: %v, want %v; it must print that chromium is missing, and not promtool:\n%s", test.ci, ok, test.ok, printed)
		}
	}
	if err := os.Remove(m.calls); err != nil {
		t.Fatal(err)
	}
	if printed, _, calls := m.tools(t, "", "-n"); calls != "" || !strings.Contains(printed, "chromium is missing") {
		t.Errorf("with -n: apt-get was called with %q, want no call; the script printed\n%s", calls, printed)
	}
	if printed, ok, _ := m.tools(t, "", "nonsense"); ok || !strings.Contains(printed, "does not list nonsense") {
		t.Errorf("for a name that is not listed: scripts/tools succeeded: %v, want false; it printed %s", ok, printed)
	}
}
