package generic

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// demoCall is a read of the demo venue. read returns the values as text, the errors of the rows that the client left out, and the
// error of the whole read.
type demoCall struct {
	path string
	read func(ctx context.Context, c *Client) (string, market.LeftOut, error)
}

// startDemo starts a demo venue with a clock that does not advance. It returns the venue, the venue's URL, and the calls to test.
func startDemo(t *testing.T) (*demo.Venue, string, []demoCall) {
	t.Helper()
	v := demo.New(demo.Config{Markets: 40, Clock: tool.NewClock(time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC))})
	s := httptest.NewServer(v)
	t.Cleanup(s.Close)
	tokens := v.Tokens()
	ids := []string{tokens[0].TokenID, tokens[1].TokenID, tokens[2].TokenID}
	marketID := tokens[0].MarketID
	byID := func(results []market.Result[*market.Market], err error) (string, market.LeftOut, error) {
		if err == nil {
			err = results[0].Err
		}
		return showResults(results, showMarket), nil, err
	}
	return v, s.URL, []demoCall{
		{"/api/exchange/prices", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			r, err := c.Prices(ctx, ids)
			return showResults(r, showPrice), nil, err
		}},
		{"/api/exchange/spreads", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			r, err := c.Spreads(ctx, ids)
			return showResults(r, showSpread), nil, err
		}},
		{"/api/exchange/orderbook", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			b, err := c.Book(ctx, ids[0], 20)
			if err != nil {
				return "", nil, err
			}
			return showBook(b), nil, nil
		}},
		{"/api/exchange/price-history", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			h, err := c.PriceHistory(ctx, ids[0], date(t, "2026-03-14"), date(t, "2026-03-14"))
			if err != nil {
				return "", nil, err
			}
			return showHistory(h), h.LeftOut, nil
		}},
		{"/api/exchange/market-search", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			p, err := c.Search(ctx, queries.Search{Limit: 6})
			if err != nil {
				return "", nil, err
			}
			return showSearch(p), p.LeftOut, nil
		}},
		{"/api/exchange/market-details", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			return byID(c.MarketsByID(ctx, []string{marketID}))
		}},
		{"/api/exchange/market-details", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			return byID(c.MarketsByToken(ctx, ids[:1]))
		}},
		{"/api/user/balance", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			b, err := c.Balance(ctx, wallet)
			if err != nil {
				return "", nil, err
			}
			return showBalance(b), nil, nil
		}},
		{"/api/user/positions", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			p, err := c.Positions(ctx, wallet)
			return showPositions(p), nil, err
		}},
		{"/api/user/orders", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			o, err := c.Orders(ctx, wallet)
			return showOrders(o), nil, err
		}},
		{"/api/user/trades", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			p, err := c.Trades(ctx, wallet, queries.Trades{})
			if err != nil {
				return "", nil, err
			}
			return showTrades(p), p.LeftOut, nil
		}},
		{"/api/user/history", func(ctx context.Context, c *Client) (string, market.LeftOut, error) {
			p, err := c.History(ctx, wallet, queries.History{})
			if err != nil {
				return "", nil, err
			}
			return showRecords(p), p.LeftOut, nil
		}},
	}
}

// withDemoCredentials returns a context with credentials that the demo venue accepts.
func withDemoCredentials(t *testing.T) context.Context {
	c, err := market.ParseCredentials([]byte(`{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`))
	must(t, err)
	return reqctx.WithCredentials(t.Context(), c)
}

// TestDemoFaults checks what each read returns during a fault of the demo venue, and that the next read succeeds.
func TestDemoFaults(t *testing.T) {
	v, url, all := startDemo(t)
	ctx := withDemoCredentials(t)
	truth := make([]string, len(all))
	for i, r := range all {
		text, left, err := r.read(ctx, newClient(t, url))
		if err != nil || left != nil || text == "" || strings.Contains(text, "absent") {
			t.Fatalf("%s: %q, %v, %v", r.path, text, left, err)
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
		{demo.Fault{Kind: demo.FaultLargeHeader}, market.CodeUpstreamUnavailable},
		{demo.Fault{Kind: demo.FaultRedirect}, market.CodeUpstreamBadResponse},
		{demo.Fault{Kind: demo.FaultUnknownList}, ""},
	} {
		for i, r := range all {
			t.Run(fmt.Sprintf("%s %d%s%s", tt.fault.Kind, tt.fault.Status, tt.fault.Body, r.path), func(t *testing.T) {
				clock := tool.NewClock(time.Now())
				c := newClient(t, url, func(cfg *Config) {
					cfg.Clock, cfg.MaxBody = clock, 1<<20
					if tt.code == market.CodeUpstreamTimeout {
						cfg.Timeout = 100 * time.Millisecond
					}
				})
				tt.fault.Path = r.path
				must(t, v.SetFaults([]demo.Fault{tt.fault}))
				text, left, err := r.read(ctx, c)
				switch want := tt.code; want {
				case "":
					if assertEqual(t, text, truth[i]); err != nil || left != nil {
						t.Errorf("%v, %v", err, left)
					}
				case "half":
					checkHalfBroken(t, r.path, text, truth[i], left, err)
				default:
					if r.path == paths[reqctx.EndpointSpreads] && want != market.CodeRateLimited { // the client takes the spreads from books
						assertEqual(t, text, strings.ReplaceAll(truth[i], "\n", fromBook+"\n")+fromBook)
						must(t, err)
						break
					}
					for line := range strings.SplitSeq(text, "\n") { // the error belongs either to each id or to the whole read
						if line != "" && line != string(want) {
							t.Errorf("it says %s", line)
						}
					}
					if got := market.CodeOf(err); got != want && !(got == "" && text != "") {
						t.Errorf("%v, want %s", err, want)
					}
				}
				must(t, v.SetFaults(nil))
				clock.Advance(wire.MaxWait)
				if text, left, err := r.read(ctx, c); text != truth[i] || left != nil || err != nil {
					t.Errorf("when it has passed: %s, %v, %v", text, left, err)
				}
			})
		}
	}
}

// checkHalfBroken checks the result of a read if every second row of the response is broken. The client must return the values of
// the good rows and report the bad rows. For some endpoints, one bad row must make the whole read fail.
func checkHalfBroken(t *testing.T, path, text, truth string, left market.LeftOut, err error) {
	t.Helper()
	switch path {
	case "/api/user/balance": // the response has no list, so no row is broken
		assertEqual(t, text, truth)
		return
	case "/api/exchange/spreads":
		if must(t, err); strings.ReplaceAll(text, fromBook, "") != truth || !strings.Contains(text, fromBook) {
			t.Errorf("it says %s", text)
		}
		return
	case "/api/exchange/orderbook", "/api/exchange/market-details", "/api/user/positions", "/api/user/orders": // one bad row makes the read fail
		if market.CodeOf(err) != market.CodeUpstreamBadResponse && text != truth { // a list of one row has no broken row
			t.Errorf("%s, %v", text, err)
		}
		return
	}
	must(t, err)
	told := len(left)
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == string(market.CodeUpstreamBadResponse):
			told++
		case !strings.Contains(truth, line):
			t.Errorf("it says %s", line)
		}
	}
	if told == 0 || text == truth {
		t.Errorf("rows are missing without a word:\n%s", text)
	}
}
