package config_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/config"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

func parse(t *testing.T, args string, environ ...string) *config.Config {
	t.Helper()
	c, err := config.Parse(strings.Fields(args), environ, io.Discard)
	if err != nil {
		t.Fatalf("Parse(%q, %q) failed: %v", args, environ, err)
	}
	return c
}

// problems returns the lines of Parse's error.
func problems(t *testing.T, args string, environ ...string) []string {
	t.Helper()
	c, err := config.Parse(strings.Fields(args), environ, io.Discard)
	if err == nil {
		t.Fatalf("Parse(%q, %q) succeeded: %v", args, environ, c)
	}
	return strings.Split(err.Error(), "\n")
}

func TestDefaults(t *testing.T) {
	want := config.Config{
		Command:         config.CommandServe,
		Listen:          "127.0.0.1:8080",
		AdminListen:     "127.0.0.1:9091",
		RequestTimeout:  30 * time.Second,
		MaxBody:         256 << 10,
		MaxResponse:     8 << 20,
		MaxOperations:   512,
		MaxConnections:  3000,
		ShutdownTimeout: 15 * time.Second,
		Introspection:   true,
		Suggestions:     true,
		Explain:         "auto",
		Documents:       config.Documents{Automatic: 8 << 20, Trusted: "off"},
		Limit:           config.Limit{Depth: 20, Cost: 100_000, Calls: 200},
		JWT:             config.JWT{AccountClaim: "sub"},
		Client:          config.Client{Sockets: 2000, Connections: 1000, Operations: 9000},
		Log:             config.Log{Level: slog.LevelInfo, Format: "text"},
		Venue:           config.Venue{Driver: "generic", Credentials: "auto", Timeout: 10 * time.Second, Batch: 100, PublicPerMinute: 100, KeyPerMinute: 300},
		StreamTopics:    2000,
		Shared:          config.Shared{Replicas: 5, Timeout: 25 * time.Millisecond},
		Cache: config.Cache{
			Price: config.Expiry{Fresh: time.Second}, Book: config.Expiry{Fresh: 500 * time.Millisecond}, Spread: config.Expiry{Fresh: time.Second},
			Market: config.Expiry{Fresh: time.Minute}, Search: config.Expiry{Fresh: 15 * time.Second}, History: config.Expiry{Fresh: time.Minute},
			User:    config.Expiry{Fresh: 2 * time.Second},
			Stretch: 15 * time.Minute,

			Memory:    config.AutoBytes,
			Responses: config.AutoBytes,
		},
		Demo: config.Demo{Driver: "generic", Drivers: config.List{"generic"}, Listen: "127.0.0.1:0", Markets: 1200, Seed: 1, Stream: true},
	}
	if got := parse(t, ""); !reflect.DeepEqual(*got, want) {
		t.Errorf("defaults are\n%v\nwant\n%v", got, want)
	}
	if got := config.Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("Default() is\n%v\nwant\n%v", got, want)
	}
}

func TestCommands(t *testing.T) {
	for args, want := range map[string]config.Command{
		"":                                config.CommandServe,
		"--listen=:80":                    config.CommandServe,
		"serve --listen=:80":              config.CommandServe,
		"venue --demo-markets=10":         config.CommandVenue,
		"--demo-markets=10 venue":         config.CommandVenue,
		"schema":                          config.CommandSchema,
		"version":                         config.CommandVersion,
		"licenses":                        config.CommandLicenses,
		"healthcheck --listen=[::1]:8080": config.CommandHealthcheck,
		"config check --venue-batch=10":   config.CommandConfigCheck,
		"config check --ask":              config.CommandConfigCheck,
		"schema --semantic":               config.CommandSchema,
		"questions propose":               config.CommandPropose,
		"questions check f --accept=q":    config.CommandQuestions,
		"questions check --venue-batch=7": config.CommandQuestions,
		"--venue-batch=10 config show":    config.CommandConfigShow,
	} {
		got := parse(t, args)
		if got.Command != want || got.Ask != strings.Contains(args, "--ask") || got.Semantic != strings.Contains(args, "--semantic") {
			t.Errorf("%q is the command %q, with --ask %t and --semantic %t, want %q", args, got.Command, got.Ask, got.Semantic, want)
		}
	}
	if got := parse(t, "questions check f --accept=q --questions-file=g"); got.QuestionsFile != "f" || got.Accept != "q" {
		t.Errorf("got the file %q and --accept=%q", got.QuestionsFile, got.Accept)
	}
}

