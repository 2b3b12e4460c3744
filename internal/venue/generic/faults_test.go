package generic

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// startDemo starts a demo venue with a clock that does not advance, behind a proxy. It returns the proxy, its URL, and the reads to
// test.
func startDemo(t *testing.T) (*faults.Proxy, string, []read) {
	t.Helper()
	v := demo.New(demo.Config{Markets: 40, Clock: tool.NewClock(time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC))})
	proxy := faults.New(v)
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	tokens, day := v.Tokens(), date(t, "2026-03-14")
	return proxy, s.URL, readsFor([]string{tokens[0].TokenID, tokens[1].TokenID, tokens[2].TokenID}, tokens[0].MarketID, tokens[0].Slug, day, day)
}

// TestDemoFaults checks what each read returns during a fault of the demo venue, and that the next read succeeds.
func TestDemoFaults(t *testing.T) {
	proxy, url, all := startDemo(t)
	user := withCredentials(t, `{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`)
	truth := make([]string, len(all))
	for i, r := range all {
		text, left, err := r.text(t.Context(), user, newClient(t, url))
		if err != nil || left != nil || text == "" || strings.Contains(text, "absent") {
			t.Fatalf("without a fault, the read of %s returned %q, left out %v and the error %v", r.name, text, left, err)
		}
		truth[i] = text
	}
	for _, tt := range []struct {
		name  string
		fault faults.Fault
		// code is the expected error code. An empty code means that the read succeeds. The code "half" means that the fault breaks
		// every second row.
		code market.Code
	}{
		{"429", faults.Fault{Kind: faults.Status, Status: 429, RetryAfter: "7"}, market.CodeRateLimited},
		{"429 as HTML", faults.Fault{Kind: faults.Status, Status: 429, Body: tool.HTML}, market.CodeRateLimited},
		{"500", faults.Fault{Kind: faults.Status}, market.CodeUpstreamUnavailable},
		{"an empty 503", faults.Fault{Answer: tool.Empty(503)}, market.CodeUpstreamUnavailable},
		{"504", faults.Fault{Kind: faults.Status, Status: 504}, market.CodeUpstreamTimeout},
		{"HTML", faults.Fault{Kind: faults.Status, Status: 200, Body: tool.HTML}, market.CodeUpstreamBadResponse},
		{"an empty body", faults.Fault{Answer: tool.Empty(200)}, market.CodeUpstreamBadResponse},
		{"truncated", faults.Fault{Kind: faults.Truncate}, market.CodeUpstreamBadResponse},
		{"wrong types", faults.Fault{Kind: faults.JSON}, market.CodeUpstreamBadResponse},
		{"missing fields", faults.Fault{Answer: tool.MissingFields}, market.CodeUpstreamBadResponse},
		{"unknown fields", faults.Fault{Answer: tool.UnknownFields}, ""},
		{"text", faults.Fault{Answer: tool.Texts}, ""},
		{"nested", faults.Fault{Answer: tool.Nested}, ""},
		{"half broken", faults.Fault{Answer: tool.HalfBroken}, "half"},
		{"success false", faults.Fault{Kind: faults.Status, Status: 200, Body: tool.Failure}, market.CodeUpstreamUnavailable},
		{"only an error", faults.Fault{Kind: faults.Status, Status: 200, Body: `{"error":"the venue is not available"}`}, market.CodeUpstreamUnavailable},
		{"delay", faults.Fault{Kind: faults.Delay, DelayMs: 1}, ""},
		{"hang", faults.Fault{Kind: faults.Delay}, market.CodeUpstreamTimeout},
		{"drip", faults.Fault{Kind: faults.Drip, DelayMs: 60_000}, market.CodeUpstreamTimeout},
		{"hang in the body", faults.Fault{Answer: tool.HangBody}, market.CodeUpstreamTimeout},
		{"reset", faults.Fault{Kind: faults.Reset}, market.CodeUpstreamUnavailable},
		{"refuse", faults.Fault{Kind: faults.Refuse}, market.CodeUpstreamUnavailable},
		{"large", faults.Fault{Answer: tool.Large}, market.CodeUpstreamBadResponse},
		{"gzip bomb", faults.Fault{Answer: tool.GzipBomb}, market.CodeUpstreamBadResponse},
		{"large header", faults.Fault{Answer: tool.LargeHeader(128 << 10)}, market.CodeUpstreamUnavailable},
		{"redirect", faults.Fault{Answer: tool.Redirect(302, "http://elsewhere.invalid/")}, market.CodeUpstreamBadResponse},
		{"unknown list", faults.Fault{Answer: refuseLists}, ""},
	} {
		for i, r := range all {
			t.Run(tt.name+r.path(), func(t *testing.T) {
				clock := tool.NewClock(time.Now())
				c := newClient(t, url, func(cfg *Config) {
					cfg.Clock, cfg.MaxBody = clock, 1<<20
					if tt.name == "unknown list" {
						undecided(cfg)
					}
					if tt.code == market.CodeUpstreamTimeout {
						cfg.Timeout = 100 * time.Millisecond
					}
				})
				tt.fault.Path = r.path()
				must(t, proxy.Set([]faults.Fault{tt.fault}))
				text, left, err := r.text(t.Context(), user, c)
				switch want := tt.code; want {
				case "":
					if assertEqual(t, text, truth[i]); err != nil || left != nil {
						t.Errorf("got the error %v and left out %v, want neither", err, left)
					}
				case "half":
					checkHalfBroken(t, r.name, text, truth[i], left, err)
				default:
					if r.name == "spreads" && want != market.CodeRateLimited { // the client takes the spreads from books
						assertEqual(t, text, strings.ReplaceAll(truth[i], "\n", fromBook+"\n")+fromBook)
						must(t, err)
						break
					}
					for line := range strings.SplitSeq(text, "\n") { // the error belongs either to each id or to the whole read
						if line != "" && line != string(want) {
							t.Errorf("a line of the result is %s, want %s", line, want)
						}
					}
					if got := market.CodeOf(err); got != want && !(got == "" && text != "") {
						t.Errorf("got the error %v, want %s", err, want)
					}
				}
				must(t, proxy.Set(nil))
				clock.Advance(wire.MaxWait)
				if text, left, err := r.text(t.Context(), user, c); text != truth[i] || left != nil || err != nil {
					t.Errorf("after the fault, the read returned %s, left out %v and the error %v", text, left, err)
				}
			})
		}
	}
}

