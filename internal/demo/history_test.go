package demo

import (
	"slices"
	"testing"
	"time"
)

func TestHistoryGrid(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 120, Clock: c})
	// A market that has traded for long enough to have all three grids.
	tok := first(t, v, func(tok *token) bool { return isOpen(tok) && tok.market.startAt < v.opened-100*day })
	target := "/api/exchange/price-history?tokenId=" + tok.id + "&startDate=2025-04-01&endDate=2026-03-14"
	points := get[historyAnswer](t, v, target).History
	if again := get[historyAnswer](t, v, target).History; !slices.Equal(points, again) {
		t.Fatal("the same question has two answers")
	}
	now := c.Now()
	counts := map[time.Duration]int{}
	for i, p := range points {
		if p.Timestamp.After(now) || p.Timestamp.Before(tok.market.startAt.Time()) {
			t.Fatalf("point at %v", p.Timestamp)
		}
		if price := fixed(t, p.Price, 4); price <= 0 || price >= int64(payout) || price%int64(tok.market.tick) != 0 {
			t.Fatalf("price %v", p.Price)
		}
		if fixed(t, p.Volume, 2) < 0 {
			t.Fatalf("volume %v", p.Volume)
		}
		if i == 0 {
			continue
		}
		gap, age := points[i-1].Timestamp.Sub(p.Timestamp), now.Sub(points[i-1].Timestamp)
		want := 24 * time.Hour
		switch {
		case age <= 48*time.Hour-5*time.Minute:
			want = 5 * time.Minute
		case age <= 48*time.Hour:
			want = gap // from one grid to the next
		case age < 30*24*time.Hour-time.Hour:
			want = time.Hour
		case age < 30*24*time.Hour:
			want = gap
		}
		if gap != want || gap <= 0 {
			t.Fatalf("%v between points that are %v old", gap, age)
		}
		counts[gap]++
	}
	if counts[5*time.Minute] < 570 || counts[time.Hour] < 660 || counts[24*time.Hour] < 60 {
		t.Errorf("points by grid: %v", counts)
	}
	if age := now.Sub(points[0].Timestamp); age >= 5*time.Minute {
		t.Errorf("the newest point is %v old", age)
	}
}

func TestHistoryDays(t *testing.T) {
	v := New(Config{Markets: 120, Clock: newClock()})
	tok := first(t, v, func(tok *token) bool { return isOpen(tok) && tok.market.startAt < v.opened-100*day })
	for _, c := range []struct {
		query       string
		first, last string // days of the newest and the oldest point
	}{
		{"", "2026-03-14", "2026-03-08"},
		{"&endDate=2026-03-10", "2026-03-10", "2026-03-04"},
		{"&startDate=2026-03-12", "2026-03-14", "2026-03-12"},
		{"&startDate=2026-03-11&endDate=2026-03-11", "2026-03-11", "2026-03-11"},
		{"&startDate=2026-01-20&endDate=2026-01-22", "2026-01-22", "2026-01-20"},
		{"&startDate=2026-03-13&endDate=2027-01-01", "2026-03-14", "2026-03-13"},
	} {
		points := get[historyAnswer](t, v, "/api/exchange/price-history?tokenId="+tok.id+c.query).History
		if len(points) == 0 {
			t.Errorf("%s: no points", c.query)
			continue
		}
		newest, oldest := points[0].Timestamp.Format(time.DateOnly), points[len(points)-1].Timestamp.Format(time.DateOnly)
		if newest != c.first || oldest != c.last {
			t.Errorf("%s: from %s to %s, want %s to %s", c.query, oldest, newest, c.last, c.first)
		}
	}
	for _, query := range []string{"&startDate=2030-01-01&endDate=2030-02-01", "&startDate=2020-01-01&endDate=2020-02-01"} {
		if points := get[historyAnswer](t, v, "/api/exchange/price-history?tokenId="+tok.id+query).History; len(points) > 0 {
			t.Errorf("%s: %d points", query, len(points))
		}
	}
}

// A chart ends near the live price, and that of a settled market at its close near what it paid.
func TestHistoryEndsAtThePrice(t *testing.T) {
	v := New(Config{Markets: 200, Clock: newClock(), Seed: 3})
	for range 2000 {
		v.Step()
	}
	open, settled := 0, 0
	for _, tok := range v.listing.tokens {
		m := tok.market
		points := m.history(tok.outcome, m.startAt, v.opened+day, v.opened)
		switch {
		case m.status == statusUpcoming:
			if len(points) > 0 {
				t.Fatalf("%s has not started and has points", m.slug)
			}
		case isOpen(tok):
			open++
			d := tok.price() - points[0].price
			if limit := payout / 20; d > limit || d < -limit {
				t.Errorf("%s: price %v, chart ends at %v", m.slug, tok.price(), points[0].price)
			}
		case m.status == statusResolved:
			settled++
			if points[0].at > m.closedAt {
				t.Fatalf("%s has a point after its close", m.slug)
			}
			if d := tok.price() - m.priceAt(tok.outcome, m.closedAt); d > m.tick || d < -m.tick {
				t.Errorf("%s paid %v, traded at %v last", m.slug, tok.price(), m.priceAt(tok.outcome, m.closedAt))
			}
		}
	}
	if open < 100 || settled < 20 {
		t.Fatalf("%d open and %d settled tokens", open, settled)
	}
}

func TestPastStaysInItsBand(t *testing.T) {
	v := New(Config{Markets: 200, Clock: newClock(), Seed: 4})
	moved := false
	for _, tok := range v.listing.tokens {
		if tok.market.winner >= 0 {
			continue
		}
		low, high := tok.market.band(tok.outcome)
		for at := v.opened - 300*day; at < v.opened+300*day; at += 17*hour + 3*minute {
			p := tok.market.priceAt(tok.outcome, at)
			if p < low || p > high {
				t.Fatalf("%s: %v lies outside %v to %v", tok.market.slug, p, low, high)
			}
			moved = moved || p != tok.market.priceAt(tok.outcome, at-day)
		}
	}
	if !moved {
		t.Error("nothing moves")
	}
}
