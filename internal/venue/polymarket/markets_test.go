package polymarket_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/polymarket"
)

func TestClosedMarketsTakeASecondCall(t *testing.T) {
	table := answers{
		"GET /markets/keyset": keyset(
			[]map[string]any{gammaMarket(1, false, nil), gammaMarket(2, false, nil)},
			[]map[string]any{
				gammaMarket(3, true, map[string]any{"umaResolutionStatus": "resolved", "outcomePrices": `["0","1"]`}),
				gammaMarket(4, true, map[string]any{"outcomePrices": `["1","0"]`}),
			}),
		"GET /markets/0xa4": func(url.Values, []byte) answer {
			return answer{status: 200, body: `{"condition_id":"0xa4","closed":true,"tokens":[{"token_id":"8","winner":true},{"token_id":"9","winner":false}]}`}
		},
	}
	d, s, _ := open(t, table)
	results, err := d.MarketsByID(t.Context(), upstream.Call{}, []string{"0xa3", "0xa1", "0xa4", "0xa9", "0xa2"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range results {
		switch {
		case r.Err != nil:
			got = append(got, r.Err.Error())
		case r.Value == nil:
			got = append(got, "absent")
		default:
			winner := "nobody"
			if w := r.Value.Winner(); w != nil {
				winner = w.Label
			}
			got = append(got, fmt.Sprint(r.Value.MarketID, " ", r.Value.Status, " ", winner))
		}
	}
	check(t, got, []string{"0xa3 RESOLVED No", "0xa1 OPEN nobody", "0xa4 RESOLVED Yes", "absent", "0xa2 OPEN nobody"})

	s.calls = nil
	results, err = d.MarketsByToken(t.Context(), upstream.Call{}, []string{"9", "8"})
	if err != nil || results[0].Value == nil || results[0].Value != results[1].Value {
		t.Fatalf("MarketsByToken returns %+v and the error %v, want the same market twice", results, err)
	}
	check(t, fmt.Sprint(results[0].Value.Status, " ", results[0].Value.Winner().Label), "RESOLVED Yes")
	check(t, []int{s.count("GET /markets/keyset"), s.count("GET /markets/0xa4")}, []int{2, 1})

	m, err := d.MarketBySlug(t.Context(), upstream.Call{}, "slug-2")
	if err != nil || m == nil || m.MarketID != "0xa2" {
		t.Errorf("MarketBySlug of slug-2 returns %+v and the error %v, want 0xa2", m, err)
	}
	if m, err = d.MarketBySlug(t.Context(), upstream.Call{}, "slug-99"); err != nil || m != nil {
		t.Errorf("MarketBySlug of an unknown slug returns %+v and the error %v", m, err)
	}
}

func TestAnIgnoredFilterIsNoticed(t *testing.T) {
	all := func(url.Values, []byte) answer {
		return ok(map[string]any{"markets": []any{gammaMarket(1, false, nil)}})
	}
	d, _, _ := open(t, answers{"GET /markets/keyset": all, "GET /events/keyset": func(url.Values, []byte) answer {
		return ok(map[string]any{"events": []any{map[string]any{"id": "5", "slug": "five", "markets": []any{}}}})
	}})
	results, err := d.MarketsByID(t.Context(), upstream.Call{}, []string{"0xa1", "0xa2"})
	if err != nil || results[0].Value == nil || market.CodeOf(results[1].Err) != market.CodeUpstreamBadResponse {
		t.Errorf("MarketsByID returns %+v and the error %v, want a market and UPSTREAM_BAD_RESPONSE", results, err)
	}
	if e, err := d.Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "6"}); e != nil || market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("Event of the id 6 returns %+v and the error %v, want UPSTREAM_BAD_RESPONSE", e, err)
	}
	if e, err := d.Event(t.Context(), upstream.Call{}, market.EventRef{EventSlug: "five"}); e == nil || err != nil {
		t.Errorf("Event of the slug five returns %+v and the error %v, want the event", e, err)
	}
}

func TestManyMarketsTakeTheEstimatedCalls(t *testing.T) {
	var open1 []map[string]any
	var want []string
	for i := range 90 {
		open1 = append(open1, gammaMarket(i, false, nil))
		want = append(want, fmt.Sprintf("0xa%d", i))
	}
	d, s, _ := open(t, answers{"GET /markets/keyset": keyset(open1, nil)})
	results, err := d.MarketsByID(t.Context(), upstream.Call{}, want)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Value == nil || r.Value.MarketID != want[i] {
			t.Fatalf("the result of %s is %+v", want[i], r)
		}
	}
	check(t, len(s.calls), d.Cost(upstream.EndpointMarketsByID, 90, 0))
	for _, call := range s.calls {
		if len(call) > 4<<10 {
			t.Errorf("a URL has %d bytes, want at most 4096", len(call))
		}
	}
}

