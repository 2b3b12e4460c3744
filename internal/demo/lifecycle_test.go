package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// details returns the details of a market over REST.
func details(t testing.TB, v *Venue, m *market) marketAnswer {
	t.Helper()
	return get[marketAnswer](t, v, "/api/exchange/market-details?id="+m.id)
}

// TestMarketChanges checks the books, orders, prices and positions of markets that close, open and resolve, over REST and on the
// stream.
func TestMarketChanges(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 400, Clock: c, Control: true})
	w := s.accounts[medium]
	o := w.orders[0]
	m := o.token.market
	upcoming := first(t, s.Venue, func(tok *token) bool { return tok.market.status == statusUpcoming }).market
	closed := first(t, s.Venue, func(tok *token) bool { return tok.market.status == statusClosed && !tok.market.binary() }).market
	settled := first(t, s.Venue, func(tok *token) bool { return tok.market.status == statusResolved }).market
	derived, _ := parseAddress(other)
	var guest *order
	for _, guest = range s.walletOf(derived).orders {
		if guest.token.market != m && s.accounts[small].positionIn(guest.token) == nil {
			break
		}
	}
	positions := len(s.Positions(derived))

	l := s.dial(t)
	l.subscribe("market", 0, m.id, upcoming.id, closed.id, guest.token.market.id)
	l.subscribe("prices", 0, o.token.id)
	l.take("price_update")
	account := newStreamedAccount(t, l.subscribeUser(medium, "demo"))
	seqs := map[string]uint64{}
	// event reads all new frames and returns the price frames. It checks that exactly one frame is about a market, that want
	// describes this frame, and that REST shows the change.
	event := func(m *market, want string) (frames []object) {
		t.Helper()
		found := ""
		for _, f := range l.settle() {
			switch f["type"] {
			case "market_update", "market_resolved":
				id := f["marketId"].(string)
				if seqs[id] == 0 {
					seqs[id] = 1
				}
				if seqs[id]++; number(t, f, "seq") != seqs[id] {
					t.Fatalf("got frame %v, want seq %d", f, seqs[id])
				}
				found += fmt.Sprint(f["type"], " ", f["change"], " ", f["status"], " ", f["outcome"])
			case "price_update":
				frames = append(frames, f)
			default:
				account.take(t, f)
			}
		}
		if found != want {
			t.Fatalf("got frames of markets %q, want %q", found, want)
		}
		account.check(t, s, medium)
		if d := details(t, s.Venue, m); d.Status != m.status || d.AcceptingOrders != (m.status == statusOpen) || !d.UpdatedAt.Equal(c.Now()) {
			t.Fatalf("got details %+v, want status %s and the update time %v", d, m.status, c.Now())
		}
		for _, tok := range m.tokens {
			checkBook(t, tok)
		}
		return frames
	}
	change := func(body string) {
		t.Helper()
		c.Advance(time.Second)
		if w := post(s.Venue, "market", body); w.Code != 200 {
			t.Fatalf("%s: %s", body, w.Body)
		}
	}

	price := o.token.price()
	change(`{"marketId":"` + m.id + `","status":"CLOSED"}`)
	frames := event(m, "market_update STATUS CLOSED <nil>")
	if len(frames) != 1 || frames[0]["bestBid"] != nil || frames[0]["bestAsk"] != nil || frames[0]["price"].(json.Number).String() != price.String() {
		t.Errorf("after the close: got price frames %v, want one with price %v and without best prices", frames, price)
	}
	if slices.Contains(w.orders, o) || o.ended != orderCancelled {
		t.Errorf("the close did not cancel the order %+v", *o)
	}
	if err := s.SetPrice(o.token.id, 5000); err != ErrNotTrading {
		t.Errorf("SetPrice: got %v, want %v", err, ErrNotTrading)
	}
	change(`{"marketId":"` + m.id + `","status":"OPEN"}`)
	frames = event(m, "market_update STATUS OPEN <nil>")
	if len(frames) != 1 || frames[0]["bestBid"] == nil && frames[0]["bestAsk"] == nil || o.token.price() != price {
		t.Errorf("after the opening: got price frames %v and price %v, want one frame with a best price, and price %v", frames, o.token.price(), price)
	}
	change(`{"marketId":"` + m.id + `","description":"Anew."}`)
	event(m, "market_update METADATA OPEN <nil>")
	if d := details(t, s.Venue, m); *d.Description != "Anew." {
		t.Errorf("got details %+v, want the description Anew.", d)
	}
	change(`{"marketId":"` + m.id + `","winningTokenId":"` + o.token.id + `"}`)
	frames = event(m, "market_resolved <nil> <nil> "+o.token.label)
	if len(frames) != 1 || frames[0]["price"] != json.Number("1") {
		t.Errorf("after the resolution: got price frames %v, want one with price 1", frames)
	}
	for i, outcome := range details(t, s.Venue, m).Outcomes {
		won := m.tokens[i] == o.token
		if *outcome.Winner != won || (outcome.Price == "1") != won || (outcome.Price == "0") == won {
			t.Errorf("got outcome %+v, want winner %v", outcome, won)
		}
	}
	if d := details(t, s.Venue, m); d.Resolution == nil || d.Resolution.Outcome != o.token.label || len(w.positions) != 50 {
		t.Errorf("got details %+v and %d positions, want the resolution %s and 50 positions", d, len(w.positions), o.token.label)
	}

	change(`{"marketId":"` + upcoming.id + `","status":"OPEN"}`)
	event(upcoming, "market_update CREATED OPEN <nil>")
	if d := details(t, s.Venue, upcoming); !d.StartDate.Equal(c.Now()) {
		t.Errorf("got details %+v, want the start %v", d, c.Now())
	}
	for range 2000 { // let the opened market trade
		s.Step()
	}
	if upcoming.tokens[0].bookSeq < 3 {
		t.Error("the book of an opened market does not change")
	}
	l.settle()
	account = newStreamedAccount(t, func() object {
		l.send("resync", `"channel":"user","address":"`+medium+`"`)
		return l.take("user_snapshot")
	}())
	change(`{"marketId":"` + closed.id + `","status":"DISPUTED"}`)
	event(closed, "market_update STATUS DISPUTED <nil>")
	change(`{"marketId":"` + closed.id + `","winningTokenId":"` + closed.tokens[2].id + `"}`)
	event(closed, "market_resolved <nil> <nil> "+closed.tokens[2].label)

	// The close of a market also cancels the orders of a wallet without subscribers. The orders stay cancelled when the venue
	// evicts the wallet from its cache and derives it again.
	change(`{"marketId":"` + guest.token.market.id + `","status":"CLOSED"}`)
	event(guest.token.market, "market_update STATUS CLOSED <nil>")
	change(`{"marketId":"` + guest.token.market.id + `","status":"OPEN"}`)
	event(guest.token.market, "market_update STATUS OPEN <nil>")
	ask := func() string {
		return send(s, "/api/user/orders?address="+derived+credentials("demo")).Body.String() +
			send(s, "/api/user/positions?address="+derived+credentials("demo")).Body.String() +
			send(s, "/api/user/history?limit=500&address="+derived+credentials("demo")).Body.String()
	}
	before, kept := ask(), s.walletOf(derived)
	if slices.Contains(kept.orders, guest) || len(kept.orders) == 0 || len(s.Positions(derived)) != positions {
		t.Errorf("got %d orders and %d positions, want some orders without the cancelled one, and %d positions", len(kept.orders), len(s.Positions(derived)), positions)
	}
	for i := range maxDerived + 5 {
		s.walletOf(fmt.Sprintf("0x%040x", i))
	}
	if s.walletOf(derived) == kept || ask() != before {
		t.Error("the derived wallet was not evicted, or differs after it was derived again")
	}

	for _, body := range []string{
		`{"marketId":"` + m.id + `","status":"OPEN"}`, `{"marketId":"` + m.id + `","winningTokenId":"` + o.token.id + `"}`,
		`{"marketId":"` + settled.id + `","status":"CLOSED"}`, `{"marketId":"none","status":"CLOSED"}`, `{"marketId":"none","description":"x"}`,
		`{"marketId":"none","winningTokenId":"x"}`, `{"marketId":"` + upcoming.id + `","winningTokenId":"` + o.token.id + `"}`,
		`{"marketId":"` + upcoming.id + `","status":"OPEN"}`, `{"marketId":"` + upcoming.id + `","status":"RESOLVED"}`,
		`{"marketId":"` + upcoming.id + `","status":"UPCOMING"}`, `{"marketId":"` + upcoming.id + `","status":"ODD"}`,
		`{"marketId":"` + upcoming.id + `"}`, `{"marketId":"` + upcoming.id + `","status":"CLOSED","description":"x"}`, ``,
	} {
		if w := post(s.Venue, "market", body); w.Code != 400 {
			t.Errorf("%s: got %d, want 400", body, w.Code)
		}
	}
	l.send("resync", `"channel":"market","marketId":"`+m.id+`"`)
	if f := l.take("market_resolved"); number(t, f, "seq") != seqs[m.id] {
		t.Errorf("after a resync: got %v, want seq %d", f, seqs[m.id])
	}
	l.send("resync", `"channel":"market","marketId":"`+upcoming.id+`"`)
	if f := l.take("market_update"); f["status"] != "OPEN" {
		t.Errorf("after a resync: got %v, want status OPEN", f)
	}
}

