package loaders

import "oddsgraph/internal/market"

var _ market.PositionReads = (*Set)(nil)

// Market implements market.PositionReads.
func (s *Set) Market(ref market.MarketRef) (market.Read[*market.Market], error) {
	return s.Markets.Get(ref)
}

// Price implements market.PositionReads.
func (s *Set) Price(tokenID string) (market.Read[*market.Price], error) { return s.Prices.Get(tokenID) }

// Spread implements market.PositionReads.
func (s *Set) Spread(tokenID string) (market.Read[*market.Spread], error) {
	return s.Spreads.Get(tokenID)
}
