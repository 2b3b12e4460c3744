package wire

import "oddsgraph/internal/market"

var (
	fieldPortfolioValue = Names("portfolioValue")
	fieldCashBalance    = Names("cashBalance", "cash")
	fieldPositionsValue = Names("positionsValue")
	fieldTotalValue     = Names("totalValue")

	fieldAvgPrice      = Names("avgPrice", "averagePrice")
	fieldCurrentPrice  = Names("currentPrice", "curPrice")
	fieldUnrealizedPnl = Names("unrealizedPnl").Or("unrealizedPnL", "unrealizedPNL")

	fieldOrderID    = Names("orderId", "id").Or("orderID")
	fieldOrderSize  = Names("size", "originalSize", "quantity")
	fieldFilledSize = Names("filledSize", "sizeMatched", "filled")
	fieldCreatedAt  = Names("createdAt", "timestamp")

	fieldTradeID = Names("tradeId", "id").Or("tradeID")
	fieldFee     = Names("fee")
)

// Balance reads an account's money. The total is the venue's, else positionsValue + cash, else portfolioValue + cash.
func (r *Row) Balance() *market.Balance {
	b := &market.Balance{
		PortfolioValue: r.Decimal(fieldPortfolioValue),
		CashBalance:    r.Decimal(fieldCashBalance),
		PositionsValue: r.Decimal(fieldPositionsValue),
		TotalValue:     r.Decimal(fieldTotalValue),
		UpdatedAt:      r.Time(FieldUpdatedAt),
	}
	if b.PortfolioValue == nil && b.CashBalance == nil && b.PositionsValue == nil && b.TotalValue == nil {
		r.Bad(fieldPortfolioValue, "is missing, and all other figures are")
	}
	if holdings := b.PositionsValue; b.TotalValue == nil && b.CashBalance != nil {
		if holdings == nil {
			holdings = b.PortfolioValue
		}
		if holdings != nil {
			total := holdings.Add(*b.CashBalance).Reduce()
			b.TotalValue = &total
		}
	}
	return b
}

// Position reads a holding.
func (r *Row) Position() market.Position {
	return market.Position{
		MarketID:      r.RequireID(FieldMarketID),
		TokenID:       r.ID(FieldUserToken),
		Outcome:       r.RequireText(FieldLabel),
		Size:          r.Number(FieldHeld),
		AvgPrice:      r.Decimal(fieldAvgPrice),
		CurrentPrice:  r.Decimal(fieldCurrentPrice),
		UnrealizedPnl: r.Decimal(fieldUnrealizedPnl),
	}
}

// Order reads an active order.
func (r *Row) Order() market.Order {
	side, status, filled := r.RequireText(FieldSide), r.Text(FieldStatus), r.Size(fieldFilledSize)
	return market.Order{
		OrderID:    r.RequireID(fieldOrderID),
		MarketID:   r.RequireID(FieldMarketID),
		TokenID:    r.ID(FieldUserToken),
		Side:       market.ParseSide(side),
		SideRaw:    side,
		Outcome:    r.RequireText(FieldLabel),
		Price:      r.Number(FieldPrice),
		Size:       r.Size(fieldOrderSize),
		FilledSize: filled,
		Status:     market.ParseOrderStatus(status, filled),
		StatusRaw:  status,
		CreatedAt:  r.Time(fieldCreatedAt),
	}
}

// Trade reads a trade, which may leave out what its list is about.
func (r *Row) Trade() market.Trade {
	side := r.Text(FieldSide)
	return market.Trade{
		TradeID:         r.ID(fieldTradeID),
		MarketID:        r.ID(FieldMarketID),
		TokenID:         r.ID(FieldUserToken),
		Outcome:         r.Text(FieldLabel),
		Side:            market.ParseSide(side),
		SideRaw:         side,
		Price:           r.Number(FieldPrice),
		Size:            r.Size(FieldHeld),
		Fee:             r.Decimal(fieldFee),
		Timestamp:       r.Instant(FieldTradeAt),
		TransactionHash: r.Text(FieldTxHash),
	}
}

// UserTrade reads a trade of an account, which must say in what.
func (r *Row) UserTrade() market.Trade {
	t := r.Trade()
	if t.MarketID == "" && t.TokenID == "" {
		r.Bad(FieldMarketID, "is missing, and the token is")
	}
	return t
}
