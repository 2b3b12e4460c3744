package market

import "strings"

// OrderSide is the direction of an order or trade.
type OrderSide string

// The sides of an order. ParseSide maps unknown texts to SideUnknown.
const (
	SideBuy     OrderSide = "BUY"
	SideSell    OrderSide = "SELL"
	SideUnknown OrderSide = "UNKNOWN"
)

// ParseSide maps the venue's text to a side, ignoring case.
func ParseSide(raw string) OrderSide {
	return parseEnum(raw, SideUnknown, SideBuy, SideSell)
}

// OrderStatus is the state of an order.
type OrderStatus string

// The states of an order.
const (
	OrderOpen            OrderStatus = "OPEN"
	OrderPartiallyFilled OrderStatus = "PARTIALLY_FILLED"
	OrderFilled          OrderStatus = "FILLED"
	OrderCancelled       OrderStatus = "CANCELLED"
	OrderExpired         OrderStatus = "EXPIRED"
	OrderRejected        OrderStatus = "REJECTED"
	OrderUnknown         OrderStatus = "UNKNOWN"
)

// ParseOrderStatus maps the venue's text to a state, ignoring case. LIVE means OPEN and CANCELED means CANCELLED. If the filled
// size is positive, OPEN becomes PARTIALLY_FILLED, because some venues report partially filled orders as open.
func ParseOrderStatus(raw string, filled Decimal) OrderStatus {
	status := parseEnum(raw, OrderUnknown, OrderOpen, OrderPartiallyFilled, OrderFilled, OrderCancelled, OrderExpired, OrderRejected)
	switch {
	case strings.EqualFold(raw, "CANCELED"):
		return OrderCancelled
	case strings.EqualFold(raw, "LIVE"):
		status = OrderOpen
	}
	if status == OrderOpen && filled.Sign() > 0 {
		return OrderPartiallyFilled
	}
	return status
}

// OutcomeKind classifies outcome labels.
type OutcomeKind string

// The kinds of outcomes. All labels except yes and no have the kind OutcomeOther.
const (
	OutcomeYes   OutcomeKind = "YES"
	OutcomeNo    OutcomeKind = "NO"
	OutcomeOther OutcomeKind = "OTHER"
)

// KindOfOutcome maps an outcome's label to its kind, ignoring case.
func KindOfOutcome(label string) OutcomeKind {
	return parseEnum(label, OutcomeOther, OutcomeYes, OutcomeNo)
}

// Status is the state of a market.
type Status string

// The states of a market.
const (
	StatusUpcoming  Status = "UPCOMING"
	StatusOpen      Status = "OPEN"
	StatusClosed    Status = "CLOSED"
	StatusDisputed  Status = "DISPUTED"
	StatusResolved  Status = "RESOLVED"
	StatusCancelled Status = "CANCELLED"
	StatusUnknown   Status = "UNKNOWN"
)

// ParseStatus maps the venue's text to a state, ignoring case. ACTIVE means OPEN and CANCELED means CANCELLED.
func ParseStatus(raw string) Status {
	switch strings.ToUpper(raw) {
	case "ACTIVE":
		return StatusOpen
	case "CANCELED":
		return StatusCancelled
	}
	return parseEnum(raw, StatusUnknown, StatusUpcoming, StatusOpen, StatusClosed, StatusDisputed, StatusResolved, StatusCancelled)
}

// HistoryKind is the kind of a record in an account's history.
type HistoryKind string

// The kinds of history records.
const (
	HistoryTrade      HistoryKind = "TRADE"
	HistoryDeposit    HistoryKind = "DEPOSIT"
	HistoryWithdrawal HistoryKind = "WITHDRAWAL"
	HistorySplit      HistoryKind = "SPLIT"
	HistoryMerge      HistoryKind = "MERGE"
	HistoryRedeem     HistoryKind = "REDEEM"
	HistoryFee        HistoryKind = "FEE"
	HistoryReward     HistoryKind = "REWARD"
	HistoryTransfer   HistoryKind = "TRANSFER"
	HistoryConversion HistoryKind = "CONVERSION"
	HistoryUnknown    HistoryKind = "UNKNOWN"
)

// ParseHistoryKind maps the venue's text to a kind, ignoring case.
func ParseHistoryKind(raw string) HistoryKind {
	return parseEnum(raw, HistoryUnknown, HistoryTrade, HistoryDeposit, HistoryWithdrawal, HistorySplit, HistoryMerge,
		HistoryRedeem, HistoryFee, HistoryReward, HistoryTransfer, HistoryConversion)
}

// PriceBasis says how a price was made.
type PriceBasis string

// The bases of a price. BasisPosition means the current price that the venue sends with a position.
const (
	BasisSettlement PriceBasis = "SETTLEMENT"
	BasisVenue      PriceBasis = "VENUE"
	BasisLast       PriceBasis = "LAST"
	BasisMidpoint   PriceBasis = "MIDPOINT"
	BasisBestBid    PriceBasis = "BEST_BID"
	BasisBestAsk    PriceBasis = "BEST_ASK"
	BasisPosition   PriceBasis = "POSITION"
)

// SpreadBasis says where a spread comes from.
type SpreadBasis string

// The bases of a spread.
const (
	SpreadOfVenue SpreadBasis = "VENUE"
	SpreadOfBook  SpreadBasis = "ORDER_BOOK"
)

// Source is where a value came from.
type Source string

// The sources of values.
const (
	SourceStream   Source = "STREAM"
	SourceREST     Source = "REST"
	SourceComputed Source = "COMPUTED"
)

// parseEnum returns the element of values that equals raw, ignoring case. It returns fallback if no element equals raw.
func parseEnum[T ~string](raw string, fallback T, values ...T) T {
	for _, v := range values {
		if strings.EqualFold(raw, string(v)) {
			return v
		}
	}
	return fallback
}
