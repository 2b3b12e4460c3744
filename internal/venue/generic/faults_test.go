package generic

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// startDemo starts a demo venue with a clock that does not advance. It returns the venue, the venue's URL, and the reads to test.
func startDemo(t *testing.T) (*demo.Venue, string, []read) {
	t.Helper()
	v := demo.New(demo.Config{Markets: 40, Clock: tool.NewClock(time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC))})
	s := httptest.NewServer(v)
	t.Cleanup(s.Close)
	tokens, day := v.Tokens(), date(t, "2026-03-14")
	return v, s.URL, readsFor([]string{tokens[0].TokenID, tokens[1].TokenID, tokens[2].TokenID}, tokens[0].MarketID, tokens[0].Slug, day, day)
}

// TestDemoFaults checks what each read returns during a fault of the demo venue, and that the next read succeeds.
func TestDemoFaults(t *testing.T) {
	v, url, all := startDemo(t)
	ctx := withCredentials(t, `{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`)
	truth := make([]string, len(all))
	for i, r := range all {
		text, left, err := r.text(ctx, newClient(t, url))
		if err != nil || left != nil || text == "" || strings.Contains(text, "absent") {
			t.Fatalf("without a fault, the read of %s returned %q, left out %v and the error %v", r.name, text, left, err)
		}
		truth[i] = text
	}
	for _, tt := range []struct {
		fault demo.Fault
		// code is the expected error code. An empty code means that the read succeeds. The code "half" means that the fault breaks
		// every second row.
		code market.Code
	}{
		{demo.Fault{Kind: demo.FaultStatus, Status: 429, RetryAfter: "7"}, market.CodeRateLimited},
		{demo.Fault{Kind: demo.FaultStatus, Status: 429, Body: "html"}, market.CodeRateLimited},
		{demo.Fault{Kind: demo.FaultStatus, Status: 500}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultStatus, Status: 503, Body: "empty"}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultStatus, Status: 504}, market.CodeUpstreamTimeout},
		{demo.Fault{Kind: demo.FaultHTML}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultEmpty}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultTruncated}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultWrongTypes}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultMissingFields}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultUnknownFields}, ""},
		{demo.Fault{Kind: demo.FaultText}, ""},
		{demo.Fault{Kind: demo.FaultNested}, ""},
		{demo.Fault{Kind: demo.FaultHalfBroken}, "half"},
		{demo.Fault{Kind: demo.FaultSuccessFalse}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultErrorOnly}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultDelay, DelayMs: 1}, ""},
		{demo.Fault{Kind: demo.FaultHang}, market.CodeUpstreamTimeout},
		{demo.Fault{Kind: demo.FaultDrip, DelayMs: 60_000}, market.CodeUpstreamTimeout},
		{demo.Fault{Kind: demo.FaultHangBody}, market.CodeUpstreamTimeout},
		{demo.Fault{Kind: demo.FaultReset}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultRefused}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultLarge}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultGzipBomb}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultLargeHeader, Bytes: 128 << 10}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultRedirect}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultUnknownList}, ""},
	} {
		for i, r := range all {
			t.Run(fmt.Sprintf("%s %d%s%s", tt.fault.Kind, tt.fault.Status, tt.fault.Body, r.path()), func(t *testing.T) {
				clock := tool.NewClock(time.Now())
				c := newClient(t, url, func(cfg *Config) {
					cfg.Clock, cfg.MaxBody = clock, 1<<20
					if tt.fault.Kind == demo.FaultUnknownList {
						undecided(cfg)
					}
					if tt.code == market.CodeUpstreamTimeout {
						cfg.Timeout = 100 * time.Millisecond
					}
				})
				tt.fault.Path = r.path()
				must(t, v.SetFaults([]demo.Fault{tt.fault}))
				text, left, err := r.text(ctx, c)
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
				must(t, v.SetFaults(nil))
				clock.Advance(wire.MaxWait)
				if text, left, err := r.text(ctx, c); text != truth[i] || left != nil || err != nil {
					t.Errorf("after the fault, the read returned %s, left out %v and the error %v", text, left, err)
				}
			})
		}
	}
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
