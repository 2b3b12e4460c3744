package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/polymarket"
)

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
	err := run(t.Context(), []string{"config", "check", "--ask", "--venue-driver=polymarket", "--venue-url=" + server.URL}, nil, &out, io.Discard)
	for _, line := range []string{"orders: unsupported: UNSUPPORTED: Polymarket .*", "book: 1 of 1", "public trades: \\d+ trades", "events: \\d+ events", "event by id: \\d+ markets", "categories: \\d+ categories", "v1 market: .*, details 1 of 1, .*", "resolved market: .*", "settings for --venue-table: none: .*", "report: .*, driver polymarket, .*", "cash: unsupported: UNSUPPORTED: .* blockchain.*"} {
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
