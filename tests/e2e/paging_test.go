package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

// pages reads a connection page by page to its end, and checks the pageInfo and the cursors of each page. It calls visit for every
// page. The query must have the variable $after and select nodes, edges { cursor } and pageInfo.
func (s *service) pages(t testing.TB, query, path string, variables vars, credentials string, visit func(page any)) {
	t.Helper()
	pageVariables := vars{"after": nil}
	for name, v := range variables {
		pageVariables[name] = v
	}
	for first := true; ; first = false {
		page := at(s.ask(t, query, pageVariables, credentials), path)
		visit(page)
		info := at(page, "pageInfo")
		edges := pluck(page, "edges", "cursor")
		if n := len(list(page, "nodes")); n != len(edges) {
			t.Fatalf("a page has %d nodes and %d edges, want equal numbers", n, len(edges))
		}
		if at(info, "hasPreviousPage") != !first {
			t.Errorf("hasPreviousPage is %v, want %t", at(info, "hasPreviousPage"), !first)
		}
		if len(edges) > 0 && (text(info, "startCursor") != edges[0] || text(info, "endCursor") != edges[len(edges)-1]) {
			t.Errorf("pageInfo is %s, but the cursors of the edges are %v", asJSON(info), edges)
		}
		if at(info, "hasNextPage") != true {
			return
		}
		pageVariables["after"] = text(info, "endCursor")
		if pageVariables["after"] == "" {
			t.Fatal("hasNextPage is true, but endCursor is empty")
		}
	}
}

const pageFields = ` pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount edges { cursor } `

func TestPagesShowEachElementOnce(t *testing.T) {
	s := start(t)
	ids := func(v any, path, member string) []string { return pluck(v, path, member) }
	raw := func(path, list, member, query, key string) []string {
		return ids(s.raw(t, path, query, key), list, member)
	}
	account := "address=" + addressOf50 + "&limit=500"
	var eventMarkets []string
	for _, token := range s.venue.Tokens() {
		if token.EventID == "10001" && !slices.Contains(eventMarkets, token.MarketID) {
			eventMarkets = append(eventMarkets, token.MarketID)
		}
	}
	searched := raw("/api/exchange/market-search", "markets", "marketId", "q=win&status=OPEN&limit=100&sort=volume", anonymous)
	for _, test := range []struct {
		name, query, path, member string
		key                       string
		sizes                     []int
		want                      []string
		inOrder                   bool
		total                     string
	}{
		{"positions", `user(address: "` + addressOf50 + `") { positions(first: $first, after: $after) { nodes { tokenId }` + pageFields + `} }`, "user.positions", "tokenId",
			keyOf50, []int{1, 7, 49, 50, 500}, raw("/api/user/positions", "positions", "tokenId", account, keyOf50), true, "50"},
		{"orders", `user(address: "` + addressOf50 + `") { orders(first: $first, after: $after) { nodes { orderId }` + pageFields + `} }`, "user.orders", "orderId",
			keyOf50, []int{1, 3, 500}, raw("/api/user/orders", "orders", "orderId", account, keyOf50), true, "10"},
		{"trades", `user(address: "` + addressOf50 + `") { trades(first: $first, after: $after) { nodes { tradeId }` + pageFields + `} }`, "user.trades", "tradeId",
			keyOf50, []int{23, 100}, raw("/api/user/trades", "trades", "tradeId", account, keyOf50), true, "<nil>"},
		{"history", `user(address: "` + addressOf50 + `") { history(first: $first, after: $after) { nodes { timestamp kind amount transactionHash tokenId }` + pageFields + `} }`, "user.history", "transactionHash",
			keyOf50, []int{31, 100}, raw("/api/user/history", "history", "transactionHash", account, keyOf50), true, "<nil>"},
		{"search", `searchMarkets(query: "win", filter: {status: OPEN}, sort: VOLUME, first: $first, after: $after) { nodes { marketId }` + pageFields + `}`, "searchMarkets", "marketId",
			anonymous, []int{37, 100}, searched, true, ""},
		{"event", `event(eventId: "10001") { markets(first: $first, after: $after) { nodes { marketId }` + pageFields + `} }`, "event.markets", "marketId",
			anonymous, []int{1, 3, 500}, eventMarkets, false, fmt.Sprint(len(eventMarkets))},
	} {
		for _, size := range test.sizes {
			t.Run(fmt.Sprintf("%s, %d on each page", test.name, size), func(t *testing.T) {
				var got []string
				pages := 0
				s.pages(t, "query ($first: Int!, $after: String) { "+test.query+" }", test.path, vars{"first": size}, test.key, func(page any) {
					pages++
					nodes := ids(page, "nodes", test.member)
					got = append(got, nodes...)
					if len(nodes) > size {
						t.Errorf("a page has %d nodes, want at most %d", len(nodes), size)
					}
					if total := fmt.Sprint(at(page, "totalCount")); test.total != "" && total != test.total {
						t.Errorf("totalCount is %s, want %s", total, test.total)
					}
				})
				want := test.want
				if test.name == "search" { // want has only the 100 markets that the venue returns in one response
					if len(got) < len(want) {
						t.Fatalf("the pages have %d markets, want at least %d", len(got), len(want))
					}
					all := slices.Clone(got)
					slices.Sort(all)
					if len(slices.Compact(all)) != len(got) {
						t.Error("a market is on two pages")
					}
					got = got[:len(want)]
				}
				if !test.inOrder {
					slices.Sort(got)
					want = slices.Sorted(slices.Values(want))
				}
				if !slices.Equal(got, want) {
					t.Errorf("the pages have %d elements, want %d:\n got %v\nwant %v", len(got), len(want), got, want)
				}
				if least := len(want) / size; pages < least {
					t.Errorf("read %d pages, want at least %d", pages, least)
				}
			})
		}
	}
}

