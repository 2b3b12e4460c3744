package demo

import (
	"fmt"
	"strings"
	"testing"
)

// checkWallet checks that the cash of a wallet is the sum of the amounts in its records. If no records were dropped, each position
// must be the sum of its trades and redemptions. The venue's responses for the balance and the positions must agree with the
// records.
func checkWallet(t *testing.T, v *Venue, address string) {
	t.Helper()
	w := v.walletOf(address)
	cash, left := Money(0), map[*token]Size{}
	previous := millis(0)
	for i := range w.records {
		r := &w.records[i]
		if r.at < previous {
			t.Fatalf("record %d is older than the previous record", i)
		}
		previous = r.at
		cash += r.amount
		if cash < 0 {
			t.Fatalf("after record %d: got cash %v, want at least 0", i, cash)
		}
		switch {
		case r.kind == kindTrade && r.sell, r.kind == kindRedeem:
			left[r.token] -= r.size
		case r.kind == kindTrade:
			left[r.token] += r.size
		}
		if r.token != nil && left[r.token] < 0 {
			t.Fatalf("record %d sells or redeems more than the position", i)
		}
		grid := Price(1)
		if r.kind == kindTrade {
			if grid = r.token.market.born.tick; r.at >= v.opened {
				grid = min(grid, fineTick) // the tick size may have been finer at the time of the trade
			}
		}
		if r.kind == kindTrade && (r.price%grid != 0 || r.size <= 0 || r.at < r.token.market.startAt) {
			t.Fatalf("trade %d: got size %v of token %s at the price %v and the time %v", i, r.size, r.token.id, r.price, r.at.Time())
		}
	}
	if w.dropped == 0 {
		for _, p := range w.positions {
			if left[p.token] != p.size {
				t.Fatalf("token %s: got position %v, want %v from the trades", p.token.id, p.size, left[p.token])
			}
			delete(left, p.token)
		}
		for tok, size := range left {
			if size != 0 {
				t.Fatalf("token %s: got no position, want %v from the trades", tok.id, size)
			}
		}
	}
	balance := get[balanceAnswer](t, v, "/api/user/balance?address="+address+credentials("demo"))
	if got := fixed(t, balance.CashBalance, 6); Money(got) != cash {
		t.Fatalf("got cash %v, want %v from the history", balance.CashBalance, cash)
	}
	if w.reserved() > cash {
		t.Fatalf("the orders reserve %v, want at most the cash %v", w.reserved(), cash)
	}
	portfolio := int64(0)
	for _, p := range get[positionsAnswer](t, v, "/api/user/positions?address="+address+credentials("demo")).Positions {
		size, price, avg := fixed(t, p.Size, 2), fixed(t, p.CurrentPrice, 4), fixed(t, p.AvgPrice, 4)
		portfolio += size * price
		if pnl := fixed(t, p.UnrealizedPnl, 6); pnl != size*(price-avg) {
			t.Fatalf("position %+v: got profit of %d millionths, want %d", p, pnl, size*(price-avg))
		}
		q, ok := v.Quote(p.TokenID)
		if !ok || q.Price != Price(price) {
			t.Fatalf("position %+v: got another price than the quote %v", p, q.Price)
		}
		if avg < 0 || avg > int64(payout) || size <= 0 {
			t.Fatalf("got position %+v, want avgPrice from 0 to 1 and a positive size", p)
		}
	}
	if got := fixed(t, balance.PortfolioValue, 6); got != portfolio {
		t.Fatalf("got portfolioValue %d, want %d from the positions", got, portfolio)
	}
	if got := fixed(t, balance.TotalValue, 6); got != portfolio+int64(cash) {
		t.Fatalf("got totalValue %d, want %d", got, portfolio+int64(cash))
	}
	b, _ := v.Balance(address)
	if int64(b.TotalValue) != portfolio+int64(cash) || int64(b.PortfolioValue) != portfolio || b.CashBalance != cash {
		t.Fatalf("Balance(): got %+v, want the values from REST", b)
	}
	taken := map[*token]bool{}
	for _, o := range w.orders {
		p := w.positionIn(o.token)
		if taken[o.token] || o.token.market.status != statusOpen || o.filled < 0 || o.filled >= o.size ||
			o.price <= 0 || o.price >= payout || o.price%o.token.tick != 0 || p == nil || o.side == Sell && o.size-o.filled > p.size {
			t.Fatalf("got invalid order %+v for position %+v", *o, p)
		}
		taken[o.token] = true
	}
}

// TestConsistency checks the books of all tokens and the accounts of all demo wallets while prices move, markets change and the
// accounts trade.
func TestConsistency(t *testing.T) {
	v := New(Config{Markets: 200, Clock: newClock(), Seed: 9, MarketEvery: 3 * pace})
	checkMarkets(t, v)
	records, statuses, ticks := 0, 0, 0
	for _, w := range v.accounts {
		records += len(w.records)
	}
	for range 10 {
		for range 60 {
			v.Step()
		}
		for _, tok := range v.listing.tokens {
			checkBook(t, tok)
		}
		for address := range v.accounts {
			checkWallet(t, v, address)
		}
	}
	checkWallet(t, v, strings.ToLower(other))
	tok := first(t, v, func(tok *token) bool { return isOpen(tok) && v.accounts[medium].positionIn(tok) != nil })
	for range maxRecords { // the venue merges the oldest records of a wallet
		if err := v.Trade(medium, tok.id, Buy, 1); err != nil {
			t.Fatal(err)
		}
	}
	if w := v.accounts[medium]; len(w.records) > maxRecords || w.dropped == 0 || w.records[0].kind != kindTransfer {
		t.Errorf("got %d records and %d dropped records, want at most %d, more than 0, and first a TRANSFER", len(w.records), w.dropped, maxRecords)
	}
	checkWallet(t, v, medium)
	for _, m := range v.listing.markets {
		if m.status != m.born.status {
			statuses++
		}
		if m.tick != m.born.tick {
			ticks++
		}
	}
	for address, want := range map[string]int{small: 3, medium: 50} {
		if n := len(v.Positions(address)); n != want {
			t.Errorf("%s: got %d positions, want %d", address, n, want)
		}
	}
	for _, w := range v.accounts {
		records -= len(w.records)
	}
	if records >= 0 || statuses < 3 || ticks == 0 {
		t.Errorf("got %d new records, %d markets with another status and %d with another tick size, want some of each", -records, statuses, ticks)
	}
}

// TestDerivedWallets checks that the cache of derived wallets is bounded, and that a wallet that was evicted and derived again has the
// same orders and history. The cache must keep a wallet with a subscriber.
func TestDerivedWallets(t *testing.T) {
	s := open(t, Config{Markets: 40})
	derived := strings.ToLower(other)
	ask := func() string {
		return send(s, "/api/user/history?limit=500&address="+other+credentials("demo")).Body.String() +
			send(s, "/api/user/orders?address="+other+credentials("demo")).Body.String()
	}
	fill := func() {
		for i := range maxDerived + 5 {
			s.walletOf(fmt.Sprintf("0x%040x", i))
		}
	}
	before, evicted := ask(), s.walletOf(derived)
	fill()
	if n := len(s.derived.wallets); n > maxDerived || s.walletOf(derived) == evicted || ask() != before {
		t.Errorf("the cache has %d wallets, want at most %d; or it did not evict the wallet; or the wallet differs now", n, maxDerived)
	}
	s.dial(t).subscribeUser(other, "demo")
	kept := s.walletOf(derived)
	fill()
	if s.walletOf(derived) != kept {
		t.Error("the cache evicted a wallet with a subscriber")
	}
}
