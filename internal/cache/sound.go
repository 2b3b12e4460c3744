package cache

import (
	"slices"

	"oddsgraph/internal/market"
)

var (
	one    = market.NewDecimal(1, 0)
	bases  = []market.PriceBasis{market.BasisSettlement, market.BasisVenue, market.BasisLast, market.BasisMidpoint, market.BasisBestBid, market.BasisBestAsk}
	states = []market.Status{
		market.StatusUpcoming, market.StatusOpen, market.StatusClosed, market.StatusDisputed, market.StatusResolved, market.StatusCancelled, market.StatusUnknown,
	}
	sides = []market.OrderSide{market.SideBuy, market.SideSell, market.SideUnknown}
)

// inUnit reports whether d is nil or from 0 to 1.
func inUnit(d *market.Decimal) bool { return d == nil || d.Sign() >= 0 && d.Cmp(one) <= 0 }

func soundMarket(m *market.Market) bool {
	if m == nil || market.CheckID(m.MarketID) != nil || !slices.Contains(states, m.Status) {
		return false
	}
	return !slices.ContainsFunc(m.Outcomes, func(o market.Outcome) bool {
		return o.Label == "" || o.TokenID != "" && market.CheckID(o.TokenID) != nil || !inUnit(o.Price)
	})
}

func soundMarkets(list []*market.Market) bool {
	return !slices.ContainsFunc(list, func(m *market.Market) bool { return !soundMarket(m) })
}

func soundEvent(e *market.Event) bool {
	return e != nil && (e.EventID != "" || e.Slug != "") && soundMarkets(e.Markets)
}
