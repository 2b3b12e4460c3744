package generic

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/tests/tool"
)

// golden names a golden file and contains the values that the client must read from the file.
type golden struct {
	form string
	ids  []string
	want string
	// drift is the text of the drift that the client must report to its Observer.
	drift string
}

// checkGoldenCovered fails if the table has no row for a golden file of the endpoint.
func checkGoldenCovered(t *testing.T, endpoint string, table []golden) {
	t.Helper()
	for _, name := range goldenFiles(t, endpoint) {
		if !slices.ContainsFunc(table, func(g golden) bool { return g.form == name }) {
			t.Errorf("no test reads %s/%s.json", endpoint, name)
		}
	}
}

// runGolden serves each golden file of the table, and compares the text that read returns with the expected text.
func runGolden(t *testing.T, endpoint string, table []golden, read func(t *testing.T, c *Client, g golden) string) {
	checkGoldenCovered(t, endpoint, table)
	for _, g := range table {
		t.Run(g.form, func(t *testing.T) {
			handlers := everywhere(answerWith(http.StatusNotFound, "application/json", `{"success":false,"error":"no","code":"NOT_FOUND"}`))
			body := goldenFile(t, endpoint+"/"+g.form)
			for e, path := range paths {
				if upstream.Endpoint(e).String() == endpoint {
					handlers[path] = answer(body)
				}
			}
			if g.form == "yes-no" || g.form == "yes-no-tokens" {
				handlers[paths[upstream.EndpointMarketsByID]] = answer(goldenFile(t, "market-details/object"))
			}
			seen := &recordingObserver{}
			c := newVenue(t, handlers).client(t, func(cfg *Config) { cfg.Observer = seen })
			assertEqual(t, read(t, c, g), strings.TrimPrefix(g.want, "\n"))
			assertEqual(t, seen.driftText(), g.drift)
		})
	}
}

func TestPriceForms(t *testing.T) {
	three := []string{"101", "102", "103"}
	runGolden(t, "prices", []golden{
		{form: "object", ids: []string{"101"}, want: "101 0.6500 VENUE 2026-11-20T10:00:00Z"},
		{form: "object-without-id", ids: []string{"101"}, want: "101 0.8100000092466668 VENUE 2025-11-20T10:00:00Z"},
		{form: "array-of-one", ids: []string{"101"}, want: "101 0.65 VENUE 2026-11-20T10:00:00Z"},
		{form: "object-under-data", ids: []string{"101"}, want: "101 0.65 VENUE 2025-11-20T10:00:00Z"},
		{form: "list", ids: three, want: `
101 0.65 VENUE 2026-11-20T10:00:00.5Z
absent
103 0.02 VENUE 2026-11-20T10:00:02Z`},
		{form: "bare-array", ids: three, want: `
101 0.65 VENUE -
absent
103 0.02 VENUE 2025-11-20T10:00:02.123Z`},
		{form: "data-list", ids: three, want: "101 0.65 VENUE -\nabsent\n103 0.02 VENUE -"},
		{form: "enveloped-list", ids: three, want: "101 0.65 VENUE -\nabsent\n103 0.02 VENUE -"},
		{form: "map-of-numbers", ids: three, want: "101 0.65 VENUE -\nabsent\n103 0.02 VENUE -"},
		{form: "map-of-objects", ids: three, want: "101 0.65 VENUE 2026-11-20T10:00:00Z\nabsent\n103 0.02 VENUE -"},
		{form: "map-of-sides", ids: three, want: "101 0.645 MIDPOINT -\n102 0.31 BEST_ASK -\n103 0.02 BEST_BID -"},
		{form: "map-under-prices", ids: three, want: "101 0.65 VENUE -\nabsent\n103 0.02 VENUE -"},
		{form: "foreign-ids", ids: three, want: "101 0.65 VENUE -\nabsent\n103 0.02 VENUE -"},
		{form: "null-price", ids: []string{"101"}, want: "absent"},
		{form: "null-prices", ids: []string{"101", "102", "103", "104", "105"}, want: "absent\nabsent\n103 0.4 BEST_ASK -\nUPSTREAM_BAD_RESPONSE\nUPSTREAM_BAD_RESPONSE",
			drift: "prices: bad element, prices: bad element"},
		{form: "map-of-null-prices", ids: three, want: "absent\nabsent\n103 0.4 VENUE -"},
		{form: "unknown-fields", ids: []string{"101"}, want: "101 0.65 VENUE 2026-11-20T10:00:00Z"},
		{form: "odd-literals", ids: []string{"101", "102", "103", "104", "105", "106", "107"}, want: `
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
105 0.65 VENUE -
106 0.17000000000000001 VENUE -
107 0.650 VENUE -`, drift: "prices: bad element, prices: bad element, prices: bad element, prices: bad element"},
		{form: "half-bad", ids: []string{"101", "102", "103", "104", "105", "106", "107"}, want: `
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
103 0.02 VENUE -
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
absent`, drift: strings.TrimSuffix(strings.Repeat("prices: bad element, ", 5), ", ")},
		{form: "map-half-bad", ids: []string{"101", "102", "103", "104"}, want: "UPSTREAM_BAD_RESPONSE\nUPSTREAM_BAD_RESPONSE\n103 0.02 VENUE -\nUPSTREAM_BAD_RESPONSE",
			drift: "prices: bad element, prices: bad element, prices: bad element"},
		{form: "unattributable", ids: []string{"101", "103"}, want: "UPSTREAM_BAD_RESPONSE\n103 0.02 VENUE -",
			drift: "prices: element without a readable id, prices: element without a readable id"},
	}, func(t *testing.T, c *Client, g golden) string {
		results, err := c.Prices(t.Context(), upstream.Call{}, g.ids)
		must(t, err)
		return showResults(results, showPrice)
	})
}

