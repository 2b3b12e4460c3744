package stream

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
)

var (
	fieldPortfolioValue = names("portfolioValue")
	fieldCashBalance    = names("cashBalance", "cash")
	fieldPositionsValue = names("positionsValue")
	fieldTotalValue     = names("totalValue")
	fieldUpdatedAt      = names("updatedAt", "lastUpdated")

	fieldUserToken     = append(slices.Clone(fieldTokenID), "asset")
	fieldAvgPrice      = names("avgPrice", "averagePrice")
	fieldCurrentPrice  = names("currentPrice", "curPrice")
	fieldUnrealizedPnl = append(names("unrealizedPnl"), "unrealizedPnL", "unrealizedPNL")

	fieldOrderID    = append(names("orderId", "id"), "orderID")
	fieldOrderSize  = names("size", "originalSize", "quantity")
	fieldFilledSize = names("filledSize", "sizeMatched", "filled")
	fieldCreatedAt  = names("createdAt", "timestamp")

	fieldOrders    = names("orders")
	fieldPositions = names("positions")
	fieldBalance   = names("balance")
	fieldOrder     = names("order")
	fieldTrade     = names("trade", "fill")
	fieldPosition  = names("position")
)

// account returns the message of a frame about an account; a frame that names none is about the socket's.
func (d *nativeDecoder) account(r *row, kind market.MessageKind, at time.Time) (*market.Message, bool) {
	address, ok := fieldAddress.of(r.fields).(string)
	t := d.topic(market.ChannelUser, address)
	if !ok && fieldAddress.of(r.fields) != nil || t.ID == "" || t != d.identity {
		r.note("frame of a foreign account")
		return nil, false
	}
	return d.message(r, t, kind, at, true), true
}

// userSnapshot reads all of an account. Orders and positions are whole or the frame is bad; the balance may be missing.
func (d *nativeDecoder) userSnapshot(r *row, at time.Time) []event {
	m, ok := d.account(r, market.MessageUserSnapshot, at)
	if !ok {
		return nil
	}
	m.Orders = rows(r, fieldOrders, (*row).order)
	m.Positions = rows(r, fieldPositions, (*row).position)
	if v := fieldBalance.of(r.fields); v != nil {
		m.Balance = element(r, fieldBalance, v, (*row).balance)
	}
	return deliver(r, m)
}

// rows reads a list that must be there, with every element good.
func rows[T any](r *row, f field, read func(*row) T) []T {
	list, ok := listOf(f.of(r.fields))
	if !ok {
		r.bad(f, "is not a list")
	}
	out := make([]T, 0, len(list))
	for _, v := range list {
		out = append(out, element(r, f, v, read))
	}
	return out
}

// element reads an element in a frame; a bad one makes the frame bad.
func element[T any](r *row, f field, v any, read func(*row) T) T {
	in := r.inner(v)
	out := read(in)
	if in.err != nil {
		r.bad(f, "is bad: "+in.err.Error())
	}
	return out
}

// within reads the one element of a frame, which lies under f or is the frame itself.
func within[T any](r *row, f field, read func(*row) T) T {
	if v := f.of(r.fields); v != nil {
		return element(r, f, v, read)
	}
	return read(r)
}

func (d *nativeDecoder) orderUpdate(r *row, at time.Time) []event {
	m, ok := d.account(r, market.MessageOrder, at)
	if !ok {
		return nil
	}
	m.Orders = []market.Order{within(r, fieldOrder, (*row).order)}
	return deliver(r, m)
}

func (d *nativeDecoder) fill(r *row, at time.Time) []event {
	m, ok := d.account(r, market.MessageFill, at)
	if !ok {
		return nil
	}
	m.Trades = []market.Trade{within(r, fieldTrade, (*row).userTrade)}
	return deliver(r, m)
}

func (d *nativeDecoder) positionUpdate(r *row, at time.Time) []event {
	m, ok := d.account(r, market.MessagePosition, at)
	if !ok {
		return nil
	}
	m.Positions = []market.Position{within(r, fieldPosition, (*row).position)}
	return deliver(r, m)
}

func (d *nativeDecoder) balanceUpdate(r *row, at time.Time) []event {
	m, ok := d.account(r, market.MessageBalance, at)
	if !ok {
		return nil
	}
	m.Balance = within(r, fieldBalance, (*row).balance)
	return deliver(r, m)
}

func (r *row) position() market.Position {
	return market.Position{
		MarketID:      r.requireID(fieldMarketID),
		TokenID:       r.id(fieldUserToken),
		Outcome:       r.requireText(fieldLabel),
		Size:          r.number(fieldHeld),
		AvgPrice:      r.decimal(fieldAvgPrice),
		CurrentPrice:  r.decimal(fieldCurrentPrice),
		UnrealizedPnl: r.decimal(fieldUnrealizedPnl),
	}
}

func (r *row) order() market.Order {
	side, status := r.requireText(fieldSide), r.text(fieldStatus)
	return market.Order{
		OrderID:    r.requireID(fieldOrderID),
		MarketID:   r.requireID(fieldMarketID),
		TokenID:    r.id(fieldUserToken),
		Side:       market.ParseSide(side),
		SideRaw:    side,
		Outcome:    r.requireText(fieldLabel),
		Price:      r.number(fieldPrice),
		Size:       r.size(fieldOrderSize),
		FilledSize: r.size(fieldFilledSize),
		Status:     market.ParseOrderStatus(status),
		StatusRaw:  status,
		CreatedAt:  r.time(fieldCreatedAt),
	}
}

func (r *row) trade() market.Trade {
	side := r.text(fieldSide)
	return market.Trade{
		TradeID:         r.id(fieldTradeID),
		MarketID:        r.id(fieldMarketID),
		TokenID:         r.id(fieldUserToken),
		Outcome:         r.text(fieldLabel),
		Side:            market.ParseSide(side),
		SideRaw:         side,
		Price:           r.number(fieldPrice),
		Size:            r.size(fieldHeld),
		Fee:             r.decimal(fieldFee),
		Timestamp:       r.instant(fieldTradeAt),
		TransactionHash: r.text(fieldTxHash),
	}
}

// userTrade reads a trade of an account, which must say in what.
func (r *row) userTrade() market.Trade {
	t := r.trade()
	if t.MarketID == "" && t.TokenID == "" {
		r.bad(fieldMarketID, "is missing, and the token is")
	}
	return t
}

// balance reads an account's money. The total is the venue's, else positionsValue + cash, else portfolioValue + cash.
func (r *row) balance() *market.Balance {
	b := &market.Balance{
		PortfolioValue: r.decimal(fieldPortfolioValue),
		CashBalance:    r.decimal(fieldCashBalance),
		PositionsValue: r.decimal(fieldPositionsValue),
		TotalValue:     r.decimal(fieldTotalValue),
		UpdatedAt:      r.time(fieldUpdatedAt),
	}
	if b.PortfolioValue == nil && b.CashBalance == nil && b.PositionsValue == nil && b.TotalValue == nil {
		r.bad(fieldPortfolioValue, "is missing, and all other figures are")
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
