package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestMarketChanges checks the frames, prices, orders and details of markets that the control endpoint closes, opens, rewords, resolves
// or gives another tick size.
func TestMarketChanges(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 400, Clock: c, Control: true})
	w := s.accounts[medium]
	o := w.orders[slices.IndexFunc(w.orders, func(o *order) bool { return o.token.market.tick == 100 })]
	m := o.token.market
	odd := w.orders[slices.IndexFunc(w.orders, func(x *order) bool { return x.token.market.tick == 100 && x.token.market != m })]
	upcoming := first(t, s.Venue, func(tok *token) bool { return tok.market.status == statusUpcoming }).market
	settled := first(t, s.Venue, func(tok *token) bool { return tok.market.status == statusResolved }).market
	l := s.dial(t)
	l.subscribe("market", 0, m.id, odd.token.market.id, upcoming.id)
	l.subscribe("prices", 0, o.token.id)
	l.take("price_update")
	account := newStreamedAccount(t, l.subscribeUser(medium, "demo"))
	seqs := map[string]uint64{}
	// change changes a market and returns the price frame, if there is one. It checks that want describes the only frame about a
	// market, and that REST shows the change.
	change := func(m *market, members, want string) (priced object) {
		t.Helper()
		c.Advance(time.Second)
		if w := post(s.Venue, "market", `{"marketId":"`+m.id+`",`+members+`}`); w.Code != 200 {
			t.Fatalf("%s: %s", members, w.Body)
		}
		found := ""
		for _, f := range l.settle() {
			switch f["type"] {
			case "market_update", "market_resolved":
				id := f["marketId"].(string)
				seqs[id] = max(seqs[id], 1) + 1
				if number(t, f, "seq") != seqs[id] {
					t.Fatalf("got frame %v, want seq %d", f, seqs[id])
				}
				found += fmt.Sprint(f["type"], " ", f["change"], " ", f["status"], " ", f["outcome"])
			case "price_update":
				priced = f
			default:
				account.take(t, f)
			}
		}
		if found != want {
			t.Fatalf("got frames of markets %q, want %q", found, want)
		}
		account.check(t, s, medium)
		d := get[marketAnswer](t, s, "/api/exchange/market-details?id="+m.id)
		if d.Status != m.status || d.AcceptingOrders != (m.status == statusOpen) || d.TickSize.String() != m.tick.String() || !d.UpdatedAt.Equal(c.Now()) {
			t.Fatalf("got details %+v, want status %s, tick size %v and the update time %v", d, m.status, m.tick, c.Now())
		}
		for _, tok := range m.tokens {
			checkBook(t, tok)
		}
		return priced
	}

	price := o.token.price()
	change(odd.token.market, `"tickSize":0.001`, "market_update TICK_SIZE OPEN <nil>")
	if err := s.change(func(now millis) error {
		odd.price += 10 // a multiple of the finer tick size only
		odd.shown, w.changedAt = shownOrder{}, now
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if change(odd.token.market, `"tickSize":0.01`, "market_update TICK_SIZE OPEN <nil>"); slices.Contains(w.orders, odd) {
		t.Errorf("after the coarser tick size: the order at %v is not cancelled", odd.price)
	}
	f := change(m, `"status":"CLOSED"`, "market_update STATUS CLOSED <nil>")
	if f["bestBid"] != nil || f["bestAsk"] != nil || f["price"].(json.Number).String() != price.String() || slices.Contains(w.orders, o) {
		t.Errorf("after the close: got frame %v, want price %v without best prices, and the order cancelled", f, price)
	}
	if f := change(m, `"status":"OPEN"`, "market_update STATUS OPEN <nil>"); f["bestBid"] == nil && f["bestAsk"] == nil {
		t.Errorf("after the opening: got frame %v, want a best price", f)
	}
	change(m, `"description":"Anew."`, "market_update METADATA OPEN <nil>")
	if f := change(m, `"winningTokenId":"`+o.token.id+`"`, "market_resolved <nil> <nil> "+o.token.label); f["price"] != json.Number("1") {
		t.Errorf("after the resolution: got frame %v, want price 1", f)
	}
	change(upcoming, `"status":"OPEN"`, "market_update CREATED OPEN <nil>")
	l.send("resync", `"channel":"market","marketId":"`+m.id+`"`)
	if f := l.take("market_resolved"); number(t, f, "seq") != seqs[m.id] {
		t.Errorf("after a resync: got %v, want seq %d", f, seqs[m.id])
	}

	for _, body := range []string{
		m.id + `","status":"OPEN"`, m.id + `","winningTokenId":"` + o.token.id + `"`, settled.id + `","status":"CLOSED"`, settled.id + `","tickSize":0.001`,
		`none","status":"CLOSED"`, `none","description":"x"`, `none","winningTokenId":"x"`, `none","tickSize":0.001`,
		upcoming.id + `","winningTokenId":"` + o.token.id + `"`, upcoming.id + `","status":"OPEN"`, upcoming.id + `","status":"RESOLVED"`,
		upcoming.id + `","status":"UPCOMING"`, upcoming.id + `","status":"ODD"`, upcoming.id + `"`, upcoming.id + `","status":"CLOSED","description":"x"`,
		upcoming.id + `","tickSize":0.1`, upcoming.id + `","tickSize":0.005`, upcoming.id + `","tickSize":0`, upcoming.id + `","tickSize":"x"`,
	} {
		if w := post(s.Venue, "market", `{"marketId":"`+body+`}`); w.Code != 400 {
			t.Errorf("%s: got %d, want 400", body, w.Code)
		}
	}
}