func TestAPageCostsAtMostOneCall(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		name, query, path, key string
		want                   calls // the calls for all pages together, or nil if each page needs one call
	}{
		{"positions", `user(address: "` + addressOf50 + `") { positions(first: 10, after: $after) { nodes { tokenId }` + pageFields + `} }`, "user.positions", keyOf50, calls{"positions": {1, 1}}},
		{"trades", `user(address: "` + addressOf50 + `") { trades(first: 50, after: $after) { nodes { tradeId }` + pageFields + `} }`, "user.trades", keyOf50, nil},
		{"search", `searchMarkets(query: "win", first: 50, after: $after) { nodes { marketId }` + pageFields + `}`, "searchMarkets", anonymous, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			pages := int64(0)
			got := s.callsDuring(func() {
				s.pages(t, "query ($after: String) { "+test.query+" }", test.path, nil, test.key, func(any) { pages++ })
			})
			if pages < 3 {
				t.Fatalf("read %d pages, want at least 3", pages)
			}
			want := test.want
			if want == nil {
				want = calls{map[string]string{"trades": "trades", "search": "market-search"}[test.name]: {pages, pages}}
			}
			wantCalls(t, got, want)
		})
	}
}

// TestPagesSkipNothingWhenPositionsClose closes positions after the first page. Each position that stays open must appear exactly
// once. A closed position must appear only if it was on the first page.
func TestPagesSkipNothingWhenPositionsClose(t *testing.T) {
	t.Parallel()
	const query = `query ($after: String, $sort: PositionSort) { user(address: "` + addressOf50 + `") { positions(first: 20, after: $after, sort: $sort) { nodes { tokenId } ` + pageFields + ` } } }`
	for sort, closings := range map[string][][]int{
		"VENUE":   {{19}, {0, 1, 2}, {19, 20}, {18, 19, 20, 21}, {40}, {5, 19, 30}, {12, 13, 14, 15, 16, 17, 18, 19}},
		"ENDS_AT": {{19}, {18, 19, 20, 21}, {15, 19, 30}},
	} {
		for _, closing := range closings {
			t.Run(fmt.Sprintf("sort %s, the positions %v close", sort, closing), func(t *testing.T) {
				s := start(t)
				all := pluck(s.ask(t, strings.Replace(query, "first: 20", "first: 500", 1), vars{"sort": sort}, keyOf50), "user.positions.nodes", "tokenId")
				seen := map[string]int{}
				closed := map[string]bool{}
				firstPage := map[string]bool{}
				page := 0
				s.pages(t, query, "user.positions", vars{"sort": sort}, keyOf50, func(p any) {
					for _, id := range pluck(p, "nodes", "tokenId") {
						seen[id]++
						firstPage[id] = page == 0
					}
					if page++; page > 1 {
						return
					}
					held := map[string]demo.Position{}
					for _, p := range s.venue.Positions(addressOf50) {
						held[p.TokenID] = p
					}
					for _, i := range closing {
						if s.venue.Trade(addressOf50, all[i], demo.Sell, held[all[i]].Size) == nil { // an error means that the market is not open
							closed[all[i]] = true
						}
					}
					s.clock.Advance(5 * time.Second)
				})
				if len(closed) == 0 {
					t.Fatal("none of the positions to close is in an open market")
				}
				for i, id := range all {
					want := 1
					if closed[id] && !firstPage[id] {
						want = 0
					}
					if seen[id] != want {
						t.Errorf("position %d (closed: %t) was on the pages %d times, want %d", i, closed[id], seen[id], want)
					}
				}
			})
		}
	}
}

