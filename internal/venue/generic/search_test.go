package generic

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

func searchRow(fields string) string {
	return `{` + fields + `,"outcomes":[]}`
}

func runSearch(t *testing.T, body string, q queries.Search) (string, *queries.SearchPage, error) {
	t.Helper()
	page, err := newVenue(t, everywhere(answer(body))).client(t).Search(t.Context(), upstream.Call{}, q)
	if err != nil {
		return string(market.CodeOf(err)), nil, err
	}
	var ids []string
	for _, m := range page.Markets {
		ids = append(ids, m.MarketID)
	}
	return strings.Join(ids, " "), page, nil
}

func TestSearchFiltersRows(t *testing.T) {
	december := func(day int) queries.Bound { return queries.At(time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC)) }
	rows := `{"totalCount":3,"markets":[` + strings.Join([]string{
		searchRow(`"marketId":"A","status":"OPEN","category":"Sports","tags":["Cup","final"],"endDate":"2026-12-01T00:00:00Z","eventId":"E1","eventSlug":"e-1"`),
		searchRow(`"marketId":"B","status":"active","category":"sports","tags":["cup"],"endDate":"2026-12-05T00:00:00Z","eventId":"E2","eventSlug":"e-2"`),
		searchRow(`"marketId":"C","status":"PAUSED","category":"Politics","tags":[],"endDate":"2026-12-09T00:00:00Z","eventId":"E1","eventSlug":"e-1"`),
		searchRow(`"marketId":"D","status":"CLOSED"`),
	}, ",") + `]}`
	for _, tt := range []struct {
		q    queries.Search
		want string
	}{
		{queries.Search{}, "A B C D"},
		{queries.Search{Status: []market.Status{market.StatusOpen}}, "A B"},
		{queries.Search{Status: []market.Status{market.StatusOpen, market.StatusClosed}}, "A B D"},
		{queries.Search{Status: []market.Status{market.StatusDisputed}}, ""},
		{queries.Search{Category: "SPORTS"}, "A B"},
		{queries.Search{Tag: "cup"}, "A B"},
		{queries.Search{Tag: "final"}, "A"},
		{queries.Search{EndsAfter: december(5)}, "B C"},
		{queries.Search{EndsBefore: december(5)}, "A B"},
		{queries.Search{EndsBefore: queries.At(time.Time{})}, ""},
		{queries.Search{EndsAfter: december(2), EndsBefore: december(5)}, "B"},
		{queries.Search{EventID: "E1"}, "A C"},
		{queries.Search{EventSlug: "e-2"}, "B"},
		{queries.Search{EventID: "E1", Category: "Politics"}, "C"},
	} {
		got, page, err := runSearch(t, rows, tt.q)
		if got != tt.want || err != nil {
			t.Errorf("the search %+v returned %q and the error %v, want %q", tt.q, got, err, tt.want)
			continue
		}
		if all := tt.want == "A B C D"; all != (page.Total != nil) {
			t.Errorf("the search %+v has the total %v, want a total only if the client dropped no rows", tt.q, page.Total)
		}
	}
}

// TestSearchUncheckedFilter checks that a search returns UNSUPPORTED if no row has the field that the filter needs. If the venue
// sends no rows, the search must return no error.
func TestSearchUncheckedFilter(t *testing.T) {
	rows := `[` + searchRow(`"marketId":"A"`) + `,` + searchRow(`"marketId":"B"`) + `]`
	for _, q := range []queries.Search{
		{Status: []market.Status{market.StatusOpen}}, {Category: "c"}, {Tag: "t"}, {EndsAfter: queries.At(time.Unix(1, 0))}, {EndsBefore: queries.At(time.Time{})},
		{EventID: "E"}, {EventSlug: "e"},
	} {
		if got, _, err := runSearch(t, rows, q); got != string(market.CodeUnsupported) {
			t.Errorf("the search %+v returned %q and the error %v, want %s", q, got, err, market.CodeUnsupported)
		}
		if got, _, err := runSearch(t, `[]`, q); got != "" || err != nil {
			t.Errorf("with no rows, the search %+v returned %q and the error %v, want neither", q, got, err)
		}
	}
}

