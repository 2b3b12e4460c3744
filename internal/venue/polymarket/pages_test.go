package polymarket_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// keysetPages answers a keyset endpoint with two pages: the rows of the first page, and the rows of the page at the cursor C. Both
// pages have the cursor C as the next cursor. Polymarket ends a list so: its users report that the last page repeats its own cursor.
func keysetPages(t *testing.T, name string, first, second []any) func(q url.Values, _ []byte) answer {
	return func(q url.Values, _ []byte) answer {
		rows := first
		switch q.Get("after_cursor") {
		case "":
		case "C":
			rows = second
		default:
			t.Errorf("the driver requests the cursor %q", q.Get("after_cursor"))
		}
		return ok(map[string]any{name: rows, "next_cursor": "C"})
	}
}

func event(n int) any {
	return map[string]any{"id": fmt.Sprint(n), "slug": fmt.Sprint("e", n), "title": "E", "markets": []any{
		gammaMarket(n, false, map[string]any{"tags": []any{map[string]any{"label": "Rain", "slug": "rain"}}}),
	}}
}

// TestARepeatedCursorEndsAListOfMarkets checks that the rows of the last page stay.
func TestARepeatedCursorEndsAListOfMarkets(t *testing.T) {
	tagged := map[string]any{"tags": []any{map[string]any{"label": "Rain", "slug": "rain"}}}
	other := map[string]any{"negRiskOther": true, "events": []any{map[string]any{"id": "1", "negRiskAugmented": true}}} // is left out
	lists := keysetPages(t, "markets", []any{gammaMarket(0, false, other), gammaMarket(1, false, tagged)}, []any{gammaMarket(2, false, tagged)})
	d, s, _ := open(t, answers{"GET /markets/keyset": lists, "GET /events/keyset": keysetPages(t, "events", []any{event(1)}, []any{event(2)})})
	open := []market.Status{market.StatusOpen}
	check(t, pages(t, d, queries.Search{Status: open}), [][]string{{"1"}, {"2"}})
	check(t, len(s.calls), 2)
	check(t, pages(t, d, queries.Search{}), [][]string{{"1"}, {"1"}, {"2", "2"}}) // the list of closed markets has the same rows here

	var got []string
	q := queries.Search{Status: open}
	for range 2 {
		page, err := d.SearchEvents(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(len(page.Events), " ", page.Events[0].EventID))
		q.Page = page.Next
	}
	check(t, got, []string{"1 1", "1 2"})
	check(t, q.Page, "")

	c, err := d.Categories(t.Context())
	if err != nil || len(c.List) != 1 || c.List[0] != (queries.Category{Name: "Rain", IsTag: true, OpenMarkets: 2, Complete: true}) {
		t.Errorf("Categories returns %+v and the error %v, want 2 markets with the tag Rain", c, err)
	}
}

// TestARepeatedCursorEndsAListOfRecords checks the lists of the Data API, with each value of has_more.
func TestARepeatedCursorEndsAListOfRecords(t *testing.T) {
	for _, more := range []any{true, false, nil} {
		page := func(q url.Values, _ []byte) answer {
			n := 1
			if q.Get("cursor") == "C" {
				n = 2
			}
			row := map[string]any{"type": "TRADE", "condition_id": "0xa1", "token_id": fmt.Sprint(n), "size": 1, "price": 0.5, "side": "BUY", "timestamp": 1900000000 - n}
			return ok(map[string]any{"data": []any{row}, "pagination": map[string]any{"has_more": more, "next_cursor": "C"}})
		}
		d, _, _ := open(t, answers{"GET /v2/trades": page, "GET /v2/activity": page})
		next, tokens := map[string]string{}, map[string]string{}
		for range 2 {
			p, err := d.Trades(t.Context(), account, queries.Trades{Page: next["own"]})
			if err != nil {
				t.Fatal(err)
			}
			next["own"], tokens["own"] = p.Next, tokens["own"]+p.Trades[0].TokenID
			if p, err = d.MarketTrades(t.Context(), queries.MarketTrades{MarketID: "0xa1", Page: next["public"]}); err != nil {
				t.Fatal(err)
			}
			next["public"], tokens["public"] = p.Next, tokens["public"]+p.Trades[0].TokenID
			h, err := d.History(t.Context(), account, queries.History{Page: next["history"]})
			if err != nil {
				t.Fatal(err)
			}
			next["history"], tokens["history"] = h.Next, tokens["history"]+h.Records[0].TokenID
		}
		check(t, next, map[string]string{"own": "", "public": "", "history": ""})
		check(t, tokens, map[string]string{"own": "12", "public": "12", "history": "12"})
	}
}

// TestAlternatingCursorsEndAList checks lists whose pages repeat the cursor of an earlier page: A, B, C and A again.
func TestAlternatingCursorsEndAList(t *testing.T) {
	following := map[string]string{"": "A", "A": "B", "B": "C", "C": "A"}
	number := map[string]int{"": 1, "A": 2, "B": 3, "C": 4}
	keyset := func(name string, row func(n int) any) func(url.Values, []byte) answer {
		return func(q url.Values, _ []byte) answer {
			at := q.Get("after_cursor")
			return ok(map[string]any{name: []any{row(number[at])}, "next_cursor": following[at]})
		}
	}
	records := func(q url.Values, _ []byte) answer {
		at := q.Get("cursor")
		row := map[string]any{"type": "TRADE", "condition_id": "0xa1", "token_id": fmt.Sprint(number[at]), "size": 1, "price": 0.5, "side": "BUY", "timestamp": 1900000000}
		return ok(map[string]any{"data": []any{row}, "pagination": map[string]any{"next_cursor": following[at]}})
	}
	d, _, _ := open(t, answers{
		"GET /markets/keyset": keyset("markets", func(n int) any { return gammaMarket(n, false, nil) }),
		"GET /events/keyset":  keyset("events", event), "GET /v2/trades": records, "GET /v2/activity": records,
	})
	open := []market.Status{market.StatusOpen}
	for name, read := range map[string]func(page string) (row, next string, err error){
		"markets": func(page string) (string, string, error) {
			p, err := d.Search(t.Context(), queries.Search{Status: open, Page: page})
			return p.Markets[0].MarketID, p.Next, err
		},
		"events": func(page string) (string, string, error) {
			p, err := d.SearchEvents(t.Context(), queries.Search{Status: open, Page: page})
			return p.Events[0].EventID, p.Next, err
		},
		"trades": func(page string) (string, string, error) {
			p, err := d.Trades(t.Context(), account, queries.Trades{Page: page})
			return p.Trades[0].TokenID, p.Next, err
		},
		"history": func(page string) (string, string, error) {
			p, err := d.History(t.Context(), account, queries.History{Page: page})
			return p.Records[0].TokenID, p.Next, err
		},
	} {
		var rows []string
		for page := ""; len(rows) < 9; {
			row, next, err := read(page)
			if err != nil {
				t.Fatal(err)
			}
			if rows, page = append(rows, row[len(row)-1:]), next; page == "" {
				break
			}
		}
		if got := strings.Join(rows, ""); got != "1234" {
			t.Errorf("the list of %s has the rows %s, want 1234", name, got)
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
		list, err := d.Positions(t.Context(), account)
		got := fmt.Sprint(len(list), " positions")
		if err != nil {
			got = string(market.CodeOf(err))
		}
		if got != test.want || len(s.calls) != test.calls {
			t.Errorf("%s: Positions returns %s (%v) after %d calls, want %s after %d calls", name, got, err, len(s.calls), test.want, test.calls)
		}
	}
}