// TestPagesRepeatNothingWhenTradesArrive checks that new trades between two pages do not change the first 100 elements. All
// elements must be in order, the newest first.
func TestPagesRepeatNothingWhenTradesArrive(t *testing.T) {
	s := start(t)
	for _, field := range []struct{ name, id string }{{"trades", "tradeId"}, {"history", "id"}} {
		query := `query ($after: String) { user(address: "` + addressOf50 + `") { ` + field.name + `(first: 40, after: $after) { nodes { ` + field.id + ` timestamp }` + pageFields + `} } }`
		before := pluck(s.ask(t, strings.Replace(query, "first: 40", "first: 100", 1), nil, keyOf50), "user."+field.name+".nodes", field.id)
		var got, times []string
		s.pages(t, query, "user."+field.name, nil, keyOf50, func(page any) {
			got, times = append(got, pluck(page, "nodes", field.id)...), append(times, pluck(page, "nodes", "timestamp")...)
			for _, p := range s.venue.Positions(addressOf50) {
				if s.venue.Trade(addressOf50, p.TokenID, demo.Buy, 100) == nil {
					break
				}
			}
			s.clock.Advance(5 * time.Second)
		})
		if !slices.Equal(got[:100], before) {
			t.Errorf("the first 100 elements of %s are %v\nwant %v", field.name, got[:100], before)
		}
		newestFirst := slices.Clone(times)
		slices.Sort(newestFirst)
		slices.Reverse(newestFirst)
		if !slices.Equal(times, newestFirst) {
			t.Errorf("%s: the newest elements are not first: %v", field.name, times)
		}
	}
}

func TestPageAfterCursorOfEdge(t *testing.T) {
	s := start(t)
	for _, test := range []struct{ query, path, id, key string }{
		{`user(address: "` + addressOf50 + `") { positions(first: 9, after: $after) { nodes { tokenId } edges { cursor node { tokenId } } } }`, "user.positions", "tokenId", keyOf50},
		{`user(address: "` + addressOf50 + `") { orders(first: 5, after: $after) { nodes { orderId } edges { cursor node { orderId } } } }`, "user.orders", "orderId", keyOf50},
		{`user(address: "` + addressOf50 + `") { trades(first: 9, after: $after) { nodes { tradeId } edges { cursor node { tradeId } } } }`, "user.trades", "tradeId", keyOf50},
		{`user(address: "` + addressOf50 + `") { history(first: 9, after: $after) { nodes { id } edges { cursor node { id } } } }`, "user.history", "id", keyOf50},
		{`searchMarkets(first: 9, after: $after) { nodes { marketId } edges { cursor node { marketId } } }`, "searchMarkets", "marketId", anonymous},
		{`event(eventId: "10001") { markets(first: 5, after: $after) { nodes { marketId } edges { cursor node { marketId } } } }`, "event.markets", "marketId", anonymous},
	} {
		query := "query ($after: String) { " + test.query + " }"
		page := at(s.ask(t, query, nil, test.key), test.path)
		nodes := pluck(page, "nodes", test.id)
		if !slices.Equal(nodes, pluck(page, "edges", "node."+test.id)) {
			t.Errorf("%s: the nodes differ from the nodes of the edges", test.path)
		}
		for i, edge := range list(page, "edges") {
			next := pluck(s.ask(t, query, vars{"after": at(edge, "cursor")}, test.key), test.path+".nodes", test.id)
			rest := nodes[i+1:]
			if len(next) < len(rest) || !slices.Equal(next[:len(rest)], rest) {
				t.Errorf("%s: the page after element %d is %v, want %v at its beginning", test.path, i, next, rest)
			}
		}
	}
}