func TestAClosedEvent(t *testing.T) {
	d, s, _ := open(t, answers{"GET /events/keyset": func(q url.Values, _ []byte) answer {
		rows := []any{}
		if q.Get("closed") == "true" && q.Get("id") == "5" {
			rows = append(rows, map[string]any{"id": "5", "slug": "five", "title": "Five", "negRisk": true, "markets": []any{gammaMarket(1, true, nil)}})
		}
		return ok(map[string]any{"events": rows})
	}})
	e, err := d.Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "5"})
	if err != nil || e == nil || len(e.Markets) != 1 || e.Exclusive == nil || !*e.Exclusive || e.Volume == nil {
		t.Fatalf("Event of a closed event returns %+v and the error %v", e, err)
	}
	if e, err = d.Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "6"}); e != nil || err != nil {
		t.Errorf("Event of an unknown id returns %+v and the error %v", e, err)
	}
	check(t, len(s.calls), 4)
}

// pages reads all pages of a search.
func pages(t *testing.T, d *polymarket.Driver, q queries.Search) (got [][]string) {
	t.Helper()
	for range 60 {
		p, err := d.Search(t.Context(), upstream.Call{}, q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ids(p.Markets))
		if q.Page = p.Next; q.Page == "" {
			return got
		}
	}
	t.Fatal("the search does not end")
	return nil
}

func TestAListOfOpenAndClosedMarketsIsMerged(t *testing.T) {
	var both [2][]map[string]any
	var want []string
	for i := range 240 { // the volumes descend, and every third market is closed
		n := 0
		if i%3 == 2 {
			n = 1
		}
		both[n] = append(both[n], gammaMarket(i, n == 1, nil))
		want = append(want, strconv.Itoa(i))
	}
	d, s, _ := open(t, answers{"GET /markets/keyset": keyset(both[0], both[1])})
	for _, q := range []queries.Search{{Limit: 7}, {Limit: 90}, {Limit: 20, Sort: queries.SortVolume}, {Limit: 100, Sort: queries.SortVolume24h, Direction: queries.Descending}} {
		s.calls = nil
		got := pages(t, d, q)
		check(t, slices.Concat(got...), want)
		if len(s.calls) > 2*len(got) {
			t.Errorf("the driver makes %d calls for %d pages, want at most two calls for each page", len(s.calls), len(got))
		}
	}
	// A read of the same page with a greater limit begins with the same markets.
	first, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	small, err1 := d.Search(t.Context(), upstream.Call{}, queries.Search{Limit: 5, Page: first.Next})
	great, err2 := d.Search(t.Context(), upstream.Call{}, queries.Search{Limit: 30, Page: first.Next})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	check(t, ids(small.Markets), want[10:15])
	check(t, ids(great.Markets), want[10:40])

	s.calls = nil
	open := pages(t, d, queries.Search{Limit: 100, Status: []market.Status{market.StatusOpen}})
	check(t, len(slices.Concat(open...)), 160)
	check(t, len(s.calls), 2)
	for _, bad := range []string{"x", `[{"s":1},2]`, `[{},{},{}]`, `[{"s":-1},{"e":true}]`, `[{"s":101},{"e":true}]`} {
		if _, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Page: bad}); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("Search with the invalid page %q returns the error %v, want BAD_USER_INPUT", bad, err)
		}
	}
}

func TestASortThatGammaIgnoresIsUnsupported(t *testing.T) {
	var list []map[string]any
	for i := range 30 {
		list = append(list, gammaMarket(i, false, map[string]any{"liquidity": fmt.Sprint(i * 7 % 30)}))
	}
	d, _, _ := open(t, answers{"GET /markets/keyset": keyset(list, nil)})
	_, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Sort: queries.SortLiquidity, Limit: 30, Status: []market.Status{market.StatusOpen}})
	check(t, market.CodeOf(err), market.CodeUnsupported)
}

