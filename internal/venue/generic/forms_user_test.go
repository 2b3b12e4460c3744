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
	runGolden(t, "balance", nil, func(t *testing.T, c *Client, ids []string) string {
		b, err := c.Balance(t.Context(), asUser(t), wallet)
		if err != nil {
			return string(market.CodeOf(err))
		}
		return showBalance(b)
	})
}

func TestPositionForms(t *testing.T) {
	runGolden(t, "positions", nil, func(t *testing.T, c *Client, ids []string) string {
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
	runGolden(t, "orders", nil, func(t *testing.T, c *Client, ids []string) string {
		list, err := c.Orders(t.Context(), asUser(t), wallet)
		if err != nil {
			return err.Error()
		}
		return lines(list, showOrder)
	})
}

func TestTradeForms(t *testing.T) {
	runGolden(t, "trades", nil, func(t *testing.T, c *Client, ids []string) string {
		page, err := c.Trades(t.Context(), asUser(t), wallet, queries.Trades{})
		if err != nil {
			return err.Error()
		}
		return showTrades(page)
	})
}

func TestHistoryForms(t *testing.T) {
	runGolden(t, "history", nil, func(t *testing.T, c *Client, ids []string) string {
		page, err := c.History(t.Context(), asUser(t), wallet, queries.History{})
		if err != nil {
			return err.Error()
		}
		return showRecords(page)
	})
}

func TestErrorForms(t *testing.T) {
	table := []struct{ form, want string }{
		{"error", "RATE_LIMITED: the venue's rate limit is reached (balance)"},
		{"message", "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{"msg", "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{"error-message-name", "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{"error-object", "UNAUTHENTICATED: the venue refused the credentials (balance)"},
		{"error-alone", "UPSTREAM_UNAVAILABLE: the venue is not available (balance)"},
		{"not-found", "absent"},
		{"numeric-code", "FORBIDDEN: the address does not belong to the credentials (balance)"},
		{"bad-request", "UPSTREAM_BAD_RESPONSE: the venue refused the request (balance)"},
	}
	if files := goldenFiles(t, "errors"); len(files) != len(table) {
		t.Errorf("the test reads %d of the golden files %q", len(table), files)
	}
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