func TestSpreadForms(t *testing.T) {
	two := []string{"101", "103"}
	runGolden(t, "spreads", []golden{
		{form: "object", ids: []string{"101"}, want: "101 0.64 0.66 0.02 2026-11-20T10:00:00Z"},
		{form: "spread-alone", ids: []string{"101"}, want: "101 - - 0.02 -"},
		{form: "list", ids: two, want: "101 0.64 0.66 0.02 2026-11-20T10:00:00Z\n103 - 0.9 - 2026-11-20T10:00:00Z"},
		{form: "enveloped", ids: two, want: "101 0.64 0.66 0.02 2026-11-20T10:00:00Z\nabsent"},
		{form: "map-of-numbers", ids: two, want: "101 - - 0.02 -\n103 - - 0.5 -"},
		{form: "map-of-objects", ids: two, want: "101 0.64 0.66 0.02 -\n103 - - 0.5 -"},
		{form: "array", ids: two, want: "101 0.64 0.66 0.02 -\n103 - - 0.5 -"},
		{form: "half-bad", ids: []string{"101", "102", "103", "104"}, want: `
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
104 - - 0.04 -`, drift: "spreads: bad element, spreads: bad element, spreads: bad element"},
	}, func(t *testing.T, c *Client, g golden) string {
		results, err := c.Spreads(t.Context(), upstream.Call{}, g.ids)
		must(t, err)
		return showResults(results, showSpread)
	})
}

func TestBookForms(t *testing.T) {
	runGolden(t, "orderbook", []golden{
		{form: "object", want: "101 [1000@0.64 250.5@0.63] [10@0.66 5000@0.70] spread 0.02 at 2026-11-20T10:00:00Z epoch k3f9 seq 41 hash - depth 2"},
		{form: "strings-best-last", want: "101 [125@0.10 1000@0.01] [705@0.14 192.3@0.38] spread 0.04 at 2024-10-13T06:03:38.26Z epoch - seq 0 hash 2fc4a3 depth 2"},
		{form: "array-of-one", want: "101 [] [] spread - at - epoch - seq 0 hash - depth 2"},
		{form: "pairs", want: "101 [2@0.64 1@0.63] [4@0.66 3@0.7] spread 0.02 at - epoch 7 seq 18446744073709551615 hash - depth 2"},
		{form: "empty-side", want: "101 [667.12@0.001] [] spread - at - epoch - seq 0 hash - depth 2"},
		{form: "null-side", want: "101 [] [1@0.9] spread - at - epoch - seq 0 hash - depth 2"},
		{form: "empty", want: "101 [] [] spread - at - epoch e seq 3 hash - depth 2"},
		{form: "null-sides", want: "101 [] [] spread - at - epoch - seq 0 hash - depth 2"},
		{form: "null-and-missing-side", want: "UPSTREAM_BAD_RESPONSE", drift: "orderbook: bad element"},
		{form: "repeated-and-zero-levels", want: "101 [3.5@0.5] [] spread - at - epoch - seq 0 hash - depth 2", drift: "orderbook: repeated level"},
		{form: "enveloped", want: "101 [1@0.2] [1@0.3] spread 0.1 at - epoch - seq 0 hash - depth 2"},
		{form: "more-levels", want: "101 [1@0.64 2@0.62] [5@0.66 6@0.68] spread 0.02 at 2026-11-20T10:00:00Z epoch k3f9 seq 41 hash - depth 2"},
		{form: "crossed", want: "UPSTREAM_BAD_RESPONSE", drift: "orderbook: crossed book, orderbook: bad element"},
		{form: "negative-size", want: "UPSTREAM_BAD_RESPONSE", drift: "orderbook: bad element"},
		{form: "odd-fields", want: "101 [] [1@0.3] spread - at - epoch - seq 0 hash - depth 2",
			drift: "orderbook: timestamp unreadable, orderbook: epoch unreadable, orderbook: seq unreadable, orderbook: hash unreadable"},
		{form: "bad-level", want: "UPSTREAM_BAD_RESPONSE", drift: "orderbook: bad element"},
		{form: "missing-side", want: "UPSTREAM_BAD_RESPONSE", drift: "orderbook: bad element"},
		{form: "other-token", want: "UPSTREAM_BAD_RESPONSE"},
	}, func(t *testing.T, c *Client, _ golden) string {
		b, err := c.Book(t.Context(), upstream.Call{}, "101", 2)
		if err != nil {
			return string(market.CodeOf(err))
		}
		return showBook(b)
	})
}

