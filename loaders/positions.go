package loaders

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/valuation"
)

var _ valuation.Reads = (*Set)(nil)

// Market implements valuation.Reads.
func (s *Set) Market(ref market.MarketRef) (market.Read[*market.Market], error) {
	return s.Markets.Get(ref)
}

// Price implements valuation.Reads.
func (s *Set) Price(tokenID string) (market.Read[*market.Price], error) { return s.Prices.Get(tokenID) }

// Spread implements valuation.Reads.
func (s *Set) Spread(tokenID string) (market.Read[*market.Spread], error) {
	return s.Spreads.Get(tokenID)
}
