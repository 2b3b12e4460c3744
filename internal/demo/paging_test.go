package demo

import (
	"slices"
	"testing"
	"time"
)

// TestPagingWhilePositionsClose checks that the pages together contain each position once, even if the position in a cursor has
// been closed.
func TestPagingWhilePositionsClose(t *testing.T) {
	v := New(Config{Markets: 400, Clock: newClock()})
	want := v.Positions(medium)
	seen, closed := map[string]int{}, map[string]bool{}
	for cursor := ""; ; {
		page := get[positionsAnswer](t, v, "/api/user/positions?limit=7&address="+medium+credentials("demo-50")+cursor)
		for _, p := range page.Positions {
			seen[p.TokenID]++
		}
		// Close the last and the first position of the page, if their tokens trade.
		for _, i := range []int{len(page.Positions) - 1, 0} {
			p := page.Positions[i]
			if v.Trade(medium, p.TokenID, Sell, Size(fixed(t, p.Size, 2))) == nil {
				closed[p.TokenID] = true
			}
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if len(closed) < 8 {
		t.Fatalf("got only %d closed positions, want at least 8", len(closed))
	}
	for _, p := range want {
		if seen[p.TokenID] != 1 {
			t.Errorf("position %s: got %d times, want once (closed: %v)", p.TokenID, seen[p.TokenID], closed[p.TokenID])
		}
	}
	if left := len(v.Positions(medium)); left != len(want)-len(closed) {
		t.Errorf("%d positions are left, want %d", left, len(want)-len(closed))
	}
}

func TestPagingOrders(t *testing.T) {
	v := New(Config{Markets: 400, Clock: newClock()})
	whole := get[ordersAnswer](t, v, "/api/user/orders?address="+large+credentials("demo-2000"))
	if len(whole.Orders) < 30 || whole.NextCursor != nil {
		t.Fatalf("got %d orders and cursor %v, want at least 30 and no cursor", len(whole.Orders), whole.NextCursor)
	}
	var paged []orderAnswer
	for cursor := ""; ; {
		page := get[ordersAnswer](t, v, "/api/user/orders?limit=11&address="+large+credentials("demo-2000")+cursor)
		paged = append(paged, page.Orders...)
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if !slices.Equal(paged, whole.Orders) {
		t.Error("the pages differ from the whole list")
	}
	for _, o := range paged {
		filled, size := fixed(t, o.FilledSize, 2), fixed(t, o.Size, 2)
		if filled >= size || (o.Status == "PARTIALLY_FILLED") != (filled > 0) || o.Status != "OPEN" && filled == 0 ||
			o.Side != "BUY" && o.Side != "SELL" || o.CreatedAt.After(v.opened.Time()) {
			t.Errorf("got order %+v with an invalid status, side, fill or time", o)
		}
	}
}

// TestPagingRecords checks that trades and history are sorted, newest first. Pages by cursor must contain each old record once
// while new records arrive. An offset must count from the newest record.
func TestPagingRecords(t *testing.T) {
	v := New(Config{Markets: 200, Clock: newClock()})
	base := "?address=" + medium + credentials("demo-50")
	open := slices.DeleteFunc(v.Positions(medium), func(p Position) bool { return !isOpen(v.listing.tokenByID[p.TokenID]) })
	for _, path := range []string{"/api/user/trades", "/api/user/history"} {
		rows := func(a recordsAnswer) []recordAnswer { return append(a.Trades, a.History...) }
		id := func(r recordAnswer) string { return r.ID + r.TradeID }
		counted := get[recordsAnswer](t, v, path+base+"&offset=0&limit=500")
		whole := rows(counted)
		if counted.Count == nil || *counted.Count != len(whole) || len(whole) < 250 {
			t.Fatalf("%s: got %d rows and count %v, want at least 250 rows and an equal count", path, len(whole), counted.Count)
		}
		if !slices.IsSortedFunc(whole, func(a, b recordAnswer) int { return b.Timestamp.Compare(a.Timestamp) }) {
			t.Errorf("%s: the order is not newest first", path)
		}
		if n := len(rows(get[recordsAnswer](t, v, path+base))); n != 100 {
			t.Errorf("%s: got %d rows without a limit, want 100", path, n)
		}
		if page := rows(get[recordsAnswer](t, v, path+base+"&offset=40&limit=5")); len(page) != 5 || id(page[0]) != id(whole[40]) {
			t.Errorf("%s: with offset 40 and limit 5: got %d rows from %+v, want 5 from %+v", path, len(page), page[0], whole[40])
		}
		var paged []recordAnswer
		for cursor := ""; ; {
			page := get[recordsAnswer](t, v, path+base+"&limit=33"+cursor)
			paged = append(paged, rows(page)...)
			if page.NextCursor == nil {
				break
			}
			if page.Count != nil {
				t.Errorf("%s: got a count without an offset", path)
			}
			cursor = "&cursor=" + *page.NextCursor
			if err := v.Trade(medium, open[0].TokenID, Buy, share); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.EqualFunc(paged, whole, func(a, b recordAnswer) bool { return id(a) == id(b) }) {
			t.Errorf("%s: the %d rows on the pages differ from the %d rows of one request", path, len(paged), len(whole))
		}

		from, to := whole[200].Timestamp, whole[100].Timestamp
		window := rows(get[recordsAnswer](t, v, path+base+"&limit=500&from="+from.Format(time.RFC3339Nano)+"&to="+to.Format(time.RFC3339Nano)))
		for _, r := range window {
			if r.Timestamp.Before(from) || r.Timestamp.After(to) {
				t.Errorf("%s: got a record at %v, want %v to %v", path, r.Timestamp, from, to)
			}
		}
		if len(window) < 101 {
			t.Errorf("%s: got %d rows between two times, want at least 101", path, len(window))
		}
		market := open[3].MarketID
		ofMarket := rows(get[recordsAnswer](t, v, path+base+"&limit=500&marketId="+market))
		if len(ofMarket) == 0 || slices.ContainsFunc(ofMarket, func(r recordAnswer) bool { return r.MarketID != market }) {
			t.Errorf("%s of market %s: got %+v", path, market, ofMarket)
		}
	}
	moved := get[recordsAnswer](t, v, "/api/user/history"+base+"&type=deposit,WITHDRAWAL&limit=500").History
	kinds := map[string]int{}
	for _, r := range moved {
		kinds[r.Type]++
		if sign := r.Amount[0] == '-'; sign != (r.Type == "WITHDRAWAL") {
			t.Errorf("got record %+v, want a negative amount exactly for WITHDRAWAL", r)
		}
	}
	if len(kinds) != 2 || kinds["DEPOSIT"] == 0 || kinds["WITHDRAWAL"] == 0 {
		t.Errorf("got numbers of records by kind %v, want only DEPOSIT and WITHDRAWAL", kinds)
	}
}