func TestPriceHistoryForms(t *testing.T) {
	runGolden(t, "price-history", []golden{
		{form: "object", want: "2026-11-01T00:00:00Z 0.5 1000\n2026-11-02T12:00:00Z 0.51 0\n2026-11-03T12:00:00Z 0.52 12.5"},
		{form: "short-names", want: "2025-11-01T12:00:00Z 0.50 3\n2025-11-02T12:00:00Z 0.51 -"},
		{form: "data", want: "2026-11-01T10:00:00Z 0.5 -\n2026-11-02T12:00:00Z 0.51 -"},
		{form: "enveloped", want: "2026-11-02T12:00:00Z 0.51 -"},
		{form: "bare-array", want: "2025-11-01T12:00:00Z 0.955 -\n2025-11-01T12:01:00Z 0.956 -"},
		{form: "duplicates", want: "2026-11-01T12:00:00Z 0.4 -\n2026-11-02T12:00:00Z 0.55 -"},
		{form: "half-bad", want: "2026-11-02T12:00:00Z 0.51 -",
			drift: "price-history: bad row, price-history: bad row, price-history: bad row, price-history: point on another day"},
		{form: "empty", want: ""},
		{form: "all-bad", want: "UPSTREAM_BAD_RESPONSE", drift: "price-history: bad row"},
		{form: "other-days", want: "UPSTREAM_BAD_RESPONSE", drift: "price-history: point on another day"},
	}, func(t *testing.T, c *Client, _ golden) string {
		h, err := c.PriceHistory(t.Context(), upstream.Call{}, "101", date(t, "2025-11-01"), date(t, "2026-11-03"))
		if err != nil {
			return string(market.CodeOf(err))
		}
		return showHistory(h)
	})
}

const rain = `
market: M1 | will-it-rain | Will it rain? | -
about: Rain, at the station. | https://example.org/rain.png | Weather | weather,daily
status: RESOLVED | RESOLVED | false
times: 2026-11-01T00:00:00Z | 2026-11-02T00:00:00Z | 2026-11-02T06:00:01Z
figures: 25814545.294374414 | 12.5 | 0 | 0.01 | 5
event: E1 | rain | Rain this week
outcome: 101 | YES | 1 | true
outcome: 102 | NO | 0.0 | false
resolution: YES | 2026-11-02T06:00:00Z | station`

const whoWins = `
market: M2 | who-wins | Who wins? | -
status: OPEN | OPEN | true
outcome: 201 | Red | 0.2 | -
outcome: 202 | Green | 0.3 | -
outcome: 203 | Blue | - | -`

