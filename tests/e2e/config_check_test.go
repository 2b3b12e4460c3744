package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/polymarket"
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

// TestConfigCheckAsks checks that config check --ask prints a line for each kind of data, and fails if it cannot read a kind that
// the driver supports.
func TestConfigCheckAsks(t *testing.T) {
	complete := []string{
		"search: 5 markets", "markets by id: 5 of 5", "markets by token: 1 of 1", "market by slug: 1 of 1", "prices: \\d+ of \\d+",
		"spreads: \\d+ of \\d+", "book: 1 of 1", "price history: \\d+ points",
		"public trades: unsupported: UNSUPPORTED: the venue's API has no list of public trades.*",
		"events: \\d+ events", "event by id: \\d+ markets", "categories: \\d+ categories", "stream of market: answered, \\d+ messages", "stream of prices: answered, \\d+ messages",
		"stream of orderbook: answered, \\d+ messages", "stream of trades: answered, \\d+ messages", "accounts: not requested: .*",
		"settings for --venue-table: market-ids:ids,market-tokens:tokenIds,spreads:tokenIds,search-options:yes,max-url:2048",
		"report: oddsgraph .*, driver generic, .*Z: no difference from the known forms",
	}
	for _, test := range []struct {
		name, path, body string
		change           map[int]string
		lines            int
		fails            bool
	}{
		{"a complete venue", "", "", nil, len(complete), false},
		{"an unreadable book", "/orderbook", `{"bids":[{"price":"many","size":1}],"asks":[]}`, map[int]string{
			6: "book: 0 of 1; error: UPSTREAM_BAD_RESPONSE: .*", 18: "report: .*: differences from the known forms: orderbook: .*",
		}, len(complete), true},
		{"a price history with an unreadable row", "/price-history", `{"history":[{"timestamp":"never","price":0.5}]}`, map[int]string{
			7: "price history: nothing; error: UPSTREAM_BAD_RESPONSE: .*; unreadable: bad row", 18: "report: .*: differences from the known forms: price-history: bad row .1.",
		}, len(complete), true},
		{"spreads are missing, and are read from books", "/spreads", `[]`, map[int]string{
			5: "spreads: \\d+ of \\d+", 17: "settings for --venue-table: market-ids:ids,market-tokens:tokenIds,search-options:yes,max-url:2048",
		}, len(complete), false},
		{"control characters in an error", "/prices", "{\"success\":false,\"error\":\"\\u001b[2Jclean\\nscreen\"}", map[int]string{
			4: "prices: 0 of \\d+; error: .* \\[2Jclean screen.*", 17: "settings for --venue-table: market-ids:ids,market-tokens:tokenIds,spreads:tokenIds,search-options:yes",
		}, len(complete), true},
		{"no search", "/market-search", `{"success":false,"error":"no such endpoint","code":"NOT_FOUND"}`, map[int]string{
			0: "search: nothing; error: .*", 1: "everything else: not requested: the search found no open market with tokens", 2: "accounts: .*",
			3: "settings for --venue-table: error: .*", 4: "report: .*: no difference from the known forms",
		}, 5, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // each listens to the stream for the whole timeout
			v := demo.New(demo.Config{Markets: 50})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.path != "" && strings.HasSuffix(r.URL.Path, test.path) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, test.body)
					return
				}
				v.ServeHTTP(w, r)
			}))
			defer server.Close()
			defer v.Close()
			var out bytes.Buffer
			err := run(t.Context(), []string{
				"config", "check", "--ask", "--venue-timeout=5s", "--venue-url=" + server.URL, "--stream-url=ws" + strings.TrimPrefix(server.URL, "http") + demo.StreamPath,
			}, nil, &out, io.Discard)
			if (err != nil) != test.fails {
				t.Errorf("got the error %v, want an error: %t", err, test.fails)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")[1:] // the first line is about the configuration
			if len(lines) != test.lines {
				t.Fatalf("%d lines, want %d:\n%s", len(lines), test.lines, &out)
			}
			for i, line := range lines {
				want := complete[i]
				if changed, ok := test.change[i]; ok {
					want = changed
				}
				if !regexp.MustCompile("^" + want + "$").MatchString(line) {
					t.Errorf("got %q, want %q", line, want)
				}
			}
		})
	}
}

func TestConfigCheckAsksNoDemo(t *testing.T) {
	err := run(t.Context(), []string{"config", "check", "--ask"}, nil, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--venue-url") {
		t.Errorf("got the error %v, want an error that names --venue-url", err)
	}
}

