package market

import (
	"sort"
	"time"
)

// At returns the last point at or before t, or nil if all points are later. next is the time of the first point after t, or zero if
// no point is after t.
func (h *PriceHistory) At(t time.Time) (p *PricePoint, next time.Time) {
	i := sort.Search(len(h.Points), func(i int) bool { return h.Points[i].Timestamp.After(t) })
	if i < len(h.Points) {
		next = h.Points[i].Timestamp
	}
	if i > 0 {
		p = &h.Points[i-1]
	}
	return p, next
}

// Samples divides the period from end-span to end into n equal intervals, and returns the price at which each interval closes. It
// leaves out intervals that close before the first point. A later call with the same span and n returns the same prices if its end
// is before validUntil.
func (h *PriceHistory) Samples(end time.Time, span time.Duration, n int) (prices []Decimal, validUntil time.Time) {
	validUntil = end.Add(span)
	for i := range n {
		t := end.Add(-span / time.Duration(n) * time.Duration(n-1-i))
		p, next := h.At(t)
		if !next.IsZero() && end.Add(next.Sub(t)).Before(validUntil) {
			validUntil = end.Add(next.Sub(t))
		}
		if p != nil {
			prices = append(prices, p.Price)
		}
	}
	return prices, validUntil
}
