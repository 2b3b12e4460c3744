package generic

import (
	"fmt"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/venue/rest"
)

func TestBalanceForms(t *testing.T) {
	runGolden(t, "balance", []golden{
		{form: "object", want: "portfolio 1500.25 cash 500.10 positions - total 2000.35 at 2026-11-20T10:00:00Z"},
		{form: "without-total", want: "portfolio 1500.25 cash 500.10 positions - total 2000.35 at -"},
		{form: "positions-value", want: "portfolio 2000.35 cash 500.10 positions 1500.25 total 2000.35 at -"},
		{form: "enveloped", want: "portfolio 1 cash 2 positions - total 3 at 2025-11-20T10:00:00Z"},
		{form: "array-of-one", want: "portfolio 1 cash 2 positions - total 3 at -"},
		{form: "cash-alone", want: "portfolio - cash 2 positions - total - at -"},
		{form: "empty-object", want: "UPSTREAM_BAD_RESPONSE", drift: "balance: bad element"},
		{form: "bad-number", want: "UPSTREAM_BAD_RESPONSE", drift: "balance: bad element"},
	}, func(t *testing.T, c *Client, _ golden) string {
		b, err := c.Balance(t.Context(), asUser(t), wallet)
		if err != nil {
			return string(market.CodeOf(err))
		}
		return showBalance(b)
	})
}

func TestPositionForms(t *testing.T) {
	runGolden(t, "positions", []golden{
		{form: "object", want: "M1 - YES 150 0.55 0.65 15\nM2 202 NO 0.5 - 0.1 -1.25"},
		{form: "snake-case", want: "M1 101 Yes 400000.0 0.5 0.7545 101800.0\nM2 - No 1 0.1 0.2 0.1"},
		{form: "data", want: "M1 - YES 1 - - -"},
		{form: "bare-array", want: "M1 101 YES 1 - - -"},
		{form: "empty", want: ""},
		{form: "offset-first", want: "UPSTREAM_BAD_RESPONSE: the venue's answer could not be used (positions): the venue repeats its pages"},
		{form: "offset-last", want: "UPSTREAM_BAD_RESPONSE: the venue's answer could not be used (positions): the venue repeats its pages"},
		{form: "half-bad", want: "UPSTREAM_BAD_RESPONSE: row 2 of the venue's answer could not be read (positions): size is not a number",
			drift: "positions: bad row"},
	}, func(t *testing.T, c *Client, _ golden) string {
		list, err := c.Positions(t.Context(), asUser(t), wallet)
		if err != nil {
			return err.Error()
		}
		return lines(list, showPosition)
	})
}

