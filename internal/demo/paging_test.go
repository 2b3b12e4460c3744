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

// TestPagingRecords checks that trades and history are sorted, newest first. Pages by cursor must contain each old record once
// while new records arrive. An offset must count from the newest record.
func TestPagingRecords(t *testing.T) {
	v := New(Config{Markets: 200, Clock: newClock()})
	base := "?address=" + medium + credentials("demo-50")
	open := first(t, v, func(tok *token) bool { return isOpen(tok) && v.accounts[medium].positionIn(tok) != nil })
	for _, path := range []string{"/api/user/trades", "/api/user/history"} {
		rows := func(query string) ([]recordAnswer, recordsAnswer) {
			a := get[recordsAnswer](t, v, path+base+query)
			return append(a.Trades, a.History...), a
		}
		same := func(a, b recordAnswer) bool { return a.ID+a.TradeID == b.ID+b.TradeID }
		whole, answer := rows("&offset=0&limit=500")
		if answer.Count == nil || *answer.Count != len(whole) || len(whole) < 250 {
			t.Fatalf("%s: got %d rows and count %v, want at least 250 rows and an equal count", path, len(whole), answer.Count)
		}
		if !slices.IsSortedFunc(whole, func(a, b recordAnswer) int { return b.Timestamp.Compare(a.Timestamp) }) {
			t.Errorf("%s: the order is not newest first", path)
		}
		if page, _ := rows(""); len(page) != 100 {
			t.Errorf("%s: got %d rows without a limit, want 100", path, len(page))
		}
		if page, _ := rows("&offset=40&limit=5"); !slices.EqualFunc(page, whole[40:45], same) {
			t.Errorf("%s: with offset 40 and limit 5: got %+v, want %+v", path, page, whole[40:45])
		}
		from, to := whole[200].Timestamp, whole[100].Timestamp
		window, _ := rows("&limit=500&from=" + from.Format(time.RFC3339Nano) + "&to=" + to.Format(time.RFC3339Nano))
		if len(window) < 101 || window[0].Timestamp.After(to) || window[len(window)-1].Timestamp.Before(from) {
			t.Errorf("%s: got %d rows between two times, want at least 101 from %v to %v", path, len(window), from, to)
		}
		market := open.market.id
		ofMarket, _ := rows("&limit=500&marketId=" + market)
		if len(ofMarket) == 0 || slices.ContainsFunc(ofMarket, func(r recordAnswer) bool { return r.MarketID != market }) {
			t.Errorf("%s of market %s: got %+v", path, market, ofMarket)
		}
		var paged []recordAnswer
		for cursor := ""; ; {
			page, answer := rows("&limit=33" + cursor)
			paged = append(paged, page...)
			if answer.NextCursor == nil {
				break
			}
			cursor = "&cursor=" + *answer.NextCursor
			if err := v.Trade(medium, open.id, Buy, share); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.EqualFunc(paged, whole, same) {
			t.Errorf("%s: the %d rows on the pages differ from the %d rows of one request", path, len(paged), len(whole))
		}
	}
	kinds := map[string]bool{}
	for _, r := range get[recordsAnswer](t, v, "/api/user/history"+base+"&type=deposit,WITHDRAWAL&limit=500").History {
		if kinds[r.Type] = true; (r.Amount[0] == '-') != (r.Type == "WITHDRAWAL") {
			t.Errorf("got record %+v, want a negative amount exactly for WITHDRAWAL", r)
		}
	}
	if len(kinds) != 2 || !kinds["DEPOSIT"] || !kinds["WITHDRAWAL"] {
		t.Errorf("got records of the kinds %v, want only DEPOSIT and WITHDRAWAL", kinds)
	}
}
