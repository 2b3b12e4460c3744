package polymarket_test

import (
	"fmt"
	"net/url"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

func event(n int) any {
	return map[string]any{"id": fmt.Sprint(n), "slug": fmt.Sprint("e", n), "title": "E", "markets": []any{
		gammaMarket(n, false, map[string]any{"tags": []any{map[string]any{"label": "Rain", "slug": "rain"}}}),
	}}
}

// TestARepeatedCursorEndsAList checks lists whose last page has its own cursor as the next one, as users of Polymarket report. The rows
// of the last page stay.
func TestARepeatedCursorEndsAList(t *testing.T) {
	number := map[string]int{"": 1, "A": 2, "B": 3}
	for want, following := range map[string]map[string]string{"12": {"": "A", "A": "A"}, "123": {"": "A", "A": "B", "B": "B"}} {
		for _, more := range []any{true, false, nil} {
			keyset := func(name string, rows func(n int) []any) func(url.Values, []byte) answer {
				return func(q url.Values, _ []byte) answer {
					at := q.Get("after_cursor")
					return ok(map[string]any{name: rows(number[at]), "next_cursor": following[at]})
				}
			}
			records := func(q url.Values, _ []byte) answer {
				at := q.Get("cursor")
				row := map[string]any{"type": "TRADE", "condition_id": "0xa1", "token_id": fmt.Sprint(number[at]), "size": 1, "price": 0.5, "side": "BUY", "timestamp": 1900000000}
				return ok(map[string]any{"data": []any{row}, "pagination": map[string]any{"has_more": more, "next_cursor": following[at]}})
			}
			d, _, _ := open(t, answers{
				"GET /markets/keyset": keyset("markets", func(n int) []any {
					other := map[string]any{"negRiskOther": true, "events": []any{map[string]any{"id": "1", "negRiskAugmented": true}}} // is left out
					return []any{gammaMarket(0, false, other), gammaMarket(n, false, map[string]any{"tags": []any{map[string]any{"label": "Rain"}}})}
				}),
				"GET /events/keyset": keyset("events", func(n int) []any { return []any{event(n)} }), "GET /v2/trades": records, "GET /v2/activity": records,
			})
			open := []market.Status{market.StatusOpen}
			for name, read := range map[string]func(page string) (row, next string, err error){
				"markets": func(page string) (string, string, error) {
					p, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Status: open, Page: page})
					return p.Markets[0].MarketID, p.Next, err
				},
				"events": func(page string) (string, string, error) {
					p, err := d.SearchEvents(t.Context(), upstream.Call{}, queries.Search{Status: open, Page: page})
					return p.Events[0].EventID, p.Next, err
				},
				"public trades": func(page string) (string, string, error) {
					p, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "0xa1", Page: page})
					return p.Trades[0].TokenID, p.Next, err
				},
				"trades": func(page string) (string, string, error) {
					p, err := d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{Page: page})
					return p.Trades[0].TokenID, p.Next, err
				},
				"history": func(page string) (string, string, error) {
					p, err := d.History(t.Context(), upstream.Call{}, account, queries.History{Page: page})
					return p.Records[0].TokenID, p.Next, err
				},
			} {
				rows, page := "", ""
				for ok := true; ok && len(rows) < 9; ok = page != "" {
					row, next, err := read(page)
					if err != nil {
						t.Fatal(err)
					}
					rows, page = rows+row[len(row)-1:], next
				}
				if rows != want {
					t.Errorf("the list of %s has the rows %s, want %s", name, rows, want)
				}
			}
			c, err := d.Categories(t.Context(), upstream.Call{})
			if err != nil || len(c.List) != 1 || c.List[0] != (queries.Category{Name: "Rain", IsTag: true, OpenMarkets: len(want), Complete: true}) {
				t.Errorf("Categories returns %+v and the error %v, want %d markets with the tag Rain", c, err, len(want))
			}
		}
	}
}

// TestEndOfTheListOfPositions checks when the list of positions ends. Clients sum the positions, so the list may not end early. A
// repeated cursor ends it unless has_more is true. An empty page does not end it, as Polymarket documents.
func TestEndOfTheListOfPositions(t *testing.T) {
	type page struct {
		rows []any
		next any
		more any
	}
	endless := make([]page, 200)
	for i := range endless {
		endless[i] = page{next: fmt.Sprint(i + 1), more: true}
	}
	for name, test := range map[string]struct {
		pages []page
		want  string
		calls int
	}{
		"repeated":               {[]page{{[]any{position(1)}, "1", true}, {[]any{position(2)}, "1", false}}, "2 positions", 2},
		"repeated, no has_more":  {[]page{{[]any{position(1)}, "1", nil}, {[]any{position(2)}, "1", nil}}, "2 positions", 2},
		"repeated, more":         {[]page{{[]any{position(1)}, "1", true}, {[]any{position(2)}, "1", true}}, "UPSTREAM_BAD_RESPONSE", 2},
		"alternating":            {[]page{{[]any{position(1)}, "1", nil}, {[]any{position(2)}, "2", nil}, {[]any{position(3)}, "1", nil}}, "3 positions", 3},
		"alternating, more":      {[]page{{[]any{position(1)}, "1", true}, {[]any{position(2)}, "2", true}, {[]any{position(3)}, "1", true}}, "UPSTREAM_BAD_RESPONSE", 3},
		"empty page":             {[]page{{nil, "1", true}, {[]any{position(2)}, nil, false}}, "1 positions", 2},
		"empty page with a list": {[]page{{[]any{}, "1", true}, {[]any{}, "2", true}, {[]any{position(2)}, nil, false}}, "1 positions", 3},
		"endless":                {endless, "UPSTREAM_BAD_RESPONSE", 100},
	} {
		d, s, _ := open(t, answers{"GET /v2/positions": func(q url.Values, _ []byte) answer {
			n := 0
			_, _ = fmt.Sscan(q.Get("cursor"), &n)
			p := test.pages[n]
			return ok(map[string]any{"data": p.rows, "pagination": map[string]any{"has_more": p.more, "next_cursor": p.next}})
		}})
		list, err := d.Positions(t.Context(), upstream.Call{}, account)
		got := fmt.Sprint(len(list), " positions")
		if err != nil {
			got = string(market.CodeOf(err))
		}
		if got != test.want || len(s.calls) != test.calls {
			t.Errorf("%s: Positions returns %s (%v) after %d calls, want %s after %d calls", name, got, err, len(s.calls), test.want, test.calls)
		}
	}
}
