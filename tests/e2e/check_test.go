package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// write writes a file with mode 0600 and returns its path.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const noAccounts = `{"version":1,"accounts":[]}`

func TestConfigCheck(t *testing.T) {
	dir := t.TempDir()
	accounts, manifest := write(t, dir, "accounts.json", noAccounts), write(t, dir, "manifest.json", `{"one":"{ __typename }"}`)
	exposed, broken := write(t, dir, "exposed.json", noAccounts), write(t, dir, "broken.json", `{"two":"{ nope }"}`)
	if err := os.Chmod(exposed, 0o644); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0") // config check must neither listen on this address nor call the venue at this address
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	good := []string{
		"config", "check", "--listen=" + taken.Addr().String(), "--venue-url=http://" + taken.Addr().String(), "--stream-url=ws://" + taken.Addr().String(),
		"--accounts-file=" + accounts, "--documents-trusted=require", "--documents-manifest=" + manifest,
	}
	for _, test := range []struct {
		more []string
		want []string // parts of the output or of the error; if the configuration is valid, want[0] is the whole output
	}{
		{nil, []string{"The configuration is in order: 0 accounts, 1 trusted documents\n"}},
		{[]string{"--accounts-file=" + exposed}, []string{"--accounts-file", exposed, "chmod 600"}},
		{[]string{"--accounts-file=" + filepath.Join(dir, "none.json")}, []string{"--accounts-file", "no such file"}},
		{[]string{"--documents-manifest=" + broken, "--accounts-file=" + broken}, []string{"--documents-manifest", `"two"`, "--accounts-file"}},
		{[]string{"--documents-manifest="}, []string{"--documents-manifest", "need a manifest"}},
		{[]string{"--trusted-proxies=10.0.0.1/8"}, []string{"--trusted-proxies"}},
		{[]string{"--venue-url="}, []string{"--stream-url", "--venue-url"}},
		{[]string{"--admin-listen=" + taken.Addr().String()}, []string{"--listen", "--admin-listen", taken.Addr().String(), "clash"}},
		{[]string{"--admin-listen=:" + port}, []string{"--listen", "--admin-listen", "clash"}},
		{[]string{"--listen=0.0.0.0:9091"}, []string{"--listen", "--admin-listen", "clash"}},
		{[]string{"--venue-url=", "--trusted-proxies=10.0.0.1/8"}, []string{"--stream-url", "--trusted-proxies"}},
		{[]string{"--shared-secret-file=secret"}, []string{"--shared-secret-file (ODDSGRAPH_SHARED_SECRET_FILE) is set without --shared-url"}},
		{[]string{"--shared-url=redis://127.0.0.1:1", "--venue-public-per-minute=5"}, []string{"--shared-replicas (5)", "the 4 public calls a minute", "lower --shared-replicas"}},
		{[]string{"--shared-url=redis://127.0.0.1:1", "--venue-driver=kalshi", "--stream-url="}, []string{"--shared-replicas (5)", "3 calls in 1s", "set it to 3 or less"}},
		{[]string{"--venue-batch=0", "--config=" + filepath.Join(dir, "none.env")}, []string{"--venue-batch", "--config"}},
	} {
		var out bytes.Buffer
		err := run(t.Context(), append(good[:len(good):len(good)], test.more...), nil, &out, io.Discard)
		said := out.String()
		if err != nil {
			said = err.Error()
		}
		if valid := test.more == nil; valid != (err == nil) || valid != (said == test.want[0]) {
			t.Errorf("with the flags %v, config check printed %q and returned the error %v", test.more, out.String(), err)
		}
		for _, want := range test.want {
			if !strings.Contains(said, want) {
				t.Errorf("with the flags %v, %q does not contain %q", test.more, said, want)
			}
		}
	}
}

