package market

import "time"

// Balance is the balance of a wallet as the venue reports it.
type Balance struct {
	PortfolioValue, CashBalance *Decimal
	// PositionsValue is the value of all positions. It is nil if the venue does not send it.
	PositionsValue *Decimal
	// TotalValue is the total that the venue sent. If the venue sent no total, TotalValue is CashBalance + PositionsValue, or
	// CashBalance + PortfolioValue if PositionsValue is nil. TotalValue is nil if a summand of this sum is nil.
	TotalValue *Decimal
	// UpdatedAt is the venue's timestamp. It is zero if the venue sent no timestamp.
	UpdatedAt time.Time
}

// Position is a holding of one outcome.
type Position struct {
	MarketID string
	// TokenID is empty if the venue sends only market and outcome.
	TokenID string
	// Outcome is the venue's label, unchanged.
	Outcome string
	Size    Decimal
	// AvgPrice, CurrentPrice and UnrealizedPnl are nil if the venue did not send them.
	AvgPrice, CurrentPrice, UnrealizedPnl *Decimal
	// Ordinal is 0 for a wallet's first position in a market and outcome, 1 for the second, and so on; see NumberPositions.
	Ordinal int
}

// CostBasis returns Size × AvgPrice, or nil if the average price is unknown.
func (p *Position) CostBasis() *Decimal {
	if p.AvgPrice == nil {
		return nil
	}
	return new(p.CostAt(*p.AvgPrice))
}

// CostAt returns Size × price.
func (p *Position) CostAt(price Decimal) Decimal { return p.Size.Mul(price).Reduce() }

// Order is an order of a wallet.
type Order struct {
	// OrderID follows the address of the account in global ids, so it needs no name of a venue; see QualifyAll.
	OrderID  string `id:"no"`
	MarketID string
	// TokenID is empty if the venue sends only market and outcome.
	TokenID                 string
	Side                    OrderSide
	SideRaw                 string
	Outcome                 string
	Price, Size, FilledSize Decimal
	Status                  OrderStatus
	StatusRaw               string
	// CreatedAt is zero if the venue did not send the time.
	CreatedAt time.Time
}

// Trade is one execution. It is a trade of a wallet or a public trade of a market.
type Trade struct {
	// TradeID is empty if the venue sends none.
	TradeID                    string
	MarketID, TokenID, Outcome string
	Side                       OrderSide
	SideRaw                    string
	Price, Size                Decimal
	Fee                        *Decimal
	Timestamp                  time.Time
	TransactionHash            string
	// Ordinal distinguishes equal trades without a TradeID, and different trades with the same TradeID (see Numbering). The first of
	// these trades has 0.
	Ordinal int
}

// HistoryRecord is one record of a wallet's history.
type HistoryRecord struct {
	// ID is empty if the venue sends none.
	ID                         string
	Kind                       HistoryKind
	KindRaw                    string
	Timestamp                  time.Time
	Amount                     *Decimal
	MarketID, TokenID, Outcome string
	// Side is empty if the record is not a trade.
	Side            OrderSide
	Price, Size     *Decimal
	TransactionHash string
	// Ordinal distinguishes equal records without an ID, and different records with the same ID (see Numbering). The first of these
	// records has 0.
	Ordinal int
}

// HeldByBuys returns the money that BUY orders reserve: the sum of price × remaining size. The orders must be open, and may be of
// both sides.
func HeldByBuys(orders []Order) Decimal {
	var held Decimal
	for i := range orders {
		if o := &orders[i]; o.Side == SideBuy {
			held = held.Add(o.Price.Mul(o.Remaining()))
		}
	}
	return held.Reduce()
}

// Remaining returns the size that is not filled, in shares. It is never negative.
func (o *Order) Remaining() Decimal {
	r := o.Size.Sub(o.FilledSize).Reduce()
	if r.Sign() < 0 {
		return Decimal{}
	}
	return r
}
