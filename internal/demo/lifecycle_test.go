package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestMarketChanges checks the frames, prices, orders and details of markets that are closed, opened, reworded, resolved or given
// another tick size.
func TestMarketChanges(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 400, Clock: c})
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
	change := func(m *market, change func() error, want string) (priced object) {
		t.Helper()
		c.Advance(time.Second)
		if err := change(); err != nil {
			t.Fatalf("%s: %v", want, err)
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
	tick := func(m *market, tick Price) func() error { return func() error { return s.SetTickSize(m.id, tick) } }
	status := func(m *market, status string) func() error { return func() error { return s.SetStatus(m.id, status) } }
	change(odd.token.market, tick(odd.token.market, 10), "market_update TICK_SIZE OPEN <nil>")
	if err := s.change(func(now millis) error {
		odd.price += 10 // a multiple of the finer tick size only
		odd.shown, w.changedAt = shownOrder{}, now
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if change(odd.token.market, tick(odd.token.market, 100), "market_update TICK_SIZE OPEN <nil>"); slices.Contains(w.orders, odd) {
		t.Errorf("after the coarser tick size: the order at %v is not cancelled", odd.price)
	}
	f := change(m, status(m, "CLOSED"), "market_update STATUS CLOSED <nil>")
	if f["bestBid"] != nil || f["bestAsk"] != nil || f["price"].(json.Number).String() != price.String() || slices.Contains(w.orders, o) {
		t.Errorf("after the close: got frame %v, want price %v without best prices, and the order cancelled", f, price)
	}
	if f := change(m, status(m, "OPEN"), "market_update STATUS OPEN <nil>"); f["bestBid"] == nil && f["bestAsk"] == nil {
		t.Errorf("after the opening: got frame %v, want a best price", f)
	}
	change(m, func() error { return s.Reword(m.id, "Anew.") }, "market_update METADATA OPEN <nil>")
	if f := change(m, func() error { return s.Resolve(m.id, o.token.id) }, "market_resolved <nil> <nil> "+o.token.label); f["price"] != json.Number("1") {
		t.Errorf("after the resolution: got frame %v, want price 1", f)
	}
	change(upcoming, status(upcoming, "OPEN"), "market_update CREATED OPEN <nil>")
	l.send("resync", `"channel":"market","marketId":"`+m.id+`"`)
	if f := l.take("market_resolved"); number(t, f, "seq") != seqs[m.id] {
		t.Errorf("after a resync: got %v, want seq %d", f, seqs[m.id])
	}

	none := &market{id: "none"}
	for i, refused := range []func() error{
		status(m, "OPEN"), func() error { return s.Resolve(m.id, o.token.id) }, status(settled, "CLOSED"), tick(settled, 10),
		status(none, "CLOSED"), func() error { return s.Reword("none", "x") }, func() error { return s.Resolve("none", "x") }, tick(none, 10),
		func() error { return s.Resolve(upcoming.id, o.token.id) }, status(upcoming, "OPEN"), status(upcoming, "RESOLVED"),
		status(upcoming, "UPCOMING"), status(upcoming, "ODD"), tick(upcoming, 1000), tick(upcoming, 50), tick(upcoming, 0),
	} {
		if refused() == nil {
			t.Errorf("change %d of the list is accepted", i)
		}
	}
}
