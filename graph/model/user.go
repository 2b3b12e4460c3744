package model

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/reads/valuation"
)

// User is one wallet.
type User struct{ Address market.Address }

// IsNode marks User as a Node.
func (User) IsNode() {}

// ID returns the global id without the prefix that IDPrefix returns.
func (u User) ID() string { return EncodeID(KindUser, string(u.Address)) }

// Balance is the balance of a wallet.
type Balance struct {
	*market.Balance
	Address market.Address
	Meta    reads.Meta
}

// ID returns a key for the caches of clients. The key is the same for every read of the balance.
func (b Balance) ID() string { return EncodeID("Balance", string(b.Address)) }

// ReportedPortfolioValue returns the venue's value of the portfolio, or nil if the venue does not send it.
func (b Balance) ReportedPortfolioValue() *market.Decimal { return b.PortfolioValue }

// ReportedPositionsValue returns the venue's value of the positions, or nil if the venue does not send it.
func (b Balance) ReportedPositionsValue() *market.Decimal { return b.PositionsValue }

// ReportedTotalValue returns the venue's value of the account, or a sum of the venue's figures.
func (b Balance) ReportedTotalValue() *market.Decimal { return b.TotalValue }

// Freshness returns the age of the balance.
func (b Balance) Freshness() Freshness { return freshness(b.Meta) }

// PortfolioSummary contains the sums of a wallet's positions.
type PortfolioSummary struct {
	*valuation.Portfolio
	Address market.Address
	// Basis is the requested price basis. If it is empty, each position is valued at the first known price in the order of
	// valuation.Of.
	Basis market.PriceBasis
}

// ID returns a key for the caches of clients. Each combination of wallet and price basis has its own key.
func (p PortfolioSummary) ID() string {
	return EncodeID("PortfolioSummary", string(p.Address), string(p.Basis))
}

// UnpricedPositions returns the number of positions without a price.
func (p PortfolioSummary) UnpricedPositions() int { return p.Unpriced }

// UncostedPositions returns the number of positions that have a price but no average price.
func (p PortfolioSummary) UncostedPositions() int { return p.Uncosted }

// Freshness returns the age of the oldest value from which the sums were computed.
func (p PortfolioSummary) Freshness() Freshness { return freshness(p.Meta) }

// Position is a holding of one outcome token.
type Position struct {
	*market.Position
	Address market.Address
	Meta    reads.Meta
	// Valued is the valuation that a subscription's event contains for the position. It is nil if the position does not come from an
	// event or has no known price. ValuedBy is the price basis that the subscription requested.
	Valued   *valuation.Valuation
	ValuedBy market.PriceBasis
	// Preloaded contains the token's price from the same event. It is nil if the position does not come from an event or the event
	// contains no price of the token.
	Preloaded *Preloaded
}

// IsNode marks Position as a Node.
func (Position) IsNode() {}

// ID returns the global id without the prefix that IDPrefix returns.
func (p Position) ID() string { return PositionID(p.Address, p.Position) }

// AppendID appends the result of ID.
func (p Position) AppendID(dst []byte) []byte {
	return appendPositionID(dst, p.Address, p.Position)
}

// TokenID returns the token's id, or nil if the venue does not send it with the position.
func (p Position) TokenID() *string { return text(&p.Position.TokenID) }

// OutcomeKind returns the kind of the position's outcome.
func (p Position) OutcomeKind() market.OutcomeKind { return market.KindOfOutcome(p.Outcome) }

// ReportedPrice returns the price that the venue sent with the position, or nil if it sent none.
func (p Position) ReportedPrice() *market.Decimal { return p.CurrentPrice }

// ReportedUnrealizedPnl returns the profit that the venue sent with the position, or nil if it sent none.
func (p Position) ReportedUnrealizedPnl() *market.Decimal { return p.UnrealizedPnl }

// Freshness returns the age of the position.
func (p Position) Freshness() Freshness { return freshness(p.Meta) }

// Valuation is the value of a position.
type Valuation struct {
	*valuation.Valuation
	Of *Position
	// By is the requested price basis.
	By market.PriceBasis
}

// ID returns a key for the caches of clients. Each combination of position and price basis has its own key.
func (v Valuation) ID() string { return EncodeID("Valuation", v.Of.ID(), string(v.By)) }

// Freshness returns the age of the oldest value from which the valuation was computed.
func (v Valuation) Freshness() Freshness { return freshness(v.Meta) }

// Order is an order of a wallet.
type Order struct {
	*market.Order
	Address market.Address
}

// IsNode marks Order as a Node.
func (Order) IsNode() {}

// ID returns the global id without the prefix that IDPrefix returns.
func (o Order) ID() string { return EncodeID(KindOrder, string(o.Address), o.OrderID) }

// AppendID appends the result of ID.
func (o Order) AppendID(dst []byte) []byte {
	return AppendID(dst, KindOrder, string(o.Address), o.OrderID)
}

// TokenID returns the token's id, or nil if the venue does not send it with the order.
func (o Order) TokenID() *string { return text(&o.Order.TokenID) }

// OutcomeKind returns the kind of the order's outcome.
func (o Order) OutcomeKind() market.OutcomeKind { return market.KindOfOutcome(o.Outcome) }

// RemainingSize returns the size that is not filled yet, in shares.
func (o Order) RemainingSize() market.Decimal { return o.Remaining() }

// CreatedAt returns the time of creation, or nil if the venue does not send it.
func (o Order) CreatedAt() *time.Time { return instant(&o.Order.CreatedAt) }

// Trade is one execution of an order.
type Trade struct{ *market.Trade }

// ID returns a key of the trade for the caches of clients.
func (t Trade) ID() string { return EncodeID("Trade", t.Key()) }

// TradeID returns the venue's id, or nil if the venue does not send it.
func (t Trade) TradeID() *string { return text(&t.Trade.TradeID) }

// MarketID returns the market's id, or nil if the venue does not send it.
func (t Trade) MarketID() *string { return text(&t.Trade.MarketID) }

// TokenID returns the token's id, or nil if the venue does not send it.
func (t Trade) TokenID() *string { return text(&t.Trade.TokenID) }

// Outcome returns the outcome's label, or nil if the venue does not send it.
func (t Trade) Outcome() *string { return text(&t.Trade.Outcome) }

// TransactionHash returns the settlement's hash, or nil if the venue does not send it.
func (t Trade) TransactionHash() *string { return text(&t.Trade.TransactionHash) }

// HistoryRecord is one event of a wallet's history.
type HistoryRecord struct{ *market.HistoryRecord }

// ID returns a key of the record for the caches of clients.
func (h HistoryRecord) ID() string { return EncodeID("HistoryRecord", h.Key()) }

// MarketID returns the market's id, or nil if the record has none.
func (h HistoryRecord) MarketID() *string { return text(&h.HistoryRecord.MarketID) }

// TokenID returns the token's id, or nil if the record has none.
func (h HistoryRecord) TokenID() *string { return text(&h.HistoryRecord.TokenID) }

// Outcome returns the outcome's label, or nil if the record has none.
func (h HistoryRecord) Outcome() *string { return text(&h.HistoryRecord.Outcome) }

// Side returns the side of a trade, or nil if the record has none.
func (h HistoryRecord) Side() *market.OrderSide {
	if h.HistoryRecord.Side == "" {
		return nil
	}
	return &h.HistoryRecord.Side
}

// TransactionHash returns the settlement's hash, or nil if the venue does not send it.
func (h HistoryRecord) TransactionHash() *string { return text(&h.HistoryRecord.TransactionHash) }
