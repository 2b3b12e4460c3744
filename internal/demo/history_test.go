package demo

import (
	"slices"
	"testing"
	"time"
)

func TestHistoryGrid(t *testing.T) {
	c := newClock()
	v := New(Config{Markets: 120, Clock: c})
	// The market of tok has traded for more than 100 days, so the points of its history are 5 minutes, 1 hour or 1 day apart.
	tok := first(t, v, func(tok *token) bool { return isOpen(tok) && tok.market.startAt < v.opened-100*day })
	target := "/api/exchange/price-history?tokenId=" + tok.id + "&startDate=2025-04-01&endDate=2026-03-14"
	points := get[historyAnswer](t, v, target).History
	if again := get[historyAnswer](t, v, target).History; !slices.Equal(points, again) {
		t.Fatal("two equal requests gave different points")
	}
	now := c.Now()
	counts := map[time.Duration]int{}
	for i, p := range points {
		if p.Timestamp.After(now) || p.Timestamp.Before(tok.market.startAt.Time()) {
			t.Fatalf("got a point at %v, which is in the future or before the market's start", p.Timestamp)
		}
		if price := fixed(t, p.Price, 4); price <= 0 || price >= int64(payout) || price%int64(tok.market.tick) != 0 {
			t.Fatalf("got price %v, want a multiple of the tick size between 0 and 1", p.Price)
		}
		if fixed(t, p.Volume, 2) < 0 {
			t.Fatalf("got volume %v, want at least 0", p.Volume)
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
			want = gap // where the grid changes from 5 minutes to 1 hour, any gap is allowed
		case age < 30*24*time.Hour-time.Hour:
			want = time.Hour
		case age < 30*24*time.Hour:
			want = gap
		}
		if gap != want || gap <= 0 {
			t.Fatalf("the points of age %v are %v apart, want %v", age, gap, want)
		}
		counts[gap]++
	}
	if counts[5*time.Minute] < 570 || counts[time.Hour] < 660 || counts[24*time.Hour] < 60 {
		t.Errorf("got too few points; by the distance to the next point, the numbers of points are %v", counts)
	}
	if age := now.Sub(points[0].Timestamp); age >= 5*time.Minute {
		t.Errorf("the newest point has the age %v, want less than 5 minutes", age)
	}
}

func TestHistoryDays(t *testing.T) {
	v := New(Config{Markets: 120, Clock: newClock()})
	tok := first(t, v, func(tok *token) bool { return isOpen(tok) && tok.market.startAt < v.opened-100*day })
	for _, c := range []struct {
		query       string
		first, last string // the days of the newest and the oldest point
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
			t.Errorf("query %q: got no points", c.query)
			continue
		}
		newest, oldest := points[0].Timestamp.Format(time.DateOnly), points[len(points)-1].Timestamp.Format(time.DateOnly)
		if newest != c.first || oldest != c.last {
			t.Errorf("query %q: got points from %s to %s, want %s to %s", c.query, oldest, newest, c.last, c.first)
		}
	}
	for _, query := range []string{"&startDate=2030-01-01&endDate=2030-02-01", "&startDate=2020-01-01&endDate=2020-02-01"} {
		if points := get[historyAnswer](t, v, "/api/exchange/price-history?tokenId="+tok.id+query).History; len(points) > 0 {
			t.Errorf("%s: got %d points, want none", query, len(points))
		}
	}
}

// TestHistoryEndsAtPrice checks that the history of an open market ends near the present price. A resolved market must have no
// point after its close, and its price at the close must be within one tick of the payout.
func TestHistoryEndsAtPrice(t *testing.T) {
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
				t.Fatalf("%s: got points before the start", m.slug)
			}
		case isOpen(tok):
			open++
			d := tok.price() - points[0].price
			if limit := payout / 20; d > limit || d < -limit {
				t.Errorf("%s: got the present price %v and the last point %v, want at most %v between them", m.slug, tok.price(), points[0].price, limit)
			}
		case m.status == statusResolved:
			settled++
			if points[0].at > m.closedAt {
				t.Fatalf("%s: got a point after the close", m.slug)
			}
			if d := tok.price() - m.priceAt(tok.outcome, m.closedAt); d > m.tick || d < -m.tick {
				t.Errorf("%s: got the payout %v and the price %v at the close, want at most one tick between them", m.slug, tok.price(), m.priceAt(tok.outcome, m.closedAt))
			}
		}
	}
	if open < 100 || settled < 20 {
		t.Fatalf("got %d open and %d settled tokens, want at least 100 and 20", open, settled)
	}
}

func TestHistoryStaysInBand(t *testing.T) {
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
				t.Fatalf("%s: got price %v, want %v to %v", tok.market.slug, p, low, high)
			}
			moved = moved || p != tok.market.priceAt(tok.outcome, at-day)
		}
	}
	if !moved {
		t.Error("no price changed from one day to the next")
	}
}
