package market

// Quotes are the data that can price a position. Each may be absent.
type Quotes struct {
	// Market and Outcome belong to the position; nil if they were not found.
	Market  Read[*Market]
	Outcome *Outcome
	Price   Read[*Price]
	Spread  Read[*Spread]
}

// Valuation is the value of a position by one basis.
type Valuation struct {
	Price Decimal
	Basis PriceBasis
	// Value is size × price.
	Value Decimal
	// UnrealizedPnl is value − cost; nil if the position has no average price.
	UnrealizedPnl *Decimal
	// UnrealizedPnlPercent is 100 × UnrealizedPnl / cost, rounded half-even to 6 decimals; nil if the cost is 0.
	UnrealizedPnlPercent *Decimal
	Meta                 Meta
}

// Value prices a position by a basis. If basis is empty, Value uses the first known price of: SETTLEMENT if the market is
// resolved, the venue's price, MIDPOINT, BEST_BID, POSITION. It returns nil if no price is known. held is the Meta of the
// position.
func Value(p *Position, held Meta, q *Quotes, basis PriceBasis) *Valuation {
	if basis != "" {
		return valueBy(p, held, q, basis)
	}
	if v := valueBy(p, held, q, BasisSettlement); v != nil {
		return v
	}
	if price := q.Price.Value; price != nil {
		return valueAt(p, price.Price, price.Basis, Combine(held, q.Price.Meta))
	}
	for _, b := range [...]PriceBasis{BasisMidpoint, BasisBestBid, BasisPosition} {
		if v := valueBy(p, held, q, b); v != nil {
			return v
		}
	}
	return nil
}

// valueBy prices a position by one basis. It returns nil if the price is not known.
func valueBy(p *Position, held Meta, q *Quotes, basis PriceBasis) *Valuation {
	var price *Decimal
	from := Meta{}
	switch basis {
	case BasisSettlement:
		if q.Market.Value != nil {
			price, from = q.Market.Value.SettlementPrice(q.Outcome), q.Market.Meta
		}
	case BasisPosition:
		price = p.CurrentPrice
	case BasisMidpoint, BasisBestBid, BasisBestAsk:
		if s := q.Spread.Value; s != nil {
			from = q.Spread.Meta
			switch basis {
			case BasisMidpoint:
				price = s.Midpoint()
			case BasisBestBid:
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
	return valueAt(p, *price, basis, Combine(held, from))
}

func valueAt(p *Position, price Decimal, basis PriceBasis, meta Meta) *Valuation {
	v := &struct { // one allocation, because all positions of a list are valued
		Valuation
		pnl, percent Decimal
	}{Valuation: Valuation{Price: price, Basis: basis, Value: p.Size.Mul(price).Reduce(), Meta: meta}}
	if p.AvgPrice == nil {
		return &v.Valuation
	}
	cost := p.costAt(*p.AvgPrice)
	v.pnl = v.Value.Sub(cost).Reduce()
	v.UnrealizedPnl = &v.pnl
	var ok bool
	if v.percent, ok = v.pnl.Mul(NewDecimal(100, 0)).QuoRound(cost, 6); ok {
		v.UnrealizedPnlPercent = &v.percent
	}
	return &v.Valuation
}

// Portfolio has the exact sums over an account's positions.
type Portfolio struct {
	PositionsValue Decimal
	// CostBasis and UnrealizedPnl include the positions that have a price and an average price; nil if none has both.
	CostBasis, UnrealizedPnl *Decimal
	// Unpriced counts positions without a price, Uncosted priced positions without an average price.
	Unpriced, Uncosted int
	Meta               Meta
}

// Sum adds up positions and their valuations. A valuation is nil if no price is known. held is the Meta of the list.
func Sum(positions []Position, valuations []*Valuation, held Meta) *Portfolio {
	var total, cost, pnl Decimal
	out := &Portfolio{Meta: Combine(held)}
	costed := false
	for i := range positions {
		v := valuations[i]
		if v == nil {
			out.Unpriced++
			continue
		}
		total = total.Add(v.Value)
		out.Meta = Combine(out.Meta, v.Meta)
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

// HeldByBuys returns the money that open BUY orders reserve: the sum of price × remaining size.
func HeldByBuys(orders []Order) Decimal {
	var held Decimal
	for i := range orders {
		if o := &orders[i]; o.Side == SideBuy {
			held = held.Add(o.Price.Mul(o.Remaining()))
		}
	}
	return held.Reduce()
}

// Remaining returns the size that is not filled, in shares, at least 0.
func (o *Order) Remaining() Decimal {
	r := o.Size.Sub(o.FilledSize).Reduce()
	if r.Sign() < 0 {
		return Decimal{}
	}
	return r
}
