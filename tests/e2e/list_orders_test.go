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
)

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
