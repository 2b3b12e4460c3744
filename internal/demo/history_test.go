package demo

import (
	"slices"
	"testing"
	"time"
)

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
		if len(points) == 0 || !slices.IsSortedFunc(points, func(a, b pointAnswer) int { return b.Timestamp.Compare(a.Timestamp) }) {
			t.Errorf("query %q: got %d points, want some, newest first", c.query, len(points))
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
	v := New(Config{Markets: 80, Clock: newClock(), Seed: 3})
	for range 500 {
		v.Step()
	}
	for _, tok := range v.listing.tokens {
		m := tok.market
		points := m.history(tok.outcome, m.startAt, v.opened+day, v.opened)
		switch {
		case m.status == statusUpcoming:
			if len(points) > 0 {
				t.Fatalf("%s: got points before the start", m.slug)
			}
		case isOpen(tok):
			d := tok.price() - points[0].price
			if limit := payout / 20; d > limit || d < -limit {
				t.Errorf("%s: got the present price %v and the last point %v, want at most %v between them", m.slug, tok.price(), points[0].price, limit)
			}
		case m.status == statusResolved:
			if points[0].at > m.closedAt {
				t.Fatalf("%s: got a point after the close", m.slug)
			}
			if d := tok.price() - m.priceAt(tok.outcome, m.closedAt); d > m.tick || d < -m.tick {
				t.Errorf("%s: got the payout %v and the price %v at the close, want at most one tick between them", m.slug, tok.price(), m.priceAt(tok.outcome, m.closedAt))
			}
		}
	}
}