// TestTickSizes checks the books of a market whose tick size becomes finer. When the old tick size returns, the venue must cancel
// all orders whose prices are not multiples of the old tick size.
func TestTickSizes(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 400, Clock: c, Control: true})
	w := s.accounts[medium]
	o := w.orders[slices.IndexFunc(w.orders, func(o *order) bool { return o.token.market.tick == 100 && o.token.market.binary() })]
	m := o.token.market
	c.Advance(time.Second)
	past := send(s, "/api/exchange/price-history?tokenId="+o.token.id).Body.String()
	guest := send(s, "/api/user/orders?address="+other+credentials("demo")).Body.String()

	l := s.dial(t)
	l.subscribe("market", 0, m.id)
	l.subscribe("orderbook", maxDepth, m.tokens[0].id, m.tokens[1].id)
	books := map[string]*bookCopy{m.tokens[0].id: {}, m.tokens[1].id: {}}
	listener := s.dial(t)
	account := newStreamedAccount(t, listener.subscribeUser(medium, "demo"))
	event := func(tick string) (found int) {
		t.Helper()
		for _, f := range l.settle() {
			switch f["type"] {
			case "orderbook_snapshot", "orderbook_update":
				if !books[f["tokenId"].(string)].take(t, f) {
					t.Fatalf("got a gap before frame %v", f)
				}
			case "market_update":
				if f["change"] != "TICK_SIZE" || f["status"] != "OPEN" || len(f) != 5 {
					t.Errorf("got frame %v, want TICK_SIZE, OPEN and 5 members", f)
				}
				found++
			default:
				t.Errorf("got an unexpected frame %v", f)
			}
		}
		for _, f := range listener.settle() {
			account.take(t, f)
		}
		account.check(t, s, medium)
		d := details(t, s.Venue, m)
		if d.TickSize.String() != tick || !d.UpdatedAt.Equal(c.Now()) && found > 0 {
			t.Errorf("got details %+v, want the tick size %s", d, tick)
		}
		for _, tok := range m.tokens {
			checkBook(t, tok)
			books[tok.id].check(t, s, tok.id, maxDepth, s.Epoch())
			if q, _ := s.Quote(tok.id); d.Outcomes[tok.outcome].Price.String() != q.Price.String() {
				t.Errorf("got price %v in the details, want %v as in the quote", d.Outcomes[tok.outcome].Price, q.Price)
			}
		}
		return found
	}
	change := func(tick string, status int) {
		t.Helper()
		c.Advance(time.Second)
		if w := post(s.Venue, "market", `{"marketId":"`+m.id+`","tickSize":`+tick+`}`); w.Code != status {
			t.Fatalf("change to tick size %s: got %d %s, want %d", tick, w.Code, w.Body, status)
		}
	}
	event("0.01")
	price := m.tokens[0].lastPrice()
	change("0.001", 200)
	if event("0.001") != 1 || m.tokens[0].lastPrice() != price || !slices.Contains(w.orders, o) {
		t.Errorf("after the finer tick size: got price %v, want %v, and the order must stay", m.tokens[0].lastPrice(), price)
	}
	for range 3 {
		c.Advance(pace)
		s.Step()
		event("0.001")
	}
	if err := s.SetPrice(m.tokens[0].id, price+30); err != nil {
		t.Fatal(err)
	}
	_ = s.change(func(now millis) error {
		o.price += 10
		o.shown, w.changedAt = shownOrder{}, now
		return nil
	})
	orders := len(w.orders)
	event("0.001")
	for _, tick := range []string{"0.001", "0.1", "0.005", "0", "-1", `"x"`} {
		change(tick, 400)
	}
	change("0.01", 200)
	if event("0.01") != 1 || slices.Contains(w.orders, o) || len(w.orders) >= orders {
		t.Errorf("got %d orders, want fewer than the %d before, and without the order at a finer price", len(w.orders), orders)
	}
	for _, o := range w.orders {
		if o.price%o.token.tick != 0 {
			t.Errorf("got an order at %v, want a multiple of the tick size %v", o.price, o.token.tick)
		}
	}
	if got := send(s, "/api/user/orders?address="+other+credentials("demo")).Body.String(); got != guest {
		t.Error("the orders of a derived wallet changed")
	}
	change("0.001", 200)
	if got := send(s, "/api/exchange/price-history?tokenId="+o.token.id).Body.String(); !strings.Contains(past, got[len(got)-2000:]) {
		t.Error("the history changed")
	}
	change("0.01", 200)
	closed := first(t, s.Venue, func(tok *token) bool { return tok.market.status == statusClosed }).market
	if err := s.SetTickSize(closed.id, fineTick); err != ErrNotTrading {
		t.Errorf("SetTickSize of a closed market: got %v, want %v", err, ErrNotTrading)
	}
	if err := s.SetTickSize("none", fineTick); err != ErrUnknownMarket {
		t.Errorf("SetTickSize of an unknown market: got %v, want %v", err, ErrUnknownMarket)
	}
	if deep := first(t, s.Venue, func(tok *token) bool { return isOpen(tok) && tok.market.born.tick == fineTick }).market; s.SetTickSize(deep.id, 100) != ErrTickSize {
		t.Error("SetTickSize accepted a coarser tick size than the market's first tick size")
	}
}