// TestConfigCheckAcceptsTraceEndpoint checks that config check accepts an endpoint for traces and sends it nothing.
func TestConfigCheckAcceptsTraceEndpoint(t *testing.T) {
	var requests atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	if err := run(t.Context(), []string{"config", "check"}, nil, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	collector.Close() // waits for requests
	if n := requests.Load(); n > 0 {
		t.Errorf("config check sent %d requests to the endpoint, want none", n)
	}
}

// TestBadTraceVariables sets variables that OpenTelemetry would report to standard error. The program must not show their values.
func TestBadTraceVariables(t *testing.T) {
	const secret = "hunter2"
	for _, test := range []struct{ name, value string }{
		{"OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer hunter2secret"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic hunter2%zz"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "hunter2 key=1"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:hunter2@127.0.0.1:bad"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "hunter2:4318"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "hunter2"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/hunter2.pem"},
		{"OTEL_TRACES_SAMPLER", "hunter2"},
		{"OTEL_TRACES_SAMPLER_ARG", "hunter2"},
		{"OTEL_BSP_SCHEDULE_DELAY", "hunter2"},
		{"OTEL_RESOURCE_ATTRIBUTES", "hunter2"},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=hunter2%zz"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			t.Setenv(test.name, test.value)
			var said bytes.Buffer
			err := run(t.Context(), []string{"config", "check"}, nil, io.Discard, &said)
			if text := fmt.Sprint(err, said.String()); strings.Contains(text, secret) {
				t.Errorf("with the value %q, the error and standard error contain the secret: %s", test.value, text)
			}
		})
	}
}

// TestConfigCheckWarns checks that config check prints a warning if the service would send credentials unencrypted to a venue that
// is not on a loopback address.
func TestConfigCheckWarns(t *testing.T) {
	const well = "The configuration is in order: 0 accounts, 0 trusted documents\n"
	for _, test := range []struct{ venue, stream, mode, want string }{
		{"http://venue.example/api", "", "query", "Warning: --venue-url sends callers' credentials unencrypted to venue.example; use https if the venue has it\n" + well},
		{"https://venue.example", "ws://venue.example:81", "header", "Warning: --stream-url sends callers' credentials unencrypted to venue.example; use wss if the venue has it\n" + well},
		{"http://venue.example", "ws://venue.example", "none", well},
		{"https://venue.example", "wss://venue.example", "query", well},
		{"http://127.0.0.7", "ws://[::1]/ws", "query", well},
		{"http://localhost:81", "", "query", well},
	} {
		var out bytes.Buffer
		args := []string{"config", "check", "--venue-url=" + test.venue, "--stream-url=" + test.stream, "--venue-credentials=" + test.mode}
		if err := run(t.Context(), args, nil, &out, io.Discard); err != nil || out.String() != test.want {
			t.Errorf("%v: printed %q and returned the error %v, want %q without an error", args, out.String(), err, test.want)
		}
	}
}

// TestConfigCheckOfAnIssuer checks that config check accepts the settings of a token issuer only together. --jwt-jwks-url must use
// HTTPS, except for a loopback address.
func TestConfigCheckOfAnIssuer(t *testing.T) {
	f := newAccountsFile(t)
	all := []string{"--accounts-file=" + f.path, "--jwt-issuer=https://id.example/", "--jwt-audience=odds", "--jwt-jwks-url=https://id.example/jwks"}
	for _, test := range []struct {
		args []string
		want string // part of the error; empty if the settings are valid
	}{
		{all, ""},
		{append(all[:3:3], "--jwt-jwks-url=http://127.0.0.1:81/jwks"), ""},
		{append(all[:3:3], "--jwt-jwks-url=http://id.example/jwks"), "--jwt-jwks-url"},
		{all[:3], "belong together"},
		{append(all[:2:2], all[3]), "belong together"},
		{append([]string{all[0]}, all[2:]...), "belong together"},
		{append(all[:4:4], "--jwt-account-claim="), "belong together"},
		{all[1:], "--accounts-file"},
	} {
		err := run(t.Context(), append([]string{"config", "check"}, test.args...), nil, io.Discard, io.Discard)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got the error %v, want %q", test.args, err, test.want)
		}
	}
}
