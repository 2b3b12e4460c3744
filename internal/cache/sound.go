package cache

import (
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// sound reports whether a value is one that a driver can return for a key. The shared cache stores and returns only such values,
// because other programs may write to it. A value of a kind that is not listed here is never sound.
func sound(key, value any) bool {
	switch v := value.(type) {
	case *market.Price:
		return v.TokenID == key && inUnit(&v.Price) && slices.Contains(bases, v.Basis)
	case *market.Spread:
		return v.TokenID == key && inUnit(v.BestBid) && inUnit(v.BestAsk) && (v.Spread == nil || inUnit(new(v.Spread.Abs())))
	case *market.Book:
		q, _ := key.(queries.Book)
		return v.TokenID == q.TokenID && v.Depth > 0 && soundSide(v.Bids, -1) && soundSide(v.Asks, 1)
	case *market.PriceHistory:
		q, _ := key.(queries.PriceHistory)
		return v.TokenID == q.TokenID && v.From == q.From && v.To == q.To && soundPoints(v.Points)
	case *market.Market:
		ref, _ := key.(market.MarketRef)
		return soundMarket(v) && (ref.By != market.ByMarketID || v.MarketID == ref.Value)
	case *market.Event:
		return soundEvent(v)
	case *queries.SearchPage:
		return soundMarkets(v.Markets) && (v.Total == nil || *v.Total >= 0)
	case *queries.EventPage:
		return !slices.ContainsFunc(v.Events, func(e queries.FoundEvent) bool { return !soundEvent(e.Event) || !soundMarkets(e.Matches) })
	case *queries.Categories:
		return !slices.ContainsFunc(v.List, func(c queries.Category) bool { return c.Name == "" || c.OpenMarkets < 0 })
	case *queries.TradePage:
		return !slices.ContainsFunc(v.Trades, func(t market.Trade) bool { return !soundTrade(&t) })
	}
	return false
}

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

// soundSide reports whether each level of a side has a price from 0 to 1 and a positive size, and the prices rise (order 1) or fall
// (order -1).
func soundSide(s market.Side, order int) bool {
	var last *market.Level
	for l := range s.All() {
		if !inUnit(&l.Price) || l.Size.Sign() <= 0 || last != nil && l.Price.Cmp(last.Price) != order {
			return false
		}
		last = l
	}
	return true
}

func soundPoints(points []market.PricePoint) bool {
	for i := range points {
		if p := &points[i]; !inUnit(&p.Price) || p.Timestamp.IsZero() || i > 0 && p.Timestamp.Before(points[i-1].Timestamp) {
			return false
		}
	}
	return true
}

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

func soundTrade(t *market.Trade) bool {
	return inUnit(&t.Price) && t.Size.Sign() >= 0 && !t.Timestamp.IsZero() && slices.Contains(sides, t.Side)
}
