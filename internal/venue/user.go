package venue

import (
	"context"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/market"
)

const (
	// wholePage is the page size of reads that are followed to their end.
	wholePage = 500
	// maxRows bounds what is followed.
	maxRows = 10_000
	// maxPages bounds the calls of one read, whatever the venue makes of the page size.
	maxPages = 200
	// roundPage: a page of a multiple of so many rows, without a word on the next one, may have been cut by the venue.
	roundPage = 100
)

var (
	fieldPortfolioValue = names("portfolioValue")
	fieldCashBalance    = names("cashBalance", "cash")
	fieldPositionsValue = names("positionsValue")
	fieldTotalValue     = names("totalValue")

	fieldUserMarket    = names("marketId", "conditionId", "market")
	fieldLabel         = names("outcome")
	fieldHeld          = names("size", "quantity", "currentSize", "shares")
	fieldAvgPrice      = names("avgPrice", "averagePrice")
	fieldCurrentPrice  = names("currentPrice", "curPrice")
	fieldUnrealizedPnl = append(names("unrealizedPnl"), "unrealizedPnL", "unrealizedPNL")

	fieldOrderID    = append(names("orderId", "id"), "orderID")
	fieldSide       = names("side")
	fieldOrderSize  = names("size", "originalSize", "quantity")
	fieldFilledSize = names("filledSize", "sizeMatched", "filled")
	fieldCreatedAt  = names("createdAt", "timestamp")

	fieldTradeID = append(names("tradeId", "id"), "tradeID")
	fieldFee     = names("fee")
	fieldTxHash  = names("transactionHash", "txHash")
	fieldTradeAt = names("timestamp", "time", "ts", "matchTime", "createdAt")

	fieldRecordID = append(names("id", "recordId", "tradeId"), "tradeID")
	fieldType     = names("type", "kind")
	fieldAmount   = names("amount", "usdcSize")
)

// Balance returns a wallet's money, or nil when the venue does not know the wallet. The total is the venue's, else
// positionsValue + cash, else portfolioValue + cash.
func (c *Client) Balance(ctx context.Context, a market.Address) (*market.Balance, error) {
	const e = EndpointBalance
	rq := &request{endpoint: e, keys: 1}
	rq.query.set("address", string(a))
	payload, err := c.get(ctx, rq)
	if err != nil || payload == nil {
		return nil, orAbsent(err)
	}
	var n notes
	b, err := decodeBalance(payload, &n)
	c.report(e, n)
	return b, err
}

