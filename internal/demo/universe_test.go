package demo

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReproducible checks that the seed, the clock and the number of steps determine all books, accounts and markets.
func TestReproducible(t *testing.T) {
	state := func(seed uint64, steps int) string {
		v := New(Config{Markets: 60, Seed: seed, Clock: newClock(), MarketEvery: 3 * pace})
		v.epoch = "fixed"
		for range steps {
			v.Step()
		}
		var b strings.Builder
		for _, tok := range v.listing.tokens {
			b.Write(send(v, "/api/exchange/orderbook?depth=200&tokenId="+tok.id).Body.Bytes())
		}
		for _, address := range []string{small, medium, large, other} {
			for _, path := range []string{"balance", "positions", "orders", "history"} {
				b.Write(send(v, "/api/user/"+path+"?address="+address+credentials("demo")).Body.Bytes())
			}
		}
		b.Write(send(v, "/api/exchange/market-search?limit=100").Body.Bytes())
		return b.String()
	}
	a := state(5, 400)
	if a != state(5, 400) {
		t.Error("the same seed gave two different venues")
	}
	if a == state(6, 400) || a == state(5, 401) {
		t.Error("another seed or number of steps gave the same venue")
	}
}

// TestIdentifiersDoNotDependOnTheDay checks that two venues with the same seed have the same identifiers and positions if they
// start on different days.
func TestIdentifiersDoNotDependOnTheDay(t *testing.T) {
	c := newClock()
	before := New(Config{Markets: 400, Seed: 1, Clock: c})
	c.Advance(41*24*time.Hour + 7*time.Hour)
	after := New(Config{Markets: 400, Seed: 1, Clock: c})
	ids := func(v *Venue) (list []string) {
		for _, tok := range v.Tokens() {
			list = append(list, tok.TokenID, tok.MarketID, tok.EventID, tok.Status)
		}
		for _, address := range []string{small, medium, large, other} {
			for _, p := range v.Positions(address) {
				list = append(list, p.TokenID, p.Size.String())
			}
		}
		return list
	}
	if !slices.Equal(ids(before), ids(after)) {
		t.Error("identifiers or positions depend on the day")
	}
}

// checkMarkets checks that the statuses, times and prices of the markets of a new venue agree.
func checkMarkets(t *testing.T, v *Venue) {
	t.Helper()
	for _, m := range v.listing.markets {
		sum := Price(0)
		for _, tok := range m.tokens {
			sum += tok.price()
		}
		if off := sum - payout; off > Price(len(m.tokens))*m.tick || off < -Price(len(m.tokens))*m.tick || m.status == statusResolved && off != 0 {
			t.Fatalf("%s: the sum of the prices is %v, want about 1, or exactly 1 after the resolution", m.slug, sum)
		}
		if started, ended := m.startAt <= v.opened, m.endAt <= v.opened; m.updatedAt > v.opened || m.startAt >= m.endAt ||
			started == (m.status == statusUpcoming) || m.status == statusOpen && ended || m.status == statusClosed && !ended || (m.winner >= 0) != (m.status == statusResolved) {
			t.Fatalf("%s: got status %s, winner %d, the start %v and the end %v", m.slug, m.status, m.winner, m.startAt.Time(), m.endAt.Time())
		}
	}
}

// TestOtherVenue checks that another venue of the same seed has the same markets, at prices of its own, so that some books cross
// between the two venues and most do not, also after the markets have moved. The other venue opens a moment later.
func TestOtherVenue(t *testing.T) {
	c := newClock()
	opened := c.Now()
	a := New(Config{Markets: 400, Seed: 1, Clock: c})
	c.Advance(pace)
	b := New(Config{Markets: 400, Seed: 1, Clock: c, Other: 1, Opened: opened})
	for round := range 3 {
		crossed, same, open := 0, 0, 0
		for i, tok := range a.Tokens() {
			if other := b.Tokens()[i]; round == 0 && other != tok {
				t.Fatalf("token %d is %+v at one venue and %+v at the other", i, tok, other)
			}
			if a, b := a.listing.markets[0], b.listing.markets[0]; a.startAt != b.startAt || a.endAt != b.endAt {
				t.Fatalf("a market begins at %d and %d and ends at %d and %d at the two venues", a.startAt, b.startAt, a.endAt, b.endAt)
			}
			p, _ := a.Quote(tok.TokenID)
			q, _ := b.Quote(tok.TokenID)
			if tok.Status != "OPEN" {
				if tok.Status == "RESOLVED" && p.Price != q.Price {
					t.Fatalf("the result of %s differs", tok.Slug)
				}
				continue
			}
			open++
			if p.Price == q.Price {
				same++
			}
			if p.BestBid > 0 && q.BestAsk > 0 && p.BestBid > q.BestAsk || q.BestBid > 0 && p.BestAsk > 0 && q.BestBid > p.BestAsk {
				crossed++
			}
		}
		if crossed < open/50 || crossed > open*3/4 || same > open*2/3 {
			t.Errorf("round %d: of %d open tokens, %d have crossed books and %d the same price, want some and not most", round, open, crossed, same)
		}
		for range 200 {
			c.Advance(pace)
			a.Step()
			b.Step()
		}
	}
}

// TestRun checks how often a venue moves, a quiet one once a minute, and that quiet markets never move by themselves.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v *Venue
		for quiet, within := range map[bool]time.Duration{false: 10 * time.Second, true: time.Hour + time.Second} {
			v = New(Config{Markets: 120, Quiet: quiet})
			ctx, cancel := context.WithTimeout(t.Context(), within)
			if err := v.Run(ctx); err != context.DeadlineExceeded || v.steps < 40 || v.steps > 100 || quiet && v.steps != 60 {
				t.Errorf("quiet %t: the venue moved %d times in %v and ended with %v", quiet, v.steps, within, err)
			}
			cancel()
		}
		for range 5000 {
			v.Step()
		}
		for _, m := range v.listing.markets {
			if m.quiet() && m.tokens[0].bookSeq+m.tokens[0].tape.count > 1 {
				t.Errorf("the quiet market %s has moved", m.slug)
			}
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{Price(6500).String(), "0.65"}, {Price(10000).String(), "1"}, {Price(0).String(), "0"}, {Price(5).String(), "0.0005"},
		{Size(1050).String(), "10.5"}, {Size(100000).String(), "1000"}, {Size(1).String(), "0.01"},
		{Money(-1_500_000).String(), "-1.5"}, {Money(-1).String(), "-0.000001"}, {notional(1050, 6543).String(), "6.87015"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for s, want := range map[string]int64{"0.65": 6500, "1": 10000, "-0.5": -5000, "-12.25": -122500, "0.0001": 1, "1.": 10000} {
		if got, ok := parseFixed(s, 4); !ok || got != want {
			t.Errorf("parseFixed(%q): got %d and %v, want %d and true", s, got, ok, want)
		}
	}
	for _, s := range []string{"", ".", ".5", "0.00001", "1e2", "+1", "NaN", "1.-5", "1234567890123", "0x1"} {
		if got, ok := parseFixed(s, 4); ok {
			t.Errorf("parseFixed(%q): got %d and true, want false", s, got)
		}
	}
	for at, want := range map[millis]millis{0: 0, 7: 5, -1: -5, -5: -5, 10: 10} {
		if got := at.floor(5); got != want {
			t.Errorf("%d.floor(5): got %d, want %d", at, got, want)
		}
	}
}