// refuseLists simulates a venue without some query parameters: ids and tokenIds of market-details, and tokenIds of spreads.
func refuseLists(w http.ResponseWriter, r *http.Request, a *faults.Answer) {
	q := r.URL.Query()
	if path.Base(r.URL.Path) == "market-details" && (q.Has("ids") || q.Has("tokenIds")) || path.Base(r.URL.Path) == "spreads" && q.Has("tokenIds") {
		a.Status, a.Body = http.StatusBadRequest, []byte(`{"success":false,"error":"unknown parameter","code":"BAD_REQUEST"}`)
	}
	a.Send(w)
}

// checkHalfBroken checks the result of a read if every second row of the response is broken. The client must return the values of
// the good rows and report the bad rows. For some endpoints, one bad row must make the whole read fail.
func checkHalfBroken(t *testing.T, endpoint, text, truth string, left market.LeftOut, err error) {
	t.Helper()
	switch endpoint {
	case "balance": // the response has no list, so no row is broken
		assertEqual(t, text, truth)
		return
	case "spreads":
		if must(t, err); strings.ReplaceAll(text, fromBook, "") != truth || !strings.Contains(text, fromBook) {
			t.Errorf("the spreads are %s, want one from a book", text)
		}
		return
	case "orderbook", "market-details", "positions", "orders": // one bad row makes the read fail
		if market.CodeOf(err) != market.CodeUpstreamBadResponse && text != truth { // a list of one row has no broken row
			t.Errorf("got %s and the error %v, want %s", text, err, market.CodeUpstreamBadResponse)
		}
		return
	}
	must(t, err)
	reported := len(left)
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == string(market.CodeUpstreamBadResponse):
			reported++
		case !strings.Contains(truth, line):
			t.Errorf("the line %s is not a line of the result without the fault", line)
		}
	}
	if reported == 0 || text == truth {
		t.Errorf("the client reported no bad row:\n%s", text)
	}
}
