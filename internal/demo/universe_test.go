package demo

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDefaultUniverse(t *testing.T) {
	v := New(Config{Clock: newClock()})
	u := v.listing
	if len(u.markets) < 1200 || len(u.tokens) < 2500 || len(u.events) < 300 {
		t.Fatalf("got %d markets, %d tokens and %d events, want at least 1,200, 2,500 and 300", len(u.markets), len(u.tokens), len(u.events))
	}
	if len(u.tokenByID) != len(u.tokens) || len(u.marketByID) != len(u.markets) || len(u.bySlug) != len(u.markets) ||
		len(u.eventsBySlug) != len(u.events) {
		t.Fatal("identifiers or slugs are not unique")
	}
	now := v.opened
	byStatus, byCategory, outcomes := map[string]int{}, map[string]int{}, map[int]int{}
	for _, m := range u.markets {
		byStatus[m.status]++
		byCategory[m.category]++
		outcomes[len(m.tokens)]++
		labels := map[string]bool{}
		sum, settled := Price(0), Price(0)
		for _, tok := range m.tokens {
			labels[tok.label] = true
			sum += tok.lastPrice()
			settled += tok.price()
		}
		if len(labels) != len(m.tokens) {
			t.Errorf("%s: duplicate labels", m.slug)
		}
		if m.binary() != (m.tokens[0].label == "YES" && m.tokens[1].label == "NO" && len(m.tokens) == 2) {
			t.Errorf("%s: the labels do not match binary()", m.slug)
		}
		if sum < payout-Price(len(labels))*m.tick || sum > payout+Price(len(labels))*m.tick {
			t.Errorf("%s: the sum of the prices is %v, want about 1", m.slug, sum)
		}
		switch m.status {
		case statusResolved:
			if settled != payout || m.winner < 0 || m.resolvedAt > now || m.resolvedAt < m.closedAt {
				t.Errorf("%s: got the time of resolution %v and the payouts %v, want a time since the close and a sum of 1", m.slug, m.resolvedAt.Time(), settled)
			}
		case statusUpcoming:
			if m.startAt <= now {
				t.Errorf("%s is upcoming but has started", m.slug)
			}
		case statusOpen:
			if m.startAt > now || m.endAt <= now {
				t.Errorf("%s is open, but trades from %v to %v", m.slug, m.startAt.Time(), m.endAt.Time())
			}
		case statusClosed:
			if m.endAt > now {
				t.Errorf("%s is closed before its end", m.slug)
			}
		}
		if m.updatedAt > now || m.startAt >= m.endAt {
			t.Errorf("%s: got the last update %v, the start %v and the end %v", m.slug, m.updatedAt.Time(), m.startAt.Time(), m.endAt.Time())
		}
		if len(m.event.markets) > 1 && m.groupTitle == "" {
			t.Errorf("%s is one of several markets of its event but has no group title", m.slug)
		}
	}
	for _, status := range statuses {
		if byStatus[status] == 0 {
			t.Errorf("got no market that is %s", status)
		}
	}
	if share := byStatus[statusOpen] * 100 / len(u.markets); share < 60 {
		t.Errorf("only %d %% of the markets are open, want at least 60 %%", share)
	}
	if len(byCategory) < 6 {
		t.Errorf("got numbers of markets by category %v, want at least 6 categories", byCategory)
	}
	for n := 2; n <= 8; n++ {
		if outcomes[n] == 0 {
			t.Errorf("got no market with %d outcomes", n)
		}
	}
	deepest := 0
	for _, tok := range u.tokens {
		b := tok.book()
		deepest = max(deepest, min(len(b.Bids), len(b.Asks)))
	}
	if deepest < 150 {
		t.Errorf("no book has more than %d levels on both sides, want at least 150", deepest)
	}
}

// TestResolvedEvents checks that, in a resolved event of several binary markets, at least one market is resolved to YES. If several
// markets are resolved to YES, they must be the first markets of the event.
func TestResolvedEvents(t *testing.T) {
	v := New(Config{Clock: newClock()})
	checked := 0
	for _, e := range v.listing.events {
		if e.markets[0].status != statusResolved || !e.markets[0].binary() || len(e.markets) < 2 {
			continue
		}
		checked++
		yes := 0
		for i, m := range e.markets {
			if m.winner == 0 {
				yes++
				if yes > 1 && yes != i+1 {
					t.Errorf("%s: market %d is resolved to YES, but an earlier market is not", e.slug, i)
				}
			}
		}
		if yes == 0 {
			t.Errorf("%s: no market is resolved to YES", e.slug)
		}
	}
	if checked < 5 {
		t.Fatalf("got only %d resolved events of several binary markets, want at least 5", checked)
	}
}

func TestScale(t *testing.T) {
	v := New(Config{Markets: 4400, Clock: newClock()})
	if n := len(v.listing.tokens); n < 10_000 {
		t.Errorf("got %d tokens, want at least 10,000", n)
	}
	for _, n := range []int{1, 2, 3, 41} {
		v := New(Config{Markets: n, Clock: newClock()})
		if got := len(v.listing.markets); got != n {
			t.Errorf("got %d markets, want %d", got, n)
		}
		for range 20 {
			v.Step()
		}
	}
}

// TestReproducible checks that the seed, the clock and the number of steps determine all books, accounts and markets.
func TestReproducible(t *testing.T) {
	state := func(seed uint64, steps int) string {
		v := New(Config{Markets: 60, Seed: seed, Clock: newClock()})
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

func TestTokens(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	tokens := v.Tokens()
	if len(tokens) != len(v.listing.tokens) {
		t.Fatalf("got %d tokens, want %d", len(tokens), len(v.listing.tokens))
	}
	m := get[struct{ Markets []marketAnswer }](t, v, "/api/exchange/market-details?tokenIds="+tokens[9].TokenID).Markets[0]
	want := tokens[9]
	if m.MarketID != want.MarketID || m.Slug != want.Slug || m.EventID != want.EventID || m.Status != want.Status ||
		!slices.ContainsFunc(m.Outcomes, func(o outcomeAnswer) bool { return o.TokenID == want.TokenID && o.Outcome == want.Outcome }) {
		t.Errorf("the token %+v differs from the market %+v over REST", want, m)
	}
}

// TestTextsAreGrammatical checks that no question has a wrong article or another known mistake.
func TestTextsAreGrammatical(t *testing.T) {
	wrong := regexp.MustCompile(`\b[Aa] ([aeio]|u[^n])|\ban [^aeiou]|^Will Another|than now|a warmest`)
	for _, m := range New(Config{Clock: newClock()}).listing.markets {
		if wrong.MatchString(m.question) {
			t.Errorf("the question %q has a mistake", m.question)
		}
	}
}
