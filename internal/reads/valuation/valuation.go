// Package valuation prices, filters and sorts the positions of an account.
package valuation

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// Quotes contains the data from which a position can be valued. Each value may be nil.
type Quotes struct {
	Market  reads.Value[*market.Market]
	Outcome *market.Outcome
	Price   reads.Value[*market.Price]
	Spread  reads.Value[*market.Spread]
}

// Valuation is the value of a position at one price.
type Valuation struct {
	Price market.Decimal
	Basis market.PriceBasis
	// Value is size × price.
	Value market.Decimal
	// UnrealizedPnl is value − cost. It is nil if the position has no average price.
	UnrealizedPnl *market.Decimal
	// UnrealizedPnlPercent is 100 × UnrealizedPnl / cost, rounded half-even to 6 decimals. It is nil if the cost is unknown or 0.
	UnrealizedPnlPercent *market.Decimal
	Meta                 reads.Meta
}

// Of computes the valuation of a position by a basis. If basis is empty, Of uses the first known price in this order: the
// settlement price of a resolved market, the venue's price, MIDPOINT, BEST_BID, POSITION. Of returns nil if no price is known. meta
// is the Meta of the position.
func Of(p *market.Position, meta reads.Meta, q *Quotes, basis market.PriceBasis) *Valuation {
	if basis != "" {
		return valueBy(p, meta, q, basis)
	}
	if v := valueBy(p, meta, q, market.BasisSettlement); v != nil {
		return v
	}
	if price := q.Price.Value; price != nil {
		return valueAt(p, price.Price, price.Basis, reads.Combine(meta, q.Price.Meta))
	}
	for _, b := range [...]market.PriceBasis{market.BasisMidpoint, market.BasisBestBid, market.BasisPosition} {
		if v := valueBy(p, meta, q, b); v != nil {
			return v
		}
	}
	return nil
}

// valueBy computes the valuation of a position by one basis. It returns nil if the price is not known.
func valueBy(p *market.Position, meta reads.Meta, q *Quotes, basis market.PriceBasis) *Valuation {
	var price *market.Decimal
	from := reads.Meta{}
	switch basis {
	case market.BasisSettlement:
		if q.Market.Value != nil { // a settlement is final, so the valuation does not get the Meta of the market
			price = q.Market.Value.SettlementPrice(q.Outcome)
		}
	case market.BasisPosition:
		price = p.CurrentPrice
	case market.BasisMidpoint, market.BasisBestBid, market.BasisBestAsk:
		if s := q.Spread.Value; s != nil {
			from = q.Spread.Meta
			switch basis {
			case market.BasisMidpoint:
				price = s.Midpoint()
			case market.BasisBestBid:
				price = s.BestBid
			default:
				price = s.BestAsk
			}
		}
	}
	if price == nil && q.Price.Value != nil && q.Price.Value.Basis == basis {
		price, from = &q.Price.Value.Price, q.Price.Meta
	}
	if price == nil {
		return nil
	}
	return valueAt(p, *price, basis, reads.Combine(meta, from))
}

func valueAt(p *market.Position, price market.Decimal, basis market.PriceBasis, meta reads.Meta) *Valuation {
	v := &struct { // one allocation instead of three
		Valuation
		pnl, percent market.Decimal
	}{Valuation: Valuation{Price: price, Basis: basis, Value: p.Size.Mul(price).Reduce(), Meta: meta}}
	if p.AvgPrice == nil {
		return &v.Valuation
	}
	cost := p.CostAt(*p.AvgPrice)
	v.pnl = v.Value.Sub(cost).Reduce()
	v.UnrealizedPnl = &v.pnl
	var ok bool
	if v.percent, ok = v.pnl.Mul(market.NewDecimal(100, 0)).QuoRound(cost, 6); ok {
		v.UnrealizedPnlPercent = &v.percent
	}
	return &v.Valuation
}

// Portfolio has the exact sums over an account's positions.
type Portfolio struct {
	PositionsValue market.Decimal
	// CostBasis and UnrealizedPnl are sums over the positions with both a price and an average price. They are nil if there is no
	// such position.
	CostBasis, UnrealizedPnl *market.Decimal
	// Unpriced is the number of positions without a price. Uncosted is the number of positions with a price but without an average
	// price.
	Unpriced, Uncosted int
	Meta               reads.Meta
}

// Sum adds up positions and their valuations. The valuation of a position without a known price is nil. meta is the Meta of the
// list.
func Sum(positions []market.Position, valuations []*Valuation, meta reads.Meta) *Portfolio {
	var total, cost, pnl market.Decimal
	out := &Portfolio{Meta: reads.Combine(meta)}
	costed := false
	for i := range positions {
		v := valuations[i]
		if v == nil {
			out.Unpriced++
			continue
		}
		total = total.Add(v.Value)
		out.Meta = reads.Combine(out.Meta, v.Meta)
		c := positions[i].CostBasis()
		if c == nil {
			out.Uncosted++
			continue
		}
		costed = true
		cost = cost.Add(*c)
		pnl = pnl.Add(*v.UnrealizedPnl)
	}
	out.PositionsValue = total.Reduce()
	if costed {
		cost, pnl = cost.Reduce(), pnl.Reduce()
		out.CostBasis, out.UnrealizedPnl = &cost, &pnl
	}
	return out
}