// TestConfigCheckAsksDriver checks that config check --ask prints the reason for each kind of data that the driver does not serve.
// The command still succeeds.
func TestConfigCheckAsksDriver(t *testing.T) {
	v := polymarket.New(demo.Config{Markets: 50})
	server := httptest.NewServer(v)
	defer server.Close()
	var out bytes.Buffer
	err := run(t.Context(), []string{"config", "check", "--ask", "--venue-driver=polymarket", "--venue-url=" + server.URL,
		"--stream-url=ws" + strings.TrimPrefix(server.URL, "http") + "/ws/market", "--venue-timeout=2s"}, nil, &out, io.Discard)
	for _, line := range []string{"orders: unsupported: UNSUPPORTED: Polymarket .*", "book: 1 of 1", "public trades: \\d+ trades", "events: \\d+ events", "event by id: \\d+ markets", "categories: \\d+ categories", "v1 market: .*, details 1 of 1, .*", "resolved market: .*", "settings for --venue-table: none: .*", "report: .*, driver polymarket, .*", "cash: unsupported: UNSUPPORTED: .* blockchain.*",
		"stream of market: answered, \\d+ messages", "stream of prices: answered, \\d+ messages", "stream of orderbook: answered, \\d+ messages", "stream of trades: answered, \\d+ messages"} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(out.String()) {
			t.Errorf("no line %q in\n%s", line, &out)
		}
	}
	if err != nil {
		t.Errorf("the command failed with %v and printed\n%s", err, &out)
	}
}

// TestConfigCheckAsksRedis checks that config check --ask fails if the Redis of --shared-url cannot be used, and still asks the venue.
func TestConfigCheckAsksRedis(t *testing.T) {
	v := demo.New(demo.Config{Markets: 50})
	defer v.Close()
	server := httptest.NewServer(v)
	defer server.Close()
	var out, log bytes.Buffer
	err := run(t.Context(), []string{"config", "check", "--ask", "--venue-url=" + server.URL, "--shared-url=redis://u:hunter2@127.0.0.1:1"}, nil, &out, &log)
	if err == nil || !strings.Contains(err.Error(), "--shared-url") || !strings.Contains(out.String(), "\nRedis: error: no connection to Redis\nsearch: 5 markets\n") {
		t.Errorf("got the error %v and the output\n%s", err, &out)
	}
	if log.Len() > 0 || strings.Contains(out.String()+err.Error(), "hunter2") {
		t.Errorf("got the log %s, or the password in the output\n%s", &log, &out)
	}
}

// accountsFile is an accounts file that maps bearer tokens to demo accounts.
type accountsFile struct{ path string }

func newAccountsFile(t testing.TB) accountsFile {
	t.Helper()
	f := accountsFile{filepath.Join(t.TempDir(), "accounts.json")}
	f.write(t, map[string]string{"token-of-3": "demo-3", "token-of-50": "demo-50", "token-of-nobody": "no such key"})
	return f
}

// write replaces the file. The map keys contains an API key of the demo venue for each bearer token.
func (f accountsFile) write(t testing.TB, keys map[string]string) {
	t.Helper()
	addresses := map[string]string{"demo-3": addressOf3, "demo-50": addressOf50, "no such key": addressOf3}
	list := []any{}
	for token, key := range keys {
		list = append(list, map[string]any{
			"tokenSha256": hashOf(token), "address": addresses[key],
			"credentials": map[string]string{"apiKey": key, "secret": "demo", "passphrase": "demo"},
		})
	}
	next := write(t, filepath.Dir(f.path), "next.json", asJSON(vars{"version": 1, "accounts": list}))
	if err := os.Rename(next, f.path); err != nil {
		t.Fatal(err)
	}
}

// bearer executes a query with a bearer token.
func (s *service) bearer(t testing.TB, token, query string) response {
	t.Helper()
	r := s.request(t, asJSON(vars{"query": query}), anonymous)
	r.Header.Set("Authorization", "Bearer "+token)
	return s.do(t, r)
}

const viewerQuery = `{ viewer { address positions { totalCount } } }`

// TestServeRefusesBadFiles checks that the command "serve" returns an error if a file is missing or invalid, or if a trusted proxy
// is invalid.
func TestServeRefusesBadFiles(t *testing.T) {
	dir := t.TempDir()
	manifest := write(t, dir, "manifest.json", `{"trusted-1":"{ nope }"}`)
	for want, args := range map[string][]string{
		"ODDSGRAPH_ACCOUNTS_FILE":   {"--accounts-file=" + filepath.Join(dir, "none.json")},
		"trusted-1":                 {"--documents-trusted=require", "--documents-manifest=" + manifest},
		"ODDSGRAPH_TRUSTED_PROXIES": {"--trusted-proxies=10.0.0.1/8"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience) // ends the program if it accepts the arguments
		err := run(ctx, append(args, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0"), nil, nil, &logBuffer{})
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("arguments %v: got the error %v, want an error with %s", args, err, want)
		}
	}
}
