package generic

import (
	"fmt"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// TestListForms checks that the client reads a list in every known form.
func TestListForms(t *testing.T) {
	for _, list := range []struct {
		endpoint, name string
		row, byID      string // byID is an object that maps ids to rows; it is "" if the endpoint has no such form
		want           string
	}{
		{"prices", "prices", `{"tokenId":"101","price":0.5}`, `{"101":{"price":0.5}}`, "101 0.5 VENUE -"},
		{"spreads", "spreads", `{"tokenId":"101","bestBid":0.4,"bestAsk":0.6}`, `{"101":{"bestBid":0.4,"bestAsk":0.6}}`, "101 0.4 0.6 0.2 -"},
		{"market-details", "markets", `{"marketId":"M1","outcomes":[{"tokenId":"101","outcome":"YES"}]}`, "",
			"market: M1 | - | - | -\nstatus: UNKNOWN | - | -\noutcome: 101 | YES | - | -"},
		{"price-history", "history", `{"timestamp":"2024-10-04T12:00:00Z","price":0.5}`, "", "2024-10-04T12:00:00Z 0.5 -"},
		{"positions", "positions", `{"marketId":"M1","outcome":"YES","size":1}`, "", "M1 - YES 1 - - -"},
		{"orders", "orders", `{"orderId":"O1","marketId":"M1","side":"BUY","outcome":"YES","price":0.5,"size":1,"filledSize":0,"status":"OPEN"}`, "",
			"O1 M1 - BUY(BUY) YES 0.5 1 0 OPEN(OPEN) -"},
		{"trades", "trades", `{"tradeId":"T1","marketId":"M1","outcome":"YES","side":"BUY","price":0.5,"size":1,"timestamp":"2026-11-02T12:00:00Z"}`, "",
			"next - total -\nT1 M1 - YES BUY(BUY) 0.5 1 - 2026-11-02T12:00:00Z -"},
	} {
		r := readOf(reads, list.endpoint)
		for _, pattern := range []string{`[%[2]s]`, `{%q:[%s]}`, `{"data":[%[2]s]}`, `{"results":[%[2]s]}`, `{"success":true,"data":{%q:[%s]}}`} {
			wantText(t, r, fmt.Sprintf(pattern, list.name, list.row), list.want)
		}
		if list.byID != "" {
			wantText(t, r, list.byID, list.want)
		}
	}
}

// wantText makes a read that gets a response with the given body. It fails the test if the result has another text, or if the
// client reports drift.
func wantText(t *testing.T, r read, body, want string) {
	t.Helper()
	seen := &recordingObserver{}
	c := newVenue(t, everywhere(answer(body))).client(t, func(cfg *Config) { cfg.Observer = seen })
	if text, left, err := r.text(t.Context(), asUser(t), c); text != want || left != nil || err != nil || seen.driftText() != "" {
		t.Errorf("the read of %s from %s returned %q, left out %v, the error %v and the drift %q; want %q", r.name, body, text, left, err, seen.driftText(), want)
	}
}

// TestObjectsInLists checks that the client accepts a list with one object if it expects an object.
func TestObjectsInLists(t *testing.T) {
	for endpoint, object := range map[string]struct{ body, want string }{
		"prices":    {`[{"price":0.5}]`, "101 0.5 VENUE -"},
		"spreads":   {`[{"bestBid":0.4,"bestAsk":0.6}]`, "101 0.4 0.6 0.2 -"},
		"orderbook": {`[{"bids":[],"asks":[]}]`, "101 [] [] spread - at - epoch - seq 0 hash - depth 20"},
		"balance":   {`[{"portfolioValue":1,"cashBalance":2}]`, "portfolio 1 cash 2 positions - total 3 at -"},
		"market-details": {`[{"marketId":"M1","slug":"will-it-rain","outcomes":[{"tokenId":"101","outcome":"YES"}]}]`,
			"market: M1 | will-it-rain | - | -\nstatus: UNKNOWN | - | -\noutcome: 101 | YES | - | -"},
	} {
		for _, r := range reads {
			if r.name == endpoint {
				wantText(t, r, object.body, object.want)
			}
		}
	}
}

// TestStatusesInAnyCase checks that the client reads statuses in upper case, lower case and mixed case, for markets and for orders.
func TestStatusesInAnyCase(t *testing.T) {
	for raw, want := range map[string]market.Status{"OPEN": market.StatusOpen, "closed": market.StatusClosed, "Resolved": market.StatusResolved, "cAnCeLlEd": market.StatusCancelled} {
		c := newVenue(t, everywhere(answer(`{"marketId":"M1","outcomes":[],"status":"`+raw+`"}`))).client(t)
		results, err := c.MarketsByID(t.Context(), upstream.Call{}, []string{"M1"})
		if err != nil || results[0].Value == nil || results[0].Value.Status != want || results[0].Value.StatusRaw != raw {
			t.Errorf("the market with the status %s is %+v with the error %v, want the status %s", raw, results, err, want)
		}
	}
	for raw, want := range map[string]market.OrderStatus{"open": market.OrderOpen, "Filled": market.OrderFilled, "CANCELLED": market.OrderCancelled} {
		c := newVenue(t, everywhere(answer(`{"orders":[{"orderId":"O1","marketId":"M1","side":"buy","outcome":"YES","price":0.5,"size":1,"filledSize":0,"status":"`+raw+`"}]}`))).client(t)
		if orders, err := c.Orders(t.Context(), asUser(t), wallet); err != nil || orders[0].Status != want || orders[0].Side != market.SideBuy {
			t.Errorf("the order with the status %s is %+v with the error %v, want the status %s", raw, orders, err, want)
		}
	}
}