// TestEveryFlagAndVariable checks that each flag and its variable set the same value.
func TestEveryFlagAndVariable(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(config.Default().String()), "\n")
	if len(lines) < 40 || len(lines) > 77 {
		t.Fatalf("got %d settings, want from 40 to 77: %v", len(lines), lines)
	}
	values := map[string]string{"ODDSGRAPH_CONFIG": configFile(t, "")}
	for _, candidate := range []string{"7", "77", "7s", "7KiB", "7MiB", "false", "true", "header", "polymarket", "json", "warn", "allow", "on", "127.0.0.1:7", "http://venue:7/a", "ws://venue:7/a", "redis://redis:7/7", "70ms", "http://page:7,*", "10.0.0.7,fd00::/8", "spreads,orders", "market-ids:none,spreads:books"} {
		// environ sets each variable without a valid value to the candidate. The error then names the variables that reject the
		// candidate.
		var environ []string
		for _, line := range lines {
			if name, _, _ := strings.Cut(line, "="); values[name] == "" {
				environ = append(environ, name+"="+candidate)
			}
		}
		_, err := config.Parse(nil, environ, io.Discard)
		for _, line := range lines {
			if name, old, _ := strings.Cut(line, "="); values[name] == "" && candidate != old && !strings.Contains(fmt.Sprint(err), name+" (") {
				values[name] = candidate
			}
		}
	}
	var flags, variables []string
	defaults := config.Default()
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "=")
		value := values[name]
		if value == "" {
			t.Errorf("no candidate is a valid value of %s", name)
			continue
		}
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "ODDSGRAPH_"), "_", "-"))
		flags, variables = append(flags, flag+"="+value), append(variables, name+"="+value)
		byFlag := parse(t, flag+"="+value)
		if !strings.Contains(byFlag.String(), name+"="+value+"\n") {
			t.Errorf("%s=%s does not set %s", flag, value, name)
		}
		if differ := byFlag.Differences(defaults); len(differ) != 1 || "--"+differ[0] != flag {
			t.Errorf("%s=%s changes the flags %v, want only its own flag", flag, value, differ)
		}
		if changed := strings.Count(byFlag.LogValue().String(), "="); changed != 1 {
			t.Errorf("%s=%s: LogValue has %d values, want 1: %v", flag, value, changed, byFlag.LogValue())
		}
	}
	if differ := parse(t, strings.Join(flags, " ")).Differences(*parse(t, "", variables...)); len(differ) > 0 {
		t.Errorf("the flags and the variables set different values for %v", differ)
	}
}

func TestPrecedence(t *testing.T) {
	t.Setenv("ODDSGRAPH_VENUE_BATCH", "40") // Parse does not read the environment of the process
	for _, test := range []struct {
		args    string
		environ []string
		want    int
	}{
		{"", []string{"ODDSGRAPH_VENUE_BATCH=20"}, 20},
		{"--venue-batch 30", []string{"ODDSGRAPH_VENUE_BATCH=20"}, 30},
		{"--venue-batch=30", []string{"ODDSGRAPH_VENUE_BATCH=nonsense"}, 30},
		{"", []string{"ODDSGRAPH_VENUE_BATCH="}, 100},
		{"", []string{"ODDSGRAPH_VENUE_BATCH=20", "ODDSGRAPH_VENUE_BATCH=21"}, 20},
		{"", nil, 100},
	} {
		if got := parse(t, test.args, test.environ...).Venue.Batch; got != test.want {
			t.Errorf("arguments %q, environment %q: got Venue.Batch %d, want %d", test.args, test.environ, got, test.want)
		}
	}
}

