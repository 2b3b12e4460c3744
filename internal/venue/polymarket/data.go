package polymarket

import (
	"errors"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldWallet       = wire.NewField("proxyWallet").Interned()
	fieldValue        = wire.NewField("value")
	fieldData         = wire.NewField("data")
	fieldPagination   = wire.NewField("pagination")
	fieldHasMore      = wire.NewField("hasMore")
	fieldNextCursor   = wire.NewField("nextCursor")
	fieldCurrentSize  = wire.NewField("currentSize")
	fieldAvgPrice     = wire.NewField("avgPrice")
	fieldCurrentPrice = wire.NewField("currentPrice")
	fieldUnrealized   = wire.NewField("unrealizedPnl")
	fieldType         = wire.NewField("type").Interned()
)

var errCursor = errors.New("the cursor of the next page is missing or unreadable")

type dataPage struct {
	rows []wire.Value
	// next is the cursor of the next page. It is empty on the last page.
	next string
	// more reports that Polymarket says that there is a next page.
	more bool
}

// readPage reads {data:[…],pagination:{has_more,next_cursor}}.
func readPage(payload wire.Value) (p dataPage, err error) {
	pagination := fieldPagination.Of(payload)
	rows, ok := listOf(payload, fieldData)
	if !ok {
		return p, errForm
	}
	cursor := fieldNextCursor.Of(pagination)
	p = dataPage{rows: rows, next: cursor.Text(), more: fieldHasMore.Of(pagination).Kind() == wire.True}
	if !cursor.IsNull() && cursor.Kind() != wire.String || len(p.next) > rest.MaxCursor || p.next == "" && p.more {
		return dataPage{}, errCursor
	}
	return p, nil
}

// readPosition reads a position. The label of the outcome may be missing, because the token id identifies the outcome.
func readPosition(r *wire.Row) market.Position {
	return market.Position{
		MarketID:      conditionID(r.RequireID(fieldConditionID)),
		TokenID:       r.RequireID(wire.FieldTokenID),
		Outcome:       r.Text(wire.FieldOutcome),
		Size:          r.Size(fieldCurrentSize),
		AvgPrice:      r.Decimal(fieldAvgPrice),
		CurrentPrice:  r.Decimal(fieldCurrentPrice),
		UnrealizedPnl: r.Decimal(fieldUnrealized),
	}
}

func readTrade(r *wire.Row) market.Trade {
	t := r.UserTrade()
	t.MarketID = conditionID(t.MarketID)
	return t
}

// activityTypes maps each kind of history record to Polymarket's types of activity.
var activityTypes = map[market.HistoryKind][]string{
	market.HistoryTrade:      {"TRADE"},
	market.HistorySplit:      {"SPLIT"},
	market.HistoryMerge:      {"MERGE"},
	market.HistoryRedeem:     {"REDEEM"},
	market.HistoryReward:     {"REWARD", "YIELD", "MAKER_REBATE", "TAKER_REBATE", "REFERRAL_REWARD"},
	market.HistoryDeposit:    {"DEPOSIT"},
	market.HistoryWithdrawal: {"WITHDRAWAL"},
	market.HistoryTransfer:   {"TIP"},
	market.HistoryConversion: {"CONVERSION", "MIGRATION"},
}

func kindOf(raw string) market.HistoryKind {
	for kind, types := range activityTypes {
		if slices.Contains(types, strings.ToUpper(raw)) {
			return kind
		}
	}
	return market.HistoryUnknown
}

// readRecord reads a record of an account's activity. Only a trade has a price and a side.
func readRecord(r *wire.Row) market.HistoryRecord {
	raw := r.RequireText(fieldType)
	h := r.Record()
	h.Kind, h.KindRaw, h.MarketID = kindOf(raw), raw, conditionID(h.MarketID)
	switch h.Kind {
	case market.HistoryTrade:
		h.Price, h.Side = r.Decimal(wire.FieldPrice), market.ParseSide(r.Text(wire.FieldSide))
	case market.HistoryTransfer:
		h.Amount, h.Size = tipAmount(r, h), nil
	}
	return h
}

// tipAmount returns the money of a tip, which is less than 0 if the account gave the tip. Polymarket sends the money as the size, and
// IN or OUT as the side.
func tipAmount(r *wire.Row, h market.HistoryRecord) *market.Decimal {
	amount := h.Size
	if amount == nil || amount.IsZero() {
		amount = h.Amount
	}
	if amount == nil {
		return nil
	}
	switch side := r.Text(wire.FieldSide); {
	case strings.EqualFold(side, "IN"):
		amount = new(amount.Abs())
	case strings.EqualFold(side, "OUT"):
		amount = new(market.Decimal{}.Sub(amount.Abs()))
	default:
		r.Note("tip without a direction")
	}
	return amount
}

// readValue reads {proxy_wallet,value}, the value of all positions of an account. If the response is null, readValue returns nil.
func readValue(payload wire.Value, account market.Address, note func(string)) (*market.Balance, error) {
	if payload.IsNull() {
		return nil, nil
	}
	r := wire.NewRow(payload, note)
	if wallet := r.ID(fieldWallet); r.Err == nil && wallet != "" && !strings.EqualFold(wallet, string(account)) {
		return nil, errors.New("the value is of another account")
	}
	value := r.RequireDecimal(fieldValue)
	if r.Err != nil {
		return nil, r.Err
	}
	return &market.Balance{PositionsValue: &value}, nil
}