func TestMarketForms(t *testing.T) {
	table := []golden{
		{form: "object", ids: []string{"M1"}, want: rain},
		{form: "array-of-one", ids: []string{"M1"}, want: rain},
		{form: "enveloped", ids: []string{"M1"}, want: rain},
		{form: "list", ids: []string{"M1", "M0", "M2"}, want: rain + "\nabsent" + whoWins},
		{form: "bare-array", ids: []string{"M1", "M0", "M2"}, want: rain + "\nabsent" + whoWins},
		{form: "json-in-strings", ids: []string{"M1"}, want: `
market: M1 | up-or-down | Up or down? | -
about: By the feed. | - | - | Crypto
status: OPEN | - | true
times: 2026-03-11T09:29:01.328428Z | 2026-03-12T09:25:00Z | -
figures: 9.999997 | 9.999997 | 20328.3747 | 0.01 | 5
event: 260654 | up-or-down-5m | Up or down, 5 minutes
outcome: 101 | Up | 0.505 | -
outcome: 102 | Down | 0.495 | -`},
		{form: "tokens", ids: []string{"M1"}, want: `
market: M1 | ceasefire | Ceasefire? | -
about: An agreement. | https://example.org/i.png | - | -
status: RESOLVED | - | false
times: - | 2027-12-31T00:00:00Z | -
figures: - | - | - | 0.001 | 5
outcome: 101 | Yes | 0 | false
outcome: 102 | No | 1 | true`},
		{form: "tokens-undecided", ids: []string{"M1"}, want: `
market: M1 | - | Undecided? | -
status: OPEN | - | -
outcome: 101 | Yes | 0.4 | -
outcome: 102 | No | 0.6 | -`},
		{form: "unknown-status", ids: []string{"M1"}, want: `
market: M1 | - | - | -
status: UNKNOWN | PAUSED_BY_OPERATOR | -
outcome: 101 | YES | - | -`, drift: "market-details: endDate unreadable"},
		{form: "odd-fields", ids: []string{"M1"}, want: `
market: M1 | - | - | -
about: - | - | - | ok
status: UNKNOWN | - | -
outcome: 101 | YES | - | -
resolution: YES | - | -`, drift: "market-details: slug unreadable, market-details: tags unreadable, market-details: tags unreadable, " +
			"market-details: acceptingOrders unreadable, market-details: updatedAt unreadable, market-details: status unreadable"},
		{form: "inactive", ids: []string{"M1"}, want: "market: M1 | - | - | -\nstatus: UNKNOWN | - | true\noutcome: 101 | YES | - | -"},
		{form: "no-status", ids: []string{"M1"}, want: "market: M1 | - | - | -\nstatus: UNKNOWN | - | -"},
		{form: "half-bad", ids: []string{"M1", "M2", "M3", "M4", "M5", "M6"}, want: `
UPSTREAM_BAD_RESPONSE
market: M2 | - | - | -
status: UNKNOWN | - | -
outcome: 201 | YES | - | -
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE
absent`, drift: strings.TrimSuffix(strings.Repeat("market-details: bad element, ", 4), ", ")},
		{form: "unattributable", ids: []string{"M1", "M2"}, want: `
UPSTREAM_BAD_RESPONSE
market: M2 | - | - | -
status: UNKNOWN | - | -
outcome: 201 | YES | - | -`, drift: "market-details: bad element"},
	}
	runGolden(t, "market-details", table, func(t *testing.T, c *Client, g golden) string {
		results, err := c.MarketsByID(t.Context(), upstream.Call{}, g.ids)
		must(t, err)
		return showResults(results, showMarket)
	})
}

func TestMarketsByTokenForms(t *testing.T) {
	first := strings.TrimPrefix(rain, "\n")
	for _, g := range []golden{
		{form: "list", ids: []string{"102", "101", "999", "202"}, want: first + rain + "\nabsent" + whoWins},
		{form: "object", ids: []string{"102"}, want: first},
		{form: "half-bad", ids: []string{"101", "201", "401", "601"}, want: `UPSTREAM_BAD_RESPONSE
market: M2 | - | - | -
status: UNKNOWN | - | -
outcome: 201 | YES | - | -
UPSTREAM_BAD_RESPONSE
UPSTREAM_BAD_RESPONSE`},
	} {
		t.Run(g.form, func(t *testing.T) {
			c := newVenue(t, everywhere(answer(goldenFile(t, "market-details/"+g.form)))).client(t)
			results, err := c.MarketsByToken(t.Context(), upstream.Call{}, g.ids)
			must(t, err)
			assertEqual(t, showResults(results, showMarket), g.want)
		})
	}
}

func TestMarketBySlugForms(t *testing.T) {
	for _, g := range []golden{
		{form: "object", ids: []string{"will-it-rain"}, want: strings.TrimPrefix(rain, "\n")},
		{form: "list", ids: []string{"will-it-rain"}, want: strings.TrimPrefix(rain, "\n")},
		{form: "array-of-one", ids: []string{"will-it-snow"}, want: "UPSTREAM_BAD_RESPONSE"},
		{form: "no-status", ids: []string{"will-it-snow"}, want: "UPSTREAM_BAD_RESPONSE"},
	} {
		t.Run(g.form, func(t *testing.T) {
			c := newVenue(t, everywhere(answer(goldenFile(t, "market-details/"+g.form)))).client(t)
			m, err := c.MarketBySlug(t.Context(), upstream.Call{}, g.ids[0])
			if err != nil {
				assertEqual(t, string(market.CodeOf(err)), g.want)
				return
			}
			assertEqual(t, showMarket(m), g.want)
		})
	}
}

