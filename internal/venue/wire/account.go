package wire

import "oddsgraph/internal/market"

var (
	fieldPortfolioValue = NewField("portfolioValue")
	fieldCashBalance    = NewField("cashBalance", "cash")
	fieldPositionsValue = NewField("positionsValue")
	fieldTotalValue     = NewField("totalValue")

	fieldAvgPrice      = NewField("avgPrice", "averagePrice")
	fieldCurrentPrice  = NewField("currentPrice", "curPrice")
	fieldUnrealizedPnl = NewField("unrealizedPnl", "unrealizedPnL", "unrealizedPNL")

	fieldOrderID    = NewField("orderId", "id", "orderID")
	fieldOrderSize  = NewField("size", "originalSize", "quantity")
	fieldFilledSize = NewField("filledSize", "sizeMatched", "filled")
	fieldCreatedAt  = NewField("createdAt", "timestamp")

	fieldTradeID = NewField("tradeId", "id", "tradeID")
	fieldFee     = NewField("fee")
	fieldAmount  = NewField("amount", "usdcSize")
)

// Balance reads the balance of an account. If the venue sends no total, the total is positionsValue + cashBalance. If the venue
// also sends no positionsValue, the total is portfolioValue + cashBalance. If one of the two amounts is missing, there is no total.
// A row without any amount is bad.
func (r *Row) Balance() *market.Balance {
	b := &market.Balance{
		PortfolioValue: r.Decimal(fieldPortfolioValue),
		CashBalance:    r.Decimal(fieldCashBalance),
		PositionsValue: r.Decimal(fieldPositionsValue),
		TotalValue:     r.Decimal(fieldTotalValue),
		UpdatedAt:      r.Time(FieldUpdatedAt),
	}
	if b.PortfolioValue == nil && b.CashBalance == nil && b.PositionsValue == nil && b.TotalValue == nil {
		r.Fail(fieldPortfolioValue, "is missing, like all other figures")
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

// Position reads a position. A row without a market, an outcome or a size is bad.
func (r *Row) Position() market.Position {
	return market.Position{
		MarketID:      r.RequireID(FieldMarketID),
		TokenID:       r.ID(FieldUserToken),
		Outcome:       r.RequireText(FieldOutcome),
		Size:          r.RequireDecimal(FieldShares),
		AvgPrice:      r.Decimal(fieldAvgPrice),
		CurrentPrice:  r.Decimal(fieldCurrentPrice),
		UnrealizedPnl: r.Decimal(fieldUnrealizedPnl),
	}
}

// Order reads an active order. The token, the status and the time may be missing.
func (r *Row) Order() market.Order {
	side, status, filled := r.RequireText(FieldSide), r.Text(FieldStatus), r.Size(fieldFilledSize)
	return market.Order{
		OrderID:    r.RequireID(fieldOrderID),
		MarketID:   r.RequireID(FieldMarketID),
		TokenID:    r.ID(FieldUserToken),
		Side:       market.ParseSide(side),
		SideRaw:    side,
		Outcome:    r.RequireText(FieldOutcome),
		Price:      r.RequireDecimal(FieldPrice),
		Size:       r.Size(fieldOrderSize),
		FilledSize: filled,
		Status:     market.ParseOrderStatus(status, filled),
		StatusRaw:  status,
		CreatedAt:  r.Time(fieldCreatedAt),
	}
}

// Trade reads a public trade. The price, the size and the time are required. All other fields may be missing. For example, the
// calling function may know the market and the token from its request.
func (r *Row) Trade() market.Trade {
	side := r.Text(FieldSide)
	return market.Trade{
		TradeID:         r.ID(fieldTradeID),
		MarketID:        r.ID(FieldMarketID),
		TokenID:         r.ID(FieldUserToken),
		Outcome:         r.Text(FieldOutcome),
		Side:            market.ParseSide(side),
		SideRaw:         side,
		Price:           r.RequireDecimal(FieldPrice),
		Size:            r.Size(FieldShares),
		Fee:             r.Decimal(fieldFee),
		Timestamp:       r.RequireTime(FieldTradeAt),
		TransactionHash: r.Text(FieldTxHash),
	}
}

// UserTrade reads a trade of an account. A row with neither a market nor a token is bad.
func (r *Row) UserTrade() market.Trade {
	t := r.Trade()
	if t.MarketID == "" && t.TokenID == "" {
		r.Fail(FieldMarketID, "is missing, like the token")
	}
	return t
}

// Record reads a row of an account's history without its id and kind, and without the side and price that only trades have.
func (r *Row) Record() market.HistoryRecord {
	return market.HistoryRecord{
		Timestamp: r.RequireTime(FieldTradeAt), Amount: r.Decimal(fieldAmount), MarketID: r.ID(FieldMarketID), TokenID: r.ID(FieldUserToken),
		Outcome: r.Text(FieldOutcome), Size: r.Decimal(FieldShares), TransactionHash: r.Text(FieldTxHash),
	}
}
