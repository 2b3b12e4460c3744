package config_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/internal/config"
)

// configFile writes a configuration file and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oddsgraph.env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFile(t *testing.T) {
	path, path2 := configFile(t, "# what the operator wants\n\n  ODDSGRAPH_VENUE_BATCH = 20 \r\nODDSGRAPH_LOG_LEVEL=warn\nODDSGRAPH_MAX_CONNECTIONS=\nODDSGRAPH_STREAM_URL=ws://venue/ws?a=b"), configFile(t, "ODDSGRAPH_VENUE_BATCH=21")
	c := parse(t, "--config="+path)
	if c.File != path || c.Venue.Batch != 20 || c.Log.Level != slog.LevelWarn || c.MaxConnections != 3000 || c.StreamURL != "ws://venue/ws?a=b" {
		t.Errorf("got the Config\n%v\nwant the values from the file", c)
	}
	for args, want := range map[string]int{"": 20, "--venue-batch=30": 30, "--config=" + path2: 21, "--config=": 100} {
		if got := parse(t, args, "ODDSGRAPH_CONFIG="+path).Venue.Batch; got != want {
			t.Errorf("arguments %q: got Venue.Batch %d, want %d", args, got, want)
		}
	}
	if got := parse(t, "", "ODDSGRAPH_CONFIG="+path, "ODDSGRAPH_VENUE_BATCH=25").Venue.Batch; got != 25 {
		t.Errorf("with a value in the environment and another in the file: got Venue.Batch %d, want 25 from the environment", got)
	}
	for _, command := range []string{"schema", "version", "licenses"} {
		parse(t, command+" --config=/no/such/file")
	}
}

func TestBadFiles(t *testing.T) {
	path := configFile(t, "\ufeff"+strings.Join([]string{
		"ODDSGRAPH_VENUE_BATCH=0", "ODDSGRAPH_LISEN=:80", "hunter2", "PATH=/bin", "ODDSGRAPH_CONFIG=other", "ODDSGRAPH_MAX_CONNECTIONS=16", "ODDSGRAPH_MAX_CONNECTIONS=17",
		"export ODDSGRAPH_MAX_OPERATIONS=1 # no", "ODDSGRAPH_LOG_LEVEL=info # chatty", "ODDSGRAPH_STREAM_URL=ftp://u:hunter2@venue", "ODDSGRAPH_SERVICE_HOST=10.0.0.1",
	}, "\n"))
	const form = "want a variable and its value, such as ODDSGRAPH_LOG_LEVEL=info, or a # and a comment; the file has only variables that begin with ODDSGRAPH_, so set others, such as OTEL_* and GOMEMLIMIT, in the environment"
	want := []string{
		path + ":2: ODDSGRAPH_LISEN is no variable of oddsgraph; did you mean ODDSGRAPH_LISTEN?",
		path + ":3: " + form,
		path + ":4: " + form,
		path + ":5: ODDSGRAPH_CONFIG names a file of settings and cannot be set in such a file",
		path + ":7: ODDSGRAPH_MAX_CONNECTIONS is present twice",
		path + ":8: " + form,
		path + ":11: ODDSGRAPH_SERVICE_HOST is no variable of oddsgraph; see --help for all",
		path + `:9: ODDSGRAPH_LOG_LEVEL (--log-level): "info # chatty" is not among the choices; want one of debug, info, warn, error`,
		path + `:1: ODDSGRAPH_VENUE_BATCH (--venue-batch): "0" is too small; want a number from 1 to 1000`,
		path + `:10: ODDSGRAPH_STREAM_URL (--stream-url): "ftp://venue" has the wrong scheme; want a ws:// or wss:// URL with a host and without fragment, or nothing`,
	}
	if got := problems(t, "--config="+path); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for path, wrong := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file",
		t.TempDir():                        "cannot be read",
		configFile(t, strings.Repeat("# comment\n", 64<<10/10+1)): "is larger than 65536 bytes",
	} {
		for _, got := range [][]string{problems(t, "--config="+path), problems(t, "", "ODDSGRAPH_CONFIG="+path)} {
			if len(got) != 1 || !strings.Contains(got[0], "ODDSGRAPH_CONFIG") || !strings.Contains(got[0], wrong) {
				t.Errorf("--config=%s: got the problems %q, want one problem that contains %q", path, got, wrong)
			}
		}
	}
}

func TestShow(t *testing.T) {
	const secret = "hunter2"
	path := configFile(t, "\nODDSGRAPH_MAX_CONNECTIONS=99\nODDSGRAPH_MAX_OPERATIONS=9\n")
	var out bytes.Buffer
	c := parse(t, "--max-body=2MiB --config="+path, "ODDSGRAPH_STREAM_URL=wss://"+secret+"@venue.example/ws?key="+secret, "ODDSGRAPH_MAX_OPERATIONS=10")
	if err := c.Show(&out); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		rows[fields[0]] = fields[1:]
	}
	for setting, want := range map[string]string{
		"SETTING": "VALUE FROM", "--config": path + " --config", "--max-body": "2MiB --max-body", "--stream-url": "wss://venue.example/ws environment",
		"--max-connections": "99 " + path + ":2", "--max-operations": "10 environment", "--listen": "127.0.0.1:8080 default", "--venue-url": "default", "--log-level": "info default",
	} {
		if got := strings.Join(rows[setting], " "); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if want := strings.Count(config.Default().String(), "\n") + 1; len(rows) != want || strings.Contains(out.String(), secret) {
		t.Errorf("Show wrote %d rows, want %d rows without the secret:\n%s", len(rows), want, out.String())
	}
}

func TestDifferences(t *testing.T) {
	a, b := parse(t, "--stream-url=ws://venue/?key=a --log-level=warn"), parse(t, "--stream-url=ws://venue/?key=b", "ODDSGRAPH_LOG_LEVEL=warn")
	if got := a.Differences(*b); len(got) != 1 || got[0] != "stream-url" {
		t.Errorf("the configurations differ in %v, want only stream-url", got)
	}
}