func TestSearchSort(t *testing.T) {
	rows := func(volumes ...string) string {
		var list []string
		for i, v := range volumes {
			fields := fmt.Sprintf(`"marketId":"M%d"`, i)
			if v != "" {
				fields += fmt.Sprintf(`,"volume":%s,"volume24h":%[1]s,"liquidity":"%[1]s","startDate":%s,"endDate":%[2]s`, v, v)
			}
			list = append(list, searchRow(fields))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	many := []string{"100", "90", "80", "70", "60", "50", "40", "30", "10", "20", "5", "4"}
	for _, sort := range []queries.Sort{queries.SortVolume, queries.SortVolume24h, queries.SortLiquidity, queries.SortStartsAt, queries.SortEndsAt} {
		for _, tt := range []struct {
			rows      string
			direction queries.Direction
			want      string
		}{
			{rows("30", "20.5", "20.5", "10"), queries.Descending, "M0 M1 M2 M3"},
			{rows("10", "20", "30"), queries.Ascending, "M0 M1 M2"},
			{rows("10", "20", "30"), queries.Descending, "UNSUPPORTED"},
			{rows("30", "10", "20"), queries.Descending, "UNSUPPORTED"},
			{rows("9", "10"), queries.Descending, "UNSUPPORTED"},
			{rows("30", "", "20"), queries.Descending, "M0 M1 M2"},
			{rows("10", "20"), "", "M0 M1"},
			{rows("7"), queries.Descending, "M0"},
			{rows(append([]string{""}, many...)...), queries.Descending, "M1 M2 M3 M4 M5 M6 M7 M8 M10 M9 M11 M12 M0"},
		} {
			if got, _, err := runSearch(t, tt.rows, queries.Search{Sort: sort, Direction: tt.direction}); got != tt.want {
				t.Errorf("the sort by %s, %s, of the rows %s returned %q and the error %v, want %q", sort, tt.direction, tt.rows, got, err, tt.want)
			}
		}
	}
	if got, _, err := runSearch(t, rows("1", "3", "2"), queries.Search{Sort: queries.SortRelevance, Direction: queries.Descending}); got != "M0 M1 M2" {
		t.Errorf("the search by relevance returned %q and the error %v, want the order of the venue", got, err)
	}
}

func TestSearchOffsetPages(t *testing.T) {
	body := `{"markets":[` + searchRow(`"marketId":"A","volume":1`) + `],"total":3}`
	c := newVenue(t, everywhere(answer(body))).client(t)
	first, err := c.Search(t.Context(), upstream.Call{}, queries.Search{})
	if err != nil || first.Next == "" {
		t.Fatalf("the first search returned %+v and the error %v, want a next page", first, err)
	}
	// This venue ignores the offset, so it returns the first page again, with another volume.
	again := newVenue(t, everywhere(answer(strings.Replace(body, `"volume":1`, `"volume":2`, 1)))).client(t)
	second, err := again.Search(t.Context(), upstream.Call{}, queries.Search{Page: first.Next})
	if err != nil || len(second.Markets) != 0 || second.Next != "" {
		t.Errorf("the search for the repeated page returned %+v and the error %v, want an empty last page", second, err)
	}
}

func TestSearchDropsDuplicates(t *testing.T) {
	got, _, err := runSearch(t, `[`+searchRow(`"marketId":"A"`)+`,`+searchRow(`"marketId":"B"`)+`,`+searchRow(`"marketId":"A"`)+`]`, queries.Search{})
	if got != "A B" {
		t.Errorf("got the markets %q and the error %v, want A and B", got, err)
	}
}

func TestSearchAllRowsBad(t *testing.T) {
	if got, _, err := runSearch(t, `{"markets":[{"marketId":"A"},{}]}`, queries.Search{}); got != string(market.CodeUpstreamBadResponse) {
		t.Errorf("got %q and the error %v, want %s", got, err, market.CodeUpstreamBadResponse)
	}
}

// TestSearchPairOfTwoMarkets checks a response that contains only a yes token and a no token. If the tokens belong to two markets,
// the search must fail.
func TestSearchPairOfTwoMarkets(t *testing.T) {
	handlers := everywhere(answer(goldenFile(t, "market-details/object")))
	handlers["/api/exchange/market-search"] = answer(`{"yes":"101","no":"202"}`)
	if page, err := newVenue(t, handlers).client(t).Search(t.Context(), upstream.Call{}, queries.Search{}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("got %+v and the error %v, want %s", page, err, market.CodeUpstreamBadResponse)
	}
}

// TestEvent checks that an event contains the markets of all search pages, and a market on two pages only once. If there are more
// than maxEventPages pages, the read must fail.
func TestEvent(t *testing.T) {
	for pages := 1; pages <= 7; pages++ {
		v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
			i, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			next := ""
			if i+1 < pages {
				next = fmt.Sprintf(`"nextCursor":"%d",`, i+1)
			}
			row := `"eventId":"e1","eventSlug":"slug","eventTitle":"Title","volume":"1"`
			_, _ = fmt.Fprintf(w, `{%s"markets":[%s,%s]}`, next, searchRow(fmt.Sprintf(`"marketId":"%d",%s`, i, row)), searchRow(fmt.Sprintf(`"marketId":"%d",%s`, i+1, row)))
		}))
		e, err := v.client(t).Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "e1", EventSlug: "other"})
		if pages > maxEventPages {
			if market.CodeOf(err) != market.CodeUpstreamBadResponse || e != nil || v.count() != maxEventPages {
				t.Errorf("with %d pages, Event returned %+v and the error %v after %d calls, want %s after %d calls", pages, e, err, v.count(), market.CodeUpstreamBadResponse, maxEventPages)
			}
			continue
		}
		if err != nil || v.count() != pages {
			t.Fatalf("with %d pages, Event returned the error %v after %d calls", pages, err, v.count())
		}
		if e.EventID != "e1" || e.Slug != "slug" || e.Title != "Title" || len(e.Markets) != pages+1 || e.Volume.String() != fmt.Sprint(pages+1) {
			t.Errorf("with %d pages, Event returned %+v", pages, e)
		}
		for i, q := range v.queries() {
			if !strings.Contains(q, "eventId=e1") || strings.Contains(q, "other") || !strings.Contains(q, "limit=100") || strings.Contains(q, "cursor=") != (i > 0) {
				t.Errorf("with %d pages, the request for page %d has the query %s", pages, i, q)
			}
		}
	}
}

