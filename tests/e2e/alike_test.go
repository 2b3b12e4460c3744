package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
)

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
