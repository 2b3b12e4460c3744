package generic

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/tests/tool"
)

// golden contains ids to request, and the golden files that answer the request. Both are separated by spaces.
type golden struct{ ids, forms string }

// runGolden serves golden files of an endpoint, and compares the results of read and the drift with the file of the test in
// testdata/forms. If groups is nil, it serves all golden files of the endpoint.
func runGolden(t *testing.T, endpoint string, groups []golden, read func(t *testing.T, c *Client, ids []string) string) {
	if groups == nil {
		groups = []golden{{"", strings.Join(goldenFiles(t, endpoint), " ")}}
	}
	var got strings.Builder
	for _, g := range groups {
		for form := range strings.FieldsSeq(g.forms) {
			handlers := everywhere(answerWith(http.StatusNotFound, "application/json", `{"success":false,"error":"no","code":"NOT_FOUND"}`))
			body := goldenFile(t, endpoint+"/"+form)
			for e, path := range paths {
				if upstream.Endpoint(e).String() == endpoint {
					handlers[path] = answer(body)
				}
			}
			if form == "yes-no" || form == "yes-no-tokens" {
				handlers[paths[upstream.EndpointMarketsByID]] = answer(goldenFile(t, "market-details/object"))
			}
			seen := &recordingObserver{}
			c := newVenue(t, handlers).client(t, func(cfg *Config) { cfg.Observer = seen })
			fmt.Fprintf(&got, "# %s\n%s\n", form, read(t, c, strings.Fields(g.ids)))
			if drift := seen.driftText(); drift != "" {
				fmt.Fprintf(&got, "drift: %s\n", drift)
			}
			got.WriteByte('\n')
		}
	}
	tool.Golden(t, "testdata/forms/"+t.Name()+".txt", got.String())
}

// checkGoldenCovered fails the test if no group has a golden file of the endpoint.
func checkGoldenCovered(t *testing.T, endpoint string, groups []golden) {
	t.Helper()
	for _, name := range goldenFiles(t, endpoint) {
		if !slices.ContainsFunc(groups, func(g golden) bool { return slices.Contains(strings.Fields(g.forms), name) }) {
			t.Errorf("no test reads %s/%s.json", endpoint, name)
		}
	}
}

func TestPriceForms(t *testing.T) {
	groups := []golden{
		{"101", "object object-without-id array-of-one object-under-data null-price unknown-fields"},
		{"101 102 103", "list bare-array data-list enveloped-list map-of-numbers map-of-objects map-of-sides map-under-prices foreign-ids map-of-null-prices"},
		{"101 102 103 104 105", "null-prices"},
		{"101 102 103 104 105 106 107", "odd-literals half-bad"},
		{"101 102 103 104", "map-half-bad"},
		{"101 103", "unattributable"},
	}
	checkGoldenCovered(t, "prices", groups)
	runGolden(t, "prices", groups, func(t *testing.T, c *Client, ids []string) string {
		results, err := c.Prices(t.Context(), upstream.Call{}, ids)
		must(t, err)
		return showResults(results, showPrice)
	})
}

func TestSpreadForms(t *testing.T) {
	groups := []golden{
		{"101", "object spread-alone"},
		{"101 103", "list enveloped map-of-numbers map-of-objects array"},
		{"101 102 103 104", "half-bad"},
	}
	checkGoldenCovered(t, "spreads", groups)
	runGolden(t, "spreads", groups, func(t *testing.T, c *Client, ids []string) string {
		results, err := c.Spreads(t.Context(), upstream.Call{}, ids)
		must(t, err)
		return showResults(results, showSpread)
	})
}

func TestBookForms(t *testing.T) {
	runGolden(t, "orderbook", nil, func(t *testing.T, c *Client, ids []string) string {
		b, err := c.Book(t.Context(), upstream.Call{}, "101", 2)
		if err != nil {
			return string(market.CodeOf(err))
		}
		return showBook(b)
	})
}

func TestPriceHistoryForms(t *testing.T) {
	runGolden(t, "price-history", nil, func(t *testing.T, c *Client, ids []string) string {
		h, err := c.PriceHistory(t.Context(), upstream.Call{}, "101", date(t, "2025-11-01"), date(t, "2026-11-03"))
		if err != nil {
			return string(market.CodeOf(err))
		}
		return showHistory(h)
	})
}

func TestMarketForms(t *testing.T) {
	groups := []golden{
		{"M1", "object array-of-one enveloped json-in-strings tokens tokens-undecided unknown-status odd-fields inactive no-status"},
		{"M1 M0 M2", "list bare-array"},
		{"M1 M2 M3 M4 M5 M6", "half-bad"},
		{"M1 M2", "unattributable"},
	}
	checkGoldenCovered(t, "market-details", groups)
	runGolden(t, "market-details", groups, func(t *testing.T, c *Client, ids []string) string {
		results, err := c.MarketsByID(t.Context(), upstream.Call{}, ids)
		must(t, err)
		return showResults(results, showMarket)
	})
}

func TestMarketsByTokenForms(t *testing.T) {
	runGolden(t, "market-details", []golden{
		{"102 101 999 202", "list"},
		{"102", "object"},
		{"101 201 401 601", "half-bad"},
	}, func(t *testing.T, c *Client, ids []string) string {
		results, err := c.MarketsByToken(t.Context(), upstream.Call{}, ids)
		must(t, err)
		return showResults(results, showMarket)
	})
}

func TestMarketBySlugForms(t *testing.T) {
	runGolden(t, "market-details", []golden{
		{"will-it-rain", "object list"},
		{"will-it-snow", "array-of-one no-status"},
	}, func(t *testing.T, c *Client, ids []string) string {
		m, err := c.MarketBySlug(t.Context(), upstream.Call{}, ids[0])
		if err != nil {
			return string(market.CodeOf(err))
		}
		return showMarket(m)
	})
}

func TestSearchForms(t *testing.T) {
	runGolden(t, "market-search", nil, func(t *testing.T, c *Client, ids []string) string {
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
