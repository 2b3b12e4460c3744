package loaders

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/reads/valuation"
)

var _ valuation.Reads = (*Set)(nil)

// Market implements valuation.Reads.
func (s *Set) Market(ref market.MarketRef) (reads.Value[*market.Market], error) {
	return s.Markets.Get(ref)
}

// Price implements valuation.Reads.
func (s *Set) Price(tokenID string) (reads.Value[*market.Price], error) { return s.Prices.Get(tokenID) }

// Spread implements valuation.Reads.
func (s *Set) Spread(tokenID string) (reads.Value[*market.Spread], error) {
	return s.Spreads.Get(tokenID)
}