func decodeBalance(payload any, n *notes) (*market.Balance, error) {
	m, ok := objectOf(payload, "balance")
	if !ok {
		return nil, unknownForm(EndpointBalance, "not an object")
	}
	r := newRow(m, n)
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
	if r.err != nil {
		n.add("bad element")
		return nil, unknownForm(EndpointBalance, r.err.Error())
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
	return b, nil
}

// Positions returns all positions of a wallet. It is whole or an error: pages are followed to their end, and one row
// that cannot be read, a page that repeats another, or more than 10,000 rows make it UPSTREAM_BAD_RESPONSE.
func (c *Client) Positions(ctx context.Context, a market.Address) ([]market.Position, error) {
	return whole(ctx, c, EndpointPositions, a, "positions", readPosition, func(p *market.Position) string {
		return p.MarketID + "\x00" + p.TokenID + "\x00" + p.Outcome
	})
}

func readPosition(r *row) market.Position {
	return market.Position{
		MarketID:      r.requireID(fieldUserMarket),
		TokenID:       r.id(fieldTokenIDOrAsset),
		Outcome:       r.requireText(fieldLabel),
		Size:          r.number(fieldHeld),
		AvgPrice:      r.decimal(fieldAvgPrice),
		CurrentPrice:  r.decimal(fieldCurrentPrice),
		UnrealizedPnl: r.decimal(fieldUnrealizedPnl),
	}
}

var fieldTokenIDOrAsset = append(slices.Clone(fieldTokenID), "asset")

// requireText reads a text that must be there.
func (r *row) requireText(f field) string {
	s := r.text(f)
	if s == "" {
		r.bad(f, "is missing")
	}
	return s
}

// Orders returns all active orders of a wallet; it is whole or an error, as Positions is.
func (c *Client) Orders(ctx context.Context, a market.Address) ([]market.Order, error) {
	return whole(ctx, c, EndpointOrders, a, "orders", readOrder, func(o *market.Order) string { return o.OrderID })
}

func readOrder(r *row) market.Order {
	side, status := r.requireText(fieldSide), r.text(fieldStatus)
	return market.Order{
		OrderID:    r.requireID(fieldOrderID),
		MarketID:   r.requireID(fieldUserMarket),
		TokenID:    r.id(fieldTokenIDOrAsset),
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

// whole reads every page of a wallet's list. key tells rows apart: a row that moved to a later page while the pages were
// read counts once, and a page of nothing but known rows is a venue that repeats itself.
func whole[T any](ctx context.Context, c *Client, e Endpoint, a market.Address, name string, read func(*row) T, key func(*T) string) ([]T, error) {
	all, seen := []T{}, make(map[string]bool)
	at, guessed := place{}, false
	for range maxPages {
		page, err := wholePageAt(ctx, c, e, a, name, at, read)
		if guessed && err != nil && refusesForm(err) {
			return all, nil // nothing but its length spoke for another page, and the venue knows of none
		}
		if err != nil {
			return nil, err
		}
		before := len(all)
		for i := range page.rows {
			if !seen[key(&page.rows[i])] {
				all = append(all, page.rows[i])
			}
		}
		for i := range page.rows {
			seen[key(&page.rows[i])] = true
		}
		last := page.next.isStart()
		switch {
		case len(all) > maxRows:
			return nil, unknownForm(e, "the list has more than 10000 rows")
		case len(all) == before && guessed:
			return all, nil
		case len(all) == before && !(last && len(page.rows) == 0):
			return nil, unknownForm(e, "the venue repeats its pages")
		case last:
			return all, nil
		}
		at, guessed = page.next, page.guessed
	}
	return nil, unknownForm(e, "the list has too many pages")
}

// page is one page of a wallet's list.
type page[T any] struct {
	turn
	rows []T
}

// wholePageAt reads one page of which every row must be good.
func wholePageAt[T any](ctx context.Context, c *Client, e Endpoint, a market.Address, name string, at place, read func(*row) T) (page[T], error) {
	rq := &request{endpoint: e, keys: 1}
	rq.query.set("address", string(a)).set("limit", strconv.Itoa(wholePage))
	at.apply(&rq.query)
	payload, err := c.get(ctx, rq)
	if err != nil {
		return page[T]{}, orBad(e, err)
	}
	list, ok := rowsOf(payload, name)
	if !ok {
		return page[T]{}, unknownForm(e, "no list of "+name)
	}
	limit := wholePage
	if n := len(list.rows); n > 0 && n%roundPage == 0 {
		limit = n // the venue may have a limit of its own
	}
	t, err := turnOf(e, list, at, limit)
	if err != nil {
		return page[T]{}, err
	}
	var n notes
	rows := make([]T, 0, len(list.rows))
	for i, v := range list.rows {
		r := newRow(v, &n)
		if rows = append(rows, read(r)); r.err != nil {
			n.add("bad row")
			c.report(e, n)
			return page[T]{}, market.Errorf(market.CodeUpstreamBadResponse, "row %d of the venue's answer could not be read (%s)", at.offset+i+1, e).
				Because(&cause{kind: causeUnreadable, text: r.err.Error()})
		}
	}
	c.report(e, n)
	return page[T]{turn: t, rows: rows}, nil
}

// Trades returns one page of a wallet's trades, newest first. Rows that cannot be read, or that the venue should have
// left out, are left out; the page may be longer than asked for where the venue ignores the limit.
func (c *Client) Trades(ctx context.Context, a market.Address, q market.TradeQuery) (*market.TradePage, error) {
	const e = EndpointTrades
	if q.MarketID != "" {
		if err := checkID(e, q.MarketID); err != nil {
			return nil, err
		}
	}
	rq := &request{endpoint: e, keys: 1}
	rq.query.set("address", string(a)).set("marketId", q.MarketID).instant("from", q.From).instant("to", q.To)
	list, t, n, err := c.pageOf(ctx, rq, q.Limit, q.Page, "trades")
	if err != nil {
		return nil, err
	}
	defer func() { c.report(e, n) }()
	trades, bad := readRows(list.rows, &n, readTrade)
	if len(trades) == 0 && len(bad) > 0 {
		return nil, unknownForm(e, whyEmpty(bad))
	}
	kept := slices.DeleteFunc(trades, func(trade market.Trade) bool {
		return q.MarketID != "" && trade.MarketID != q.MarketID || outside(trade.Timestamp, q.From, q.To)
	})
	slices.SortStableFunc(kept, func(a, b market.Trade) int { return b.Timestamp.Compare(a.Timestamp) })
	return &market.TradePage{Trades: kept, Next: t.next.token(), Total: t.total}, nil
}

func readTrade(r *row) market.Trade {
	side := r.text(fieldSide)
	t := market.Trade{
		TradeID:         r.id(fieldTradeID),
		MarketID:        r.id(fieldUserMarket),
		TokenID:         r.id(fieldTokenIDOrAsset),
		Outcome:         r.text(fieldLabel),
		Side:            market.ParseSide(side),
		SideRaw:         side,
		Price:           r.number(fieldPrice),
		Size:            r.size(fieldHeld),
		Fee:             r.decimal(fieldFee),
		Timestamp:       r.instant(fieldTradeAt),
		TransactionHash: r.text(fieldTxHash),
	}
	if t.MarketID == "" && t.TokenID == "" {
		r.bad(fieldUserMarket, "is missing, and the token is")
	}
	return t
}

// History returns one page of a wallet's history, newest first; as with Trades.
func (c *Client) History(ctx context.Context, a market.Address, q market.HistoryQuery) (*market.HistoryPage, error) {
	const e = EndpointHistory
	kinds := make([]string, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = string(k)
	}
	rq := &request{endpoint: e, keys: 1}
	rq.query.set("address", string(a)).list("type", kinds).instant("from", q.From).instant("to", q.To)
	list, t, n, err := c.pageOf(ctx, rq, q.Limit, q.Page, "history", "trades")
	if err != nil {
		return nil, err
	}
	defer func() { c.report(e, n) }()
	_, onlyTrades := list.page["trades"].([]any)
	records, bad := readRows(list.rows, &n, func(r *row) market.HistoryRecord { return readRecord(r, onlyTrades) })
	if len(records) == 0 && len(bad) > 0 {
		return nil, unknownForm(e, whyEmpty(bad))
	}
	kept := slices.DeleteFunc(records, func(h market.HistoryRecord) bool {
		return len(q.Kinds) > 0 && !slices.Contains(q.Kinds, h.Kind) || outside(h.Timestamp, q.From, q.To)
	})
	slices.SortStableFunc(kept, func(a, b market.HistoryRecord) int { return b.Timestamp.Compare(a.Timestamp) })
	return &market.HistoryPage{Records: kept, Next: t.next.token(), Total: t.total}, nil
}

// readRecord reads a row of history. In a list of trades a row without a type is a trade.
func readRecord(r *row, trade bool) market.HistoryRecord {
	kind, side := r.text(fieldType), r.text(fieldSide)
	if kind == "" && trade {
		kind = string(market.HistoryTrade)
	}
	h := market.HistoryRecord{
		ID:              r.id(fieldRecordID),
		Kind:            market.ParseHistoryKind(kind),
		KindRaw:         kind,
		Timestamp:       r.instant(fieldTradeAt),
		Amount:          r.decimal(fieldAmount),
		MarketID:        r.id(fieldUserMarket),
		TokenID:         r.id(fieldTokenIDOrAsset),
		Outcome:         r.text(fieldLabel),
		Price:           r.decimal(fieldPrice),
		Size:            r.decimal(fieldHeld),
		TransactionHash: r.text(fieldTxHash),
	}
	if side != "" {
		h.Side = market.ParseSide(side)
	}
	return h
}

// pageOf asks for one page of a wallet's list. A page that repeats the one before is the end.
func (c *Client) pageOf(ctx context.Context, rq *request, limit int, token string, keys ...string) (found, turn, notes, error) {
	var n notes
	if limit < 0 || limit > maxLimit {
		return found{}, turn{}, nil, badInput(rq.endpoint, "a page has 1 to 100 rows")
	}
	if limit == 0 {
		limit = maxLimit
	}
	at, err := parsePlace(rq.endpoint, token)
	if err != nil {
		return found{}, turn{}, nil, err
	}
	rq.query.set("limit", strconv.Itoa(limit))
	at.apply(&rq.query)
	payload, err := c.get(ctx, rq)
	if err != nil {
		return found{}, turn{}, nil, orBad(rq.endpoint, err)
	}
	list, ok := rowsOf(payload, keys...)
	if !ok {
		return found{}, turn{}, nil, unknownForm(rq.endpoint, "no list of rows")
	}
	if at.repeats(list.rows) {
		n.add("repeated page")
		return found{page: list.page}, turn{}, n, nil
	}
	t, err := turnOf(rq.endpoint, list, at, limit)
	return list, t, n, err
}

// outside tells whether t is not from from to to, both included; zero bounds are none.
func outside(t, from, to time.Time) bool {
	return !from.IsZero() && t.Before(from) || !to.IsZero() && t.After(to)
}