// TestLeftOutRowsAreReported checks that the field LeftOut of a result names the bad rows of the response.
func TestLeftOutRowsAreReported(t *testing.T) {
	const which = "UPSTREAM_BAD_RESPONSE: %s of the venue's answer could not be read and is left out (%s): %s"
	many := `{"trades":[` + strings.Repeat(`{"tradeId":"T"},`, 12) + `{"marketId":"M1","price":0.5,"size":1,"timestamp":1795168800}]}`
	reads := readsFor([]string{"101"}, "M1", "", date(t, "2025-11-01"), date(t, "2026-11-03"))
	for _, tt := range []struct {
		endpoint, body string
		want           [][2]string
	}{
		{"price-history", goldenFile(t, "price-history/half-bad"), [][2]string{{"row 2", "timestamp is not a time"},
			{"row 3", "timestamp is not a time"}, {"row 4", "price is not a number"}}},
		{"market-search", goldenFile(t, "market-search/half-bad"), [][2]string{{"row 2", "outcomes are missing or do not match their tokens"},
			{"row 3", "the element is not an object"}, {"row 4", "marketId is not an id"}}},
		{"market-search", goldenFile(t, "market-search/events-half-bad"), [][2]string{{"market 2 of row 1", "outcomes are missing or do not match their tokens"},
			{"row 2", "outcomes are missing or do not match their tokens"}}},
		{"trades", goldenFile(t, "trades/half-bad"), [][2]string{{"row 2", "timestamp is not a time"}, {"row 3", "the element is not an object"}}},
		{"history", goldenFile(t, "history/half-bad"), [][2]string{{"row 2", "timestamp is not a time"}}},
		{"trades", many, nil},
		{"trades", goldenFile(t, "trades/object"), nil},
	} {
		_, left, err := readOf(reads, tt.endpoint).text(t.Context(), asUser(t), newVenue(t, everywhere(answer(tt.body))).client(t))
		must(t, err)
		var got, want []string
		for _, err := range left {
			got = append(got, err.Error())
		}
		for _, w := range tt.want {
			want = append(want, fmt.Sprintf(which, w[0], tt.endpoint, w[1]))
		}
		if tt.body == many {
			if len(got) != rest.MaxLeftOut+1 || got[rest.MaxLeftOut] != "UPSTREAM_BAD_RESPONSE: 2 more rows of the venue's answer could not be read and are left out (trades)" {
				t.Errorf("got %d errors and the last error %s, want %d errors", len(got), got[len(got)-1], rest.MaxLeftOut+1)
			}
			continue
		}
		assertEqual(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestOrderForms(t *testing.T) {
	runGolden(t, "orders", []golden{
		{form: "object", want: "O1 M1 - BUY(BUY) YES 0.55 100 0 OPEN(OPEN) 2026-11-20T10:00:00Z"},
		{form: "lower-case-snake", want: "O1 M1 101 SELL(sell) Yes 0.55 100 25.5 PARTIALLY_FILLED(live) 2025-11-20T10:00:00Z\n" +
			"O2 M1 - BUY(Buy) No 0.4 1 0 PARTIALLY_FILLED(partially_filled) -"},
		{form: "unknown-values", want: "O1 M1 - UNKNOWN(BORROW) YES 0.55 100 0 UNKNOWN(HELD) -", drift: "orders: createdAt unreadable"},
		{form: "enveloped", want: "O1 M1 - BUY(BUY) YES 0.55 100 0 OPEN(OPEN) -"},
		{form: "data", want: "O1 M1 - BUY(BUY) YES 0.55 100 0 OPEN(OPEN) -"},
		{form: "half-bad", want: "UPSTREAM_BAD_RESPONSE: row 2 of the venue's answer could not be read (orders): filledSize is missing",
			drift: "orders: bad row"},
	}, func(t *testing.T, c *Client, _ golden) string {
		list, err := c.Orders(t.Context(), asUser(t), wallet)
		if err != nil {
			return err.Error()
		}
		return lines(list, showOrder)
	})
}

func TestTradeForms(t *testing.T) {
	const t1 = "T1 M1 101 YES BUY(BUY) 0.5 10 0.01 2026-11-20T10:00:00Z 0xabc"
	runGolden(t, "trades", []golden{
		{form: "object", want: "next bjE total -\nT2 M1 102 NO SELL(SELL) 0.4 1 - 2026-11-20T11:00:00Z -\n" + t1},
		{form: "enveloped", want: "next bjE total -\n" + t1},
		{form: "data", want: "next offset 1 total 9\n" + t1},
		{form: "bare-array", want: "next - total -\nT1 M1 101 Yes BUY(buy) 0.62 78.55 - 2025-11-20T10:00:00Z 0xabc"},
		{form: "half-bad", want: "next - total -\n" + t1, drift: "trades: bad row, trades: bad row"},
	}, func(t *testing.T, c *Client, _ golden) string {
		page, err := c.Trades(t.Context(), asUser(t), wallet, queries.Trades{})
		if err != nil {
			return err.Error()
		}
		return showTrades(page)
	})
}

func TestHistoryForms(t *testing.T) {
	runGolden(t, "history", []golden{
		{form: "object", want: "next - total -\nA2 DEPOSIT(DEPOSIT) 2026-11-20T11:00:00Z 250.5 - - - - - - 0xdef\n" +
			"A1 TRADE(TRADE) 2026-11-20T10:00:00Z -5 M1 101 YES BUY 0.5 10 0xabc"},
		{form: "enveloped", want: "next bjE total -\nA1 DEPOSIT(deposit) 2026-11-20T10:00:00Z 250.50 - - - - - - 0xdef"},
		{form: "trades", want: "next bjE total -\nT1 TRADE(TRADE) 2026-11-20T10:00:00Z - M1 101 YES BUY 0.5 10 0xabc"},
		{form: "snake-case", want: "next - total -\n- UNKNOWN(AIRDROP) 2025-11-20T10:00:00Z 13.285715 M1 101 Yes BUY 0.9300000035 14.285715 0xa66"},
		{form: "half-bad", want: "next - total -\nA1 DEPOSIT(DEPOSIT) 2026-11-20T11:00:00Z 1 - - - - - - -", drift: "history: bad row"},
	}, func(t *testing.T, c *Client, _ golden) string {
		page, err := c.History(t.Context(), asUser(t), wallet, queries.History{})
		if err != nil {
			return err.Error()
		}
		return showRecords(page)
	})
}

func TestErrorForms(t *testing.T) {
	table := []golden{
		{form: "error", want: "RATE_LIMITED: the venue's rate limit is reached (balance)"},
		{form: "message", want: "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{form: "msg", want: "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{form: "error-message-name", want: "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{form: "error-object", want: "UNAUTHENTICATED: the venue refused the credentials (balance)"},
		{form: "error-alone", want: "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{form: "not-found", want: "absent"},
		{form: "numeric-code", want: "FORBIDDEN: the address does not belong to the credentials (balance)"},
		{form: "bad-request", want: "UPSTREAM_BAD_RESPONSE: the venue refused the request (balance)"},
	}
	checkGoldenCovered(t, "errors", table)
	for _, g := range table {
		t.Run(g.form, func(t *testing.T) {
			c := newVenue(t, everywhere(answer(goldenFile(t, "errors/"+g.form)))).client(t)
			b, err := c.Balance(t.Context(), asUser(t), wallet)
			switch {
			case g.want == "absent":
				if b != nil || err != nil {
					t.Fatalf("got %v, %v; want absent", b, err)
				}
			case err == nil:
				t.Fatal("no error")
			default:
				assertEqual(t, err.Error(), g.want+": status 200: the reason")
			}
		})
	}
}
