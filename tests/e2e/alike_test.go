package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
)

// TestRepeatedRows checks lists in which the venue sends a row twice, also at the end of a page and the beginning of the next one.
// Each row appears once. If two rows with the same id differ, both appear, with different ids. The ids of clients do not depend on
// the page size.
func TestRepeatedRows(t *testing.T) {
	row := func(id, side string) object {
		return object{"id": id, "tradeId": id, "orderId": id, "type": "TRADE", "timestamp": 1764000000, "marketId": "M1", "tokenId": "T1", "outcome": "YES", "side": side, "price": "0.5", "size": "1",
			"filledSize": "0", "status": "OPEN"}
	}
	rows := []object{row("1", "BUY"), row("1", "BUY"), row("2", "BUY"), row("2", "SELL"), row("2", "BUY"), row("3", "BUY"), row("3", "BUY")}
	page := func(name string, rows []object) func(q url.Values) (int, any) {
		return func(q url.Values) (int, any) {
			limit, err := strconv.Atoi(q.Get("limit"))
			if err != nil {
				limit = len(rows)
			}
			offset, _ := strconv.Atoi(q.Get("offset"))
			offset = min(offset, len(rows))
			return http.StatusOK, object{name: rows[offset:min(offset+limit, len(rows))], "count": len(rows)}
		}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){"history": page("history", rows), "trades": page("trades", rows), "orders": page("orders", rows)})
	s := start(t, "--venue-url="+v.URL)
	for field, want := range map[string]string{
		"history": "[BUY BUY SELL BUY]", "trades": "[BUY BUY SELL BUY]", "orders": "[BUY BUY BUY]", // the list of orders ignores the side
	} {
		var whole []string
		for first := 7; first > 0; first-- {
			var sides, ids []string
			s.pages(t, `query ($after: String) { user(address: "`+addressOfAny+`") { `+field+`(first: `+strconv.Itoa(first)+`, after: $after) { nodes { id side }`+pageFields+`} } }`,
				"user."+field, nil, keyOfAny, func(page any) {
					if sides, ids = append(sides, pluck(page, "nodes", "side")...), append(ids, pluck(page, "nodes", "id")...); len(ids) > len(rows) {
						t.Fatalf("%s in pages of %d does not end: %v", field, first, ids)
					}
				})
			if whole == nil {
				whole = ids
			}
			if fmt.Sprint(sides) != want || !slices.Equal(ids, whole) {
				t.Errorf("%s in pages of %d: got the sides %v with the ids %v, want %s with the ids %v", field, first, sides, ids, want, whole)
			}
		}
		distinct := slices.Clone(whole)
		if slices.Sort(distinct); len(slices.Compact(distinct)) != len(whole) {
			t.Errorf("%s: two rows have the same id: %v", field, whole)
		}
	}
}

// TestMarketOnTwoPages checks a search in which a market moves to the next page of the venue while the service reads the pages for one
// page of its connection. The market must appear once.
func TestMarketOnTwoPages(t *testing.T) {
	market := func(id string) object {
		return object{"marketId": id, "question": "?", "status": "OPEN", "tokens": []object{{"tokenId": "T" + id, "outcome": "YES"}}}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){"market-search": func(q url.Values) (int, any) {
		if q.Get("cursor") == "" {
			return http.StatusOK, object{"markets": []object{market("A"), market("B")}, "nextCursor": "2"}
		}
		return http.StatusOK, object{"markets": []object{market("B"), market("C")}, "nextCursor": nil}
	}})
	s := start(t, "--venue-url="+v.URL)
	found := s.ask(t, `{ searchMarkets(first: 4) { nodes { marketId } pageInfo { hasNextPage } } }`, nil, anonymous)
	if got := fmt.Sprint(pluck(found, "searchMarkets.nodes", "marketId"), at(found, "searchMarkets.pageInfo.hasNextPage")); got != "[A B C] false" {
		t.Errorf("got the markets and the next page %s, want [A B C] false", got)
	}
}

// TestIndistinguishableRows checks lists whose rows have no id from the venue, and in which some rows are equal. Each row must
// appear once, with a unique id that does not depend on the page size.
func TestIndistinguishableRows(t *testing.T) {
	fill := func(price, size string) object {
		return object{"timestamp": 1764000000, "marketId": "M1", "tokenId": "T1", "outcome": "YES", "side": "BUY", "price": price, "size": size, "transactionHash": "0xabc"}
	}
	history := []object{fill("0.50", "10"), fill("0.51", "11"), fill("0.52", "12"), fill("0.53", "13")}
	trades := []object{fill("0.50", "10"), fill("0.51", "10"), fill("0.50", "10"), fill("0.5", "10.0")}
	page := func(rows []object, count bool) func(q url.Values) (int, any) {
		return func(q url.Values) (int, any) {
			limit, err := strconv.Atoi(q.Get("limit"))
			if err != nil {
				limit = len(rows)
			}
			offset, _ := strconv.Atoi(q.Get("offset"))
			offset = min(offset, len(rows))
			answer := object{"trades": rows[offset:min(offset+limit, len(rows))]}
			if count {
				answer["count"] = len(rows)
			}
			return http.StatusOK, answer
		}
	}
	for _, count := range []bool{true, false} {
		v := newStub(t, map[string]func(q url.Values) (int, any){
			"history": page(history, count), "trades": page(trades, count),
			"positions": func(url.Values) (int, any) {
				return http.StatusOK, `{"positions":[{"marketId":"M1","tokenId":"T1","outcome":"YES","size":10,"avgPrice":0.4},
					{"marketId":"M1","tokenId":"T1","outcome":"YES","size":12,"avgPrice":0.6},
					{"marketId":"M1","tokenId":"T1","outcome":"YES","size":12,"avgPrice":0.6},
					{"marketId":"M1","tokenId":"T1","outcome":"YES","size":13,"avgPrice":0.6}]}`
			},
		})
		s := start(t, "--venue-url="+v.URL)
		for field, want := range map[string]string{"history": "[10 11 12 13]", "trades": "[10 10 10 10.0]", "positions": "[10 12 12 13]"} {
			var whole []string
			for first := 5; first > 0; first-- {
				var sizes, ids []string
				s.pages(t, `query ($after: String) { user(address: "`+addressOfAny+`") { `+field+`(first: `+strconv.Itoa(first)+`, after: $after) { nodes { id size }`+pageFields+`} } }`,
					"user."+field, nil, keyOfAny, func(page any) {
						sizes, ids = append(sizes, pluck(page, "nodes", "size")...), append(ids, pluck(page, "nodes", "id")...)
					})
				if whole == nil {
					whole = ids
				}
				if fmt.Sprint(sizes) != want || !slices.Equal(ids, whole) {
					t.Errorf("%s in pages of %d (the venue sends a count: %t): got the sizes %v with the ids\n%v, want %s with the ids\n%v", field, first, count, sizes, ids, want, whole)
				}
			}
			if slices.Sort(whole); len(slices.Compact(whole)) != 4 {
				t.Errorf("%s: some rows have the same id", field)
			}
		}
		held := at(s.ask(t, `{ user(address: "`+addressOfAny+`") { positions { nodes { id size } } } }`, nil, keyOfAny), "user.positions")
		data := s.ask(t, `query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on Position { size } } }`, vars{"ids": pluck(held, "nodes", "id")}, keyOfAny)
		wantJSON(t, "positions that are read by their ids", at(data, "nodes"), asJSON(at(held, "nodes")))
	}
}