// TestEventBySlug checks that Event searches for a slug, and returns nil if the search finds no market.
func TestEventBySlug(t *testing.T) {
	v := newVenue(t, everywhere(answer(`{"markets":[]}`)))
	if e, err := v.client(t).Event(t.Context(), upstream.Call{}, market.EventRef{EventSlug: "s"}); e != nil || err != nil {
		t.Errorf("Event returned %+v and the error %v, want neither", e, err)
	}
	if q := v.queries(); len(q) != 1 || !strings.Contains(q[0], "eventSlug=s") || strings.Contains(q[0], "eventId") {
		t.Errorf("the requests have the queries %q, want one query with the slug", q)
	}
}

// TestBooksAndHistories checks that Books and PriceHistories make one call for each query. It also checks that Books fails if every
// call fails.
func TestBooksAndHistories(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		switch id := r.URL.Query().Get("tokenId"); {
		case id == "missing":
			w.WriteHeader(http.StatusNotFound)
		case id == "bad":
			answer(`[]`)(w, r)
		case strings.HasSuffix(r.URL.Path, "orderbook"):
			answer(`{"bids":[["0.4","1"]],"asks":[]}`)(w, r)
		default:
			answer(`{"history":[]}`)(w, r)
		}
	}))
	c := v.client(t)
	books, err := c.Books(t.Context(), upstream.Call{}, []queries.Book{{TokenID: "1", Depth: 5}, {TokenID: "missing", Depth: 5}, {TokenID: "bad", Depth: 5}})
	if err != nil || books[0].Value == nil || books[1].Value != nil || books[1].Err != nil || books[2].Err == nil || v.count() != 3 {
		t.Errorf("Books returned %+v and the error %v after %d calls, want a book, an absent book and an error after 3 calls", books, err, v.count())
	}
	histories, err := c.PriceHistories(t.Context(), upstream.Call{}, []queries.PriceHistory{{TokenID: "1", From: 2, To: 3}, {TokenID: "missing", From: 2, To: 3}})
	if err != nil || histories[0].Value == nil || histories[1].Value != nil || v.count() != 5 {
		t.Errorf("PriceHistories returned %+v and the error %v after %d calls in total, want a history and an absent history after 5 calls", histories, err, v.count())
	}
	if _, err := c.Books(t.Context(), upstream.Call{}, []queries.Book{{TokenID: "bad", Depth: 5}}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("Books returned the error %v, want %s", err, market.CodeUpstreamBadResponse)
	}
}
