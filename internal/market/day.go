package market

import (
	"slices"
	"time"
)

// At returns the last point at or before t, or nil if all points are later. next is the time of the first point after t. It is
// zero if no point is after t.
func (h *PriceHistory) At(t time.Time) (p *PricePoint, next time.Time) {
	i, found := slices.BinarySearchFunc(h.Points, t, func(p PricePoint, t time.Time) int { return p.Timestamp.Compare(t) })
	if found {
		i++
	}
	if i < len(h.Points) {
		next = h.Points[i].Timestamp
	}
	if i > 0 {
		p = &h.Points[i-1]
	}
	return p, next
}

// Samples divides the span before end into n equal intervals and returns the price at the end of each interval. Intervals that end
// before the first point have no price. A call with a later end returns the same prices while this end is before until.
func (h *PriceHistory) Samples(end time.Time, span time.Duration, n int) (prices []Decimal, until time.Time) {
	until = end.Add(span)
	for i := range n {
		t := end.Add(-span / time.Duration(n) * time.Duration(n-1-i))
		p, next := h.At(t)
		if !next.IsZero() && end.Add(next.Sub(t)).Before(until) {
			until = end.Add(next.Sub(t))
		}
		if p != nil {
			prices = append(prices, p.Price)
		}
	}
	return prices, until
}