func TestBooleans(t *testing.T) {
	for args, want := range map[string]bool{"": false, "--demo-control": true, "--demo-control=true": true, "--demo-control=false": false, "--demo-control=1 venue": true} {
		if got := parse(t, args).Demo.Control; got != want {
			t.Errorf("arguments %q: got Demo.Control %v, want %v", args, got, want)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	got := problems(t, "--venue-batch=0 --venue-credentials cookie --lisen=:80 --cache-price-fresh=-1s",
		"ODDSGRAPH_VENUE_TIMEOUT=10", "ODDSGRAPH_MAX_BODY=1EiB", "ODDSGRAPH_VENU_URL=http://secret", "ODDSGRAPH_INTROSPECTION=maybe",
		"ODDSGRAPH_LISTEN=localhost", "ODDSGRAPH_LOG_LEVEL=loud", "HOME=/", "ODDSGRAPH_ASK=1", "ODDSGRAPH_ZZZ=1")
	want := []string{
		`--lisen is no flag; did you mean --listen?`,
		`--venue-batch (ODDSGRAPH_VENUE_BATCH): "0" is too small; want a number from 1 to 1000`,
		`--venue-credentials (ODDSGRAPH_VENUE_CREDENTIALS): "[not shown]" is not among the choices; want one of auto, query, header, none, public`,
		`--cache-price-fresh (ODDSGRAPH_CACHE_PRICE_FRESH): "-1s" is too small; want a duration with its unit (250ms, 1.5s, 2m) from 0s to 24h`,
		`ODDSGRAPH_LISTEN (--listen): "localhost" is not host:port; want a host and a port from 0 to 65535, such as 127.0.0.1:8080, [::1]:8080 or :8080`,
		`ODDSGRAPH_MAX_BODY (--max-body): "1EiB" cannot be read; want a size (65536, 64KiB, 8MiB) from 1KiB to 64MiB`,
		`ODDSGRAPH_INTROSPECTION (--introspection): "maybe" cannot be read; want true or false`,
		`ODDSGRAPH_LOG_LEVEL (--log-level): "loud" is not among the choices; want one of debug, info, warn, error`,
		`ODDSGRAPH_VENUE_TIMEOUT (--venue-timeout): "10" cannot be read; want a duration with its unit (250ms, 1.5s, 2m) from 1ms to 5m`,
		`ODDSGRAPH_VENU_URL is no variable of oddsgraph; did you mean ODDSGRAPH_VENUE_URL?`,
		`ODDSGRAPH_ASK is no variable of oddsgraph; see --help for all`,
		`ODDSGRAPH_ZZZ is no variable of oddsgraph; see --help for all`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBadValues(t *testing.T) {
	for _, test := range []struct{ flag, value, wrong string }{
		{"listen", "", "host:port"},
		{"listen", "127.0.0.1", "host:port"},
		{"listen", "127.0.0.1:http", "port"},
		{"listen", "127.0.0.1:65536", "port"},
		{"listen", "::1:8080", "host:port"},
		{"admin-listen", "none", "host:port"},
		{"admin-listen", "127.0.0.1:65536", "port"},
		{"venue-url", "venue.example", "scheme"},
		{"venue-url", "ws://venue.example", "scheme"},
		{"venue-url", "http://", "host"},
		{"venue-url", "http://:80", "host"},
		{"venue-url", "http://venue:0", "port"},
		{"venue-url", "http://venue:99999", "port"},
		{"venue-url", "http://u:p@venue", "user info"},
		{"venue-url", "http://venue/?", "query"},
		{"venue-url", "http://venue/?a=b", "query"},
		{"venue-url", "http://venue/#a", "fragment"},
		{"venue-url", "http://ve nue", "URL"},
		{"stream-url", "https://venue.example/ws", "scheme"},
		{"stream-url", "wss:///ws", "host"},
		{"shared-url", "http://redis", "scheme"},
		{"shared-url", "redis://", "host"},
		{"shared-url", "unix://", "socket"},
		{"shared-url", "unix:///run/redis.sock#a", "fragment"},
		{"shared-timeout", "2s", "large"},
		{"venue-batch", "1001", "large"},
		{"venue-batch", "4.5", "read"},
		{"venue-batch", "", "read"},
		{"client-operations", "0", "small"},
		{"venue-timeout", "0s", "small"},
		{"max-body", "8 mib", "read"},
		{"max-body", "-1", "read"},
		{"max-body", "9223372036854775807GiB", "read"},
		{"max-body", "1", "small"},
		{"max-body", "1GiB", "large"},
		{"cache-user-fresh", "25h", "large"},
		{"cache-stretch", "-1ns", "small"},
		{"demo-markets", "0", "small"},
		{"demo-seed", "-1", "small"},
		{"venue-currency", "usd", "characters"},
		{"venue-currency", "$", "short"},
		{"venue-currency", "ABCDEFGHIJKLM", "long"},
		{"log-format", "JSON", "choices"},
		{"demo-without", "spreads,fame", "choices"},
		{"log-level", "INFO", "choices"},
		{"introspection", "si", "read"},
	} {
		_, err := config.Parse([]string{"--" + test.flag + "=" + test.value}, nil, io.Discard)
		if err == nil {
			t.Errorf("--%s=%s was accepted", test.flag, test.value)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		if len(got) != 1 || !strings.HasPrefix(got[0], "--"+test.flag+" (ODDSGRAPH_") || !strings.Contains(got[0], test.wrong) || !strings.Contains(got[0], "; want ") {
			t.Errorf("--%s=%s: got the problems %q, want one problem that contains %q and describes valid values", test.flag, test.value, got, test.wrong)
		}
	}
}

func TestGoodValues(t *testing.T) {
	for _, args := range []string{
		"--listen=:0", "--listen=[::1]:80", "--listen=example.org:65535",
		"--admin-listen=:0", "--admin-listen=off", "--admin-listen=",
		"--venue-currency=", "--venue-currency=USDC", "--venue-url=", "--venue-url=https://venue.example", "--venue-url=http://[::1]:8080/a/b/",
		"--stream-url=ws://venue/ws", "--stream-url=wss://u:p@venue:443/ws?key=a",
		"--shared-url=rediss://u:p@redis:6380/2", "--shared-url=unix://u:p@/run/redis.sock", "--shared-url=redis://s:26379?addr=t:26379&master_set=odds",
		"--cache-price-fresh=0s", "--shutdown-timeout=0s", "--demo-seed=9223372036854775807",
	} {
		parse(t, args)
	}
	for text, want := range map[string]config.Bytes{"1024": 1024, "64KiB": 1 << 16, "1MB": 1e6, "2MiB": 2 << 20, "2048B": 2048, "50kB": 50_000} {
		if got := parse(t, "--max-body="+text).MaxBody; got != want {
			t.Errorf("--max-body=%s: got %d bytes, want %d", text, got, want)
		}
	}
	for b, want := range map[config.Bytes]string{0: "0", 1: "1", 1536: "1536", 1 << 10: "1KiB", 3 << 20: "3MiB", 1 << 30: "1GiB"} {
		if b.String() != want {
			t.Errorf("%d prints as %s, want %s", int64(b), b, want)
		}
	}
}

func TestLists(t *testing.T) {
	c := parse(t, "", "ODDSGRAPH_ORIGINS= https://a.example ,,http://b.example:81", "ODDSGRAPH_TRUSTED_PROXIES=10.0.0.0/8,::1", "ODDSGRAPH_CORS_HEADERS=X-B3-TraceId,x_own.header,*")
	if want := (config.List{"https://a.example", "http://b.example:81"}); !reflect.DeepEqual(c.Origins, want) {
		t.Errorf("the origins are %q, want %q", c.Origins, want)
	}
	if want := (config.List{"10.0.0.0/8", "::1"}); !reflect.DeepEqual(c.TrustedProxies, want) {
		t.Errorf("the proxies are %q, want %q", c.TrustedProxies, want)
	}
	if want := (config.List{"X-B3-TraceId", "x_own.header", "*"}); !reflect.DeepEqual(c.CORSHeaders, want) {
		t.Errorf("the headers are %q, want %q", c.CORSHeaders, want)
	}
	for _, bad := range []string{
		"cors-headers=a:b", "cors-headers=a@b", "cors-headers=ä",
		"origins=a.example", "origins=https://a.example/", "origins=https://a.example/path", "origins=https://u@a.example", "origins=https://a.example?b",
		"origins=https://*.a.example", "origins=null", "origins=https://a.example,ftp://b.example",
		"trusted-proxies=proxy", "trusted-proxies=10.0.0.0/33", "trusted-proxies=0.0.0.0/0", "trusted-proxies=10.0.0.1,::/0",
	} {
		if got := problems(t, "--"+bad); len(got) != 1 || !strings.Contains(got[0], "such as") {
			t.Errorf("%s gives %q, want one problem with an example", bad, got)
		}
	}
}

func TestStructuralErrors(t *testing.T) {
	for args, want := range map[string]string{
		"nonsense":                      "nonsense",
		"config":                        "check",
		"config nonsense":               "nonsense",
		"serve nonsense":                "nonsense",
		"--listen":                      "--listen",
		"--listen --demo-control":       "--listen",
		"--no-such thing serve":         "--no-such",
		"--no-such serve":               "--no-such",
		"-x":                            "-x",
		"--ask config check":            "--ask",
		"serve --semantic":              "--semantic",
		"config check --ask=x":          "--ask: ",
		"healthcheck --admin-listen=:0": "--admin-listen",
		"healthcheck --listen=[::1]:0 --admin-listen=off": "--listen",
	} {
		got := problems(t, args)
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q gives %q, want one problem with %s", args, got, want)
		}
	}
	// A wrong command does not hide the errors of flags and variables.
	if got := problems(t, "nonsense --venue-batch=0", "ODDSGRAPH_VENUE_TIMEOUT=x", "ODDSGRAPH_NO=1"); len(got) < 3 {
		t.Errorf("got the problems %q, want also the problems of the environment", got)
	}
}

func TestCommandsWithoutConfiguration(t *testing.T) {
	for _, command := range []string{"schema", "version", "licenses"} {
		parse(t, command, "ODDSGRAPH_LISTEN=broken", "ODDSGRAPH_UNKNOWN=1")
	}
	for _, command := range []string{"serve", "venue", "healthcheck", "config check", "config show"} {
		if got := problems(t, command, "ODDSGRAPH_LISTEN=broken", "ODDSGRAPH_UNKNOWN=1"); len(got) != 2 {
			t.Errorf("%s: got the problems %q, want two", command, got)
		}
	}
}

// TestPlatformVariables checks that Parse ignores the variables that Kubernetes and Docker set for a service called oddsgraph.
func TestPlatformVariables(t *testing.T) {
	parse(t, "",
		"ODDSGRAPH_SERVICE_HOST=10.0.0.1", "ODDSGRAPH_SERVICE_PORT=8080", "ODDSGRAPH_SERVICE_PORT_HTTP=8080", "ODDSGRAPH_PORT=tcp://10.0.0.1:8080",
		"ODDSGRAPH_PORT_8080_TCP=tcp://10.0.0.1:8080", "ODDSGRAPH_PORT_8080_TCP_PROTO=tcp", "ODDSGRAPH_PORT_8080_TCP_PORT=8080",
		"ODDSGRAPH_PORT_8080_TCP_ADDR=10.0.0.1", "ODDSGRAPH_DEMO_SERVICE_HOST=10.0.0.2")
	for _, name := range []string{"ODDSGRAPH_PORT=8080", "ODDSGRAPH_HOST=a", "ODDSGRAPH_PORT_80=1"} {
		if got := problems(t, "", name); len(got) != 1 {
			t.Errorf("%s gives %q, want one problem", name, got)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"--help", "venue --help", "--help --nonsense", "--venue-batch=0 --help"} {
		var out bytes.Buffer
		c, err := config.Parse(strings.Fields(args), []string{"ODDSGRAPH_LISTEN=broken"}, &out)
		if c != nil || !errors.Is(err, config.ErrHelp) {
			t.Errorf("Parse(%q): got %v and error %v, want ErrHelp", args, c, err)
		}
		for _, want := range []string{"oddsgraph", "--venue-url", "$ODDSGRAPH_CACHE_USER_FRESH"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the help of %q lacks %s:\n%s", args, want, out.String())
			}
		}
	}
}

func TestRedaction(t *testing.T) {
	const secret = "hunter2"
	c := parse(t, "--venue-url=http://venue --stream-url=wss://"+secret+"@venue.example/ws?key="+secret+" --shared-url=redis://user:"+secret+"@redis.example/1")
	c.Venue.URL = "https://user:" + secret + "@venue.example/base?key=" + secret // set after Parse, because Parse rejects such a URL
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("starting", "config", c)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("starting", "config", *c)
	for name, text := range map[string]string{
		"String": c.String(), "%v": fmt.Sprint(c), "%+v": fmt.Sprintf("%+v", *c), "%#v": fmt.Sprintf("%#v %#v", c, *c), "slog": logged.String(),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the secret:\n%s", name, text)
		}
		if !strings.Contains(text, "https://venue.example/base") || !strings.Contains(text, "wss://venue.example/ws") || !strings.Contains(text, "redis://redis.example/1") {
			t.Errorf("%s also hides parts of the URLs that are not secret:\n%s", name, text)
		}
	}
	for _, bad := range []string{"--venue-credentials=" + secret, "--venue-url=ftp://user:" + secret + "@venue", "--venue-url=http://u:" + secret + "@ve%nue", "--venue-url=http://venue/?key=" + secret, "--stream-url=user:" + secret, "--shared-url=http://user:" + secret + "@redis", "--stream-url=" + "%zz" + secret} {
		if got := problems(t, bad); strings.Contains(got[0], secret) {
			t.Errorf("the problem shows the secret: %s", got[0])
		}
	}
}

func TestHealthcheckURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080":  "http://127.0.0.1:8080/healthz",
		":8080":           "http://127.0.0.1:8080/healthz",
		"0.0.0.0:80":      "http://127.0.0.1:80/healthz",
		"[::]:80":         "http://[::1]:80/healthz",
		"[fe80::1]:80":    "http://[fe80::1]:80/healthz",
		"example.org:443": "http://example.org:443/healthz",
	} {
		for _, args := range []string{"--admin-listen=" + listen, "--admin-listen=off --listen=" + listen} {
			if got := parse(t, args).HealthcheckURL(); got != want {
				t.Errorf("the URL for %s is %s, want %s", args, got, want)
			}
		}
	}
}

// TestReference fails if docs/configuration.md is out of date. To rewrite the file, run go test ./internal/config -update.
func TestReference(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "configuration.md")
	var want bytes.Buffer
	if err := config.Reference(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is out of date: run make generate", path)
	}
}