const one1 = `
market: M1 | s1 | One? | -
about: - | - | Sports | cup,final
status: OPEN | OPEN | -
times: - | 2026-12-01T00:00:00Z | -
figures: 300 | 3 | 30 | - | -
event: E1 | e1 | Event one
outcome: 101 | YES | 0.4 | -
outcome: 102 | NO | 0.6 | -
summary`

const two2 = `
market: M2 | s2 | Two? | -
about: - | - | sports | cup
status: CLOSED | CLOSED | -
times: - | 2026-12-05T00:00:00Z | -
figures: 200.5 | 2 | 20 | - | -
event: E2 | e2 | Event two
outcome: 201 | YES | 0.4 | -
outcome: 202 | NO | 0.6 | -
summary`

func TestSearchForms(t *testing.T) {
	runGolden(t, "market-search", []golden{
		{form: "object", want: "next TTI total 7" + one1 + two2},
		{form: "results", want: "next - total 2" + one1 + two2},
		{form: "data", want: "next MTAw/+= total -" + one1 + two2},
		{form: "enveloped", want: "next TTI total -" + one1 + two2},
		{form: "bare-array", want: "next - total -" + one1 + two2},
		{form: "offset", want: "next offset 2 total 7" + one1 + two2},
		{form: "with-description", want: `next - total -
market: M1 | - | - | -
about: Whole. | - | - | -
status: UNKNOWN | - | -
outcome: 101 | YES | - | -`},
		{form: "events", want: `next - total -
market: M1 | - | One? | -
about: - | https://example.org/e.png | Sports | Cup
status: OPEN | - | -
times: 2026-11-01T00:00:00Z | 2026-12-01T00:00:00Z | -
event: E1 | e1 | Event one
outcome: 101 | Yes | - | -
outcome: 102 | No | - | -
summary
market: M2 | - | Two? | -
about: - | https://example.org/e.png | Politics | Cup
status: CLOSED | - | -
times: 2026-11-01T00:00:00Z | 2026-12-24T00:00:00Z | -
event: E1 | e1 | Event one
outcome: 201 | Yes | - | -
outcome: 202 | No | - | -
summary`},
		{form: "yes-no", want: "next - total -" + rain},
		{form: "yes-no-tokens", want: "next - total -" + rain},
		{form: "yes-no-objects", want: `next - total -
market: M1 | - | Up in 15 minutes? | -
status: OPEN | OPEN | -
outcome: 101 | YES | 0.55 | -
outcome: 102 | NO | 0.45 | -
summary`},
		{form: "yes-no-mixed", want: `next - total -
market: M1 | - | Up in 15 minutes? | -
about: - | - | Crypto | -
status: RESOLVED | - | -
figures: - | - | 12.50 | - | -
outcome: 101 | Up | - | true
outcome: 102 | NO | - | -
summary`},
		{form: "yes-no-markets", want: `next - total -
market: M1 | - | Up? | -
status: UNKNOWN | - | -
outcome: 101 | Yes | - | -
summary
market: M2 | - | Down? | -
status: UNKNOWN | - | -
outcome: 201 | Yes | - | -
summary`},
		{form: "events-half-bad", want: `next - total -
market: M1 | - | - | -
status: UNKNOWN | - | -
event: E1 | e1 | Event one
outcome: 101 | Yes | - | -
outcome: 102 | No | - | -
summary`, drift: "market-search: bad row, market-search: bad row"},
		{form: "half-bad", want: "next - total -" + one1, drift: "market-search: bad row, market-search: bad row, market-search: bad row"},
	}, func(t *testing.T, c *Client, _ golden) string {
		page, err := c.Search(t.Context(), upstream.Call{}, queries.Search{})
		must(t, err)
		return showSearch(page)
	})
}

func showSearch(page *queries.SearchPage) string {
	s := []string{"next " + showNext(page.Next) + " total " + tool.Text(page.Total)}
	for _, m := range page.Markets {
		s = append(s, showMarket(m))
	}
	return strings.Join(s, "\n")
}