// TestMarketsChangeAutomatically checks that markets change if MarketEvery is set, and that equal seeds cause equal changes. The
// number of open markets at the end must be at least 80 % of the number at the start.
func TestMarketsChangeAutomatically(t *testing.T) {
	c := newClock()
	config := Config{Markets: 400, Clock: c, Seed: 6, MarketEvery: 3 * pace}
	v, twin := New(config), New(config)
	count := func(v *Venue) map[string]int {
		n := map[string]int{}
		for _, m := range v.listing.markets {
			n[m.status]++
		}
		return n
	}
	before := count(v)
	past := func() string {
		var b strings.Builder
		for _, tok := range v.listing.tokens {
			b.Write(send(v, "/api/exchange/price-history?startDate=2026-03-01&endDate=2026-03-10&tokenId="+tok.id).Body.Bytes())
		}
		return b.String()
	}
	history := past()
	changes := map[string]int{}
	status, ticks := map[*market]string{}, map[*market]Price{}
	for range 30 {
		for range 150 {
			v.Step()
			twin.Step()
			for _, m := range v.listing.markets {
				if old := status[m]; old != m.status {
					if old != "" {
						changes[old+" "+m.status]++
					}
					status[m] = m.status
				}
				if old := ticks[m]; old != m.tick {
					if old != 0 {
						changes["tick size "+m.tick.String()]++
					}
					ticks[m] = m.tick
				}
			}
		}
		for _, tok := range v.listing.tokens {
			checkBook(t, tok)
		}
		for address := range v.accounts {
			checkWallet(t, v, address)
		}
	}
	after := count(v)
	for _, change := range []string{"OPEN CLOSED", "CLOSED OPEN", "CLOSED RESOLVED", "UPCOMING OPEN", "tick size 0.001", "tick size 0.01"} {
		if changes[change] < 3 {
			t.Errorf("got changes %v, want at least 3 times %q", changes, change)
		}
	}
	if after[statusOpen]*10 < before[statusOpen]*8 {
		t.Errorf("got numbers of markets by status %v, before %v; want at least 80 %% as many OPEN", after, before)
	}
	finer := 0
	for _, m := range v.listing.markets {
		if m.tick != m.born.tick {
			finer++
		}
	}
	if open := len(v.listing.tradable); finer > open/refinedParts+3 {
		t.Errorf("got %d markets with a finer tick size, want at most %d", finer, open/refinedParts+3)
	}
	reworded := 0
	for i, m := range v.listing.markets {
		if m.description != m.rules() {
			reworded++
		}
		other := twin.listing.markets[i]
		if m.status != other.status || m.description != other.description || m.seq != other.seq {
			t.Fatalf("market %s: got status %s and seq %d, but %s and %d in the venue with the same seed", m.slug, m.status, m.seq, other.status, other.seq)
		}
	}
	if reworded == 0 {
		t.Error("no description changed")
	}
	for i, want := range []int{3, 50} {
		w := v.accounts[accounts[i].address]
		if len(w.positions) != want || w.usualOrders-len(w.orders) > 2 {
			t.Errorf("%s: got %d positions and %d orders, want %d and at least %d", w.address, len(w.positions), len(w.orders), want, w.usualOrders-2)
		}
	}
	for _, p := range v.accounts[small].positions {
		if p.token.market.status != statusOpen {
			t.Errorf("a market of the smallest demo account has the status %s, want OPEN", p.token.market.status)
		}
	}
	if past() != history {
		t.Error("the history changed")
	}
}