// TestEventsWithoutSortField checks that the driver detects that Gamma ignores a sort, even if most events lack the field of the
// sort. If only one event is out of order, the search must succeed.
func TestEventsWithoutSortField(t *testing.T) {
	for _, test := range []struct {
		liquidity []int
		want      market.Code
	}{{[]int{0, 5, 1, 6, 2, 7}, market.CodeUnsupported}, {[]int{7, 6, 5, 2, 1, 3}, ""}, {[]int{7, 6, 5, 2, 1}, ""}} {
		var list []any
		for i := range 48 {
			event := map[string]any{"id": fmt.Sprint(i), "slug": fmt.Sprint("e", i), "title": "E", "markets": []any{gammaMarket(i, false, nil)}}
			if i < len(test.liquidity) {
				event["liquidity"] = test.liquidity[i]
			}
			list = append(list, event)
		}
		d, _, _ := open(t, answers{"GET /events/keyset": func(url.Values, []byte) answer { return ok(map[string]any{"events": list}) }})
		_, err := d.SearchEvents(t.Context(), upstream.Call{}, queries.Search{Sort: queries.SortLiquidity, Direction: queries.Descending, Status: []market.Status{market.StatusOpen}})
		if got := market.CodeOf(err); (err != nil) != (test.want != "") || err != nil && got != test.want {
			t.Errorf("for events with the liquidity %v, SearchEvents returns the error %v, want the code %q", test.liquidity, err, test.want)
		}
	}
}

func TestTagsAreLookedUpOnceADay(t *testing.T) {
	d, s, c := open(t, answers{
		"GET /markets/keyset": func(q url.Values, _ []byte) answer {
			if q.Get("tag_id") != "102" {
				t.Errorf("the request has the tag_id %q, want 102", q.Get("tag_id"))
			}
			return keyset([]map[string]any{gammaMarket(1, false, nil)}, nil)(q, nil)
		},
		"GET /tags/slug/crypto-prices": func(url.Values, []byte) answer { return ok(map[string]any{"id": "102", "slug": "crypto-prices"}) },
		"GET /tags/slug/nothing": func(url.Values, []byte) answer {
			return answer{status: 404, body: `{"type":"not found error","error":"slug not found"}`}
		},
	})
	for _, step := range []struct {
		wait time.Duration
		tag  string
		want int
	}{{0, "Crypto Prices", 1}, {time.Hour, "crypto-prices", 1}, {23*time.Hour + time.Second, "crypto-prices", 2}} {
		c.Advance(step.wait)
		page, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Tag: step.tag})
		if err != nil || len(page.Markets) != 1 {
			t.Fatalf("Search by tag returns %+v and the error %v, want one market", page, err)
		}
		check(t, s.count("GET /tags/slug/crypto-prices"), step.want)
	}
	for range 2 {
		page, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Tag: "nothing"})
		if err != nil || len(page.Markets) != 0 {
			t.Fatalf("Search by an unknown tag returns %+v and the error %v, want no market", page, err)
		}
	}
	check(t, s.count("GET /tags/slug/nothing"), 1)
}

func TestSearchByText(t *testing.T) {
	d, s, _ := open(t, answers{"GET /public-search": func(q url.Values, _ []byte) answer {
		page, _ := strconv.Atoi(q.Get("page"))
		return ok(map[string]any{
			"events": []any{map[string]any{"id": "5", "slug": "five", "title": "Five", "tags": []any{map[string]any{"label": "Crypto Prices"}}, "markets": []any{
				gammaMarket(10*page, false, nil), gammaMarket(10*page+1, true, nil), map[string]any{"question": "bad"},
			}}},
			"pagination": map[string]any{"hasMore": page < 2, "totalResults": 99},
		})
	}})
	check(t, pages(t, d, queries.Search{Text: "bit coin & co"}), [][]string{{"10", "11"}, {"20", "21"}})
	if !strings.Contains(s.calls[0], "q=bit+coin+%26+co&") {
		t.Errorf("the driver calls %s, want the escaped text in q", s.calls[0])
	}
	p, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Text: "bitcoin", Tag: "crypto-prices", Status: []market.Status{market.StatusOpen}})
	if err != nil || len(p.Markets) != 1 || len(p.LeftOut) != 1 || p.Total != nil || p.Markets[0].EventTitle != "Five" {
		t.Errorf("Search by text and tag returns %+v and the error %v, want one market of the event Five and one bad row", p, err)
	}
	for _, q := range []queries.Search{{Text: "b", Sort: queries.SortVolume}, {Category: "Sports"}} {
		if _, err := d.Search(t.Context(), upstream.Call{}, q); market.CodeOf(err) != market.CodeUnsupported {
			t.Errorf("Search of %+v returns the error %v, want UNSUPPORTED", q, err)
		}
	}
}