// TestPagesOfMovingLists reads lists page by page while their order changes before each page. The pages must have the order of the
// first page. An element that is new comes last, and an element that is gone is left out.
func TestPagesOfMovingLists(t *testing.T) {
	const n = 12
	var round atomic.Int64
	// ids returns the ids of the rows at a time. Each round moves all rows by five places.
	ids := func(round int64) (list []string) {
		for i := range int64(n) {
			list = append(list, fmt.Sprintf("M%02d", (i+5*round)%n))
		}
		if round > 0 { // a row is gone, and another one is new and first
			list = append([]string{"NEW"}, slices.DeleteFunc(list, func(id string) bool { return id == "M07" })...)
		}
		return list
	}
	rows := func(url.Values) (int, any) {
		var list []object
		for i, id := range ids(round.Load()) {
			list = append(list, object{"marketId": id, "orderId": id, "tokenId": "T" + id, "outcome": "YES", "side": "BUY", "price": "0.5", "size": "1", "filledSize": "0", "status": "OPEN",
				"avgPrice": "0.5", "currentPrice": fmt.Sprintf("0.%02d", 99-i)})
		}
		return http.StatusOK, object{"positions": list, "orders": list}
	}
	none := func(url.Values) (int, any) {
		return http.StatusOK, `{"prices":[],"spreads":[],"markets":[],"bids":[],"asks":[]}`
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){"positions": rows, "orders": rows, "prices": none, "spreads": none, "market-details": none, "orderbook": none})
	s := start(t, "--venue-url="+v.URL)
	page := func(field, after, credentials string) (got []string, next string) {
		t.Helper()
		found := s.ask(t, `query ($after: String) { user(address: "`+addressOfAny+`") { page: `+strings.Replace(field, "(", "(first: 3, after: $after, ", 1)+` { nodes { marketId } totalCount pageInfo { hasNextPage endCursor } } } }`,
			vars{"after": after}, credentials)
		if at(found, "user.page.pageInfo.hasNextPage") == true {
			next = text(found, "user.page.pageInfo.endCursor")
		}
		if total := fmt.Sprint(at(found, "user.page.totalCount")); total != "12" {
			t.Errorf("%s has the totalCount %s, want 12", field, total)
		}
		return pluck(found, "user.page.nodes", "marketId"), next
	}
	kept := append(slices.DeleteFunc(ids(0), func(id string) bool { return id == "M07" }), "NEW")
	for _, field := range []string{"positions(sort: VENUE)", "positions(sort: VALUE)", "positions(sort: PNL_PERCENT, minSize: 1)", "orders(side: BUY)"} {
		round.Store(0)
		s.clock.Advance(3 * time.Second) // accounts are read again after two seconds
		got, after := page(field, "", keyOfAny)
		for range 6 {
			round.Add(1)
			s.clock.Advance(50 * time.Second)
			_, _ = page(strings.Replace(field, "(", "(marketIds: null, ", 1), "", credentials("other")) // another caller begins a list, too
			more, next := page(field, after, keyOfAny)
			if got, after = append(got, more...), next; after == "" {
				break
			}
		}
		if !slices.Equal(got, kept) {
			t.Errorf("%s: got the pages %v, want %v", field, got, kept)
		}
	}

	// The order of the first page is kept for a minute. Then the cursor's element decides.
	round.Store(0)
	s.clock.Advance(3 * time.Second)
	_, after := page("positions(sort: VALUE)", "", keyOfAny)
	round.Add(1)
	s.clock.Advance(61 * time.Second)
	got, _ := page("positions(sort: VALUE)", after, keyOfAny)
	present := ids(1)
	if i := slices.Index(present, "M02"); !slices.Equal(got, present[i+1:min(i+4, len(present))]) {
		t.Errorf("after more than a minute: got %v, want the three rows after M02 in %v", got, present)
	}
}