// TestMarketsDoNotChange checks that no market changes if MarketEvery is 0.
func TestMarketsDoNotChange(t *testing.T) {
	v := New(Config{Markets: 120, Clock: newClock()})
	for range 2000 {
		v.Step()
	}
	for _, m := range v.listing.markets {
		if m.status != m.born.status || m.seq != 1 || m.halted {
			t.Errorf("market %s changed: got status %s and seq %d, want %s and 1", m.slug, m.status, m.seq, m.born.status)
		}
	}
}

// TestStreamedWalletIsKept checks that a derived wallet with a subscriber trades, and that it stays in the cache while the test
// reads many other wallets.
func TestStreamedWalletIsKept(t *testing.T) {
	c := newClock()
	s := open(t, Config{Clock: c})
	derived, _ := parseAddress(other)
	l := s.dial(t)
	account := newStreamedAccount(t, l.subscribeUser(derived, "demo"))
	idle := "0x" + strings.Repeat("7", 40)
	quiet := s.dial(t)
	unmoved := newStreamedAccount(t, quiet.subscribeUser(idle, "demo"))
	w, still := s.walletOf(derived), s.walletOf(idle)
	fillCache := func() {
		t.Helper()
		for i := range maxDerived + 5 {
			s.walletOf(fmt.Sprintf("0x%040x", i))
		}
		if s.walletOf(idle) != still {
			t.Fatal("the cache evicted a wallet with a subscriber")
		}
	}
	fillCache() // no wallet has traded yet
	if s.walletOf(derived) != w || still.kept {
		t.Fatal("the cache evicted a wallet with a subscriber, or a wallet without trades is kept")
	}
	for len(account.fills) < 3 {
		c.Advance(pace)
		s.Step()
		for _, f := range l.settle() {
			account.take(t, f)
		}
		for _, f := range quiet.settle() {
			unmoved.take(t, f)
		}
	}
	fillCache()
	account.check(t, s, derived)
	unmoved.check(t, s, idle)
	checkWallet(t, s.Venue, derived)
	l.send("unsubscribe", `"channel":"user","address":"`+derived+`"`)
	l.settle()
	fillCache()
	if s.walletOf(derived) != w {
		t.Error("the cache evicted a wallet that has traded")
	}
	if w.pins != 0 || still.pins != 1 {
		t.Errorf("got %d and %d pins, want 0 and 1", w.pins, still.pins)
	}
	seq := account.seq
	if again := newStreamedAccount(t, l.subscribeUser(derived, "demo")); again.seq <= seq {
		t.Errorf("after a new subscription: got seq %d, want more than %d", again.seq, seq)
	}
	if n := s.derived.recent.Len(); n > maxDerived+2 {
		t.Errorf("the cache has %d wallets, want at most %d", n, maxDerived+2)
	}
}

// TestAccountEvents checks that the stream of each demo account sends events every few seconds.
func TestAccountEvents(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 1200, Clock: c, Seed: 1})
	for _, address := range []string{small, medium, large} {
		l := s.dial(t)
		l.subscribeUser(address, "demo")
		seconds := map[any]int{}
		for range 60 { // seconds
			for range 7 {
				c.Advance(pace)
				s.Step()
			}
			seen := map[any]bool{}
			for _, f := range l.settle() {
				if !seen[f["type"]] {
					seen[f["type"]] = true
					seconds[f["type"]]++
				}
			}
		}
		if seconds["fill"] < 15 || seconds["order_update"] < 8 || seconds["position_update"] < 20 || seconds["balance_update"] < 20 {
			t.Errorf("%s: by frame type, the numbers of seconds with a frame are %v of 60", address, seconds)
		}
	}
}
