package generic

import (
	"context"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldRecordID = wire.NewField("id", "recordId", "tradeId", "tradeID")
	fieldType     = wire.NewField("type", "kind")
)

// Balance returns the balance of an account, or nil if the venue does not know the account. If the venue sends no total,
// wire.Row.Balance computes the total if possible.
func (c *Client) Balance(ctx context.Context, call upstream.Call, a market.Address) (*market.Balance, error) {
	return readOne(ctx, c.reading(call), c.AccountKey(call, a), rest.ForAccount(upstream.EndpointBalance, a), decodeBalance)
}

func decodeBalance(payload wire.Value, drift *rest.Drift) (*market.Balance, error) {
	m, ok := rest.SingleObject(payload, "balance")
	if !ok {
		return nil, rest.UnknownForm(upstream.EndpointBalance, "not an object")
	}
	r := wire.NewRow(m, drift.Add)
	b := r.Balance()
	if r.Err != nil {
		drift.Add("bad element")
		return nil, rest.UnknownForm(upstream.EndpointBalance, r.Err.Error())
	}
	return b, nil
}

// Positions returns all positions of an account, from all pages. The error is UPSTREAM_BAD_RESPONSE if a row is unreadable, if there
// are more than 10,000 rows, if a page that the venue announced repeats another, or if the list changes during every read. No row is
// left out, because clients sum the positions.
//
// Positions have no ids. Two rows of the same outcome are usually two lots. But they may also be one row that was read twice,
// because the row moved to a later page during the read. So if two rows of the same outcome are on different pages, Positions reads
// the list again until two successive reads give equal lists. It reads the list at most maxReads times.
func (c *Client) Positions(ctx context.Context, call upstream.Call, a market.Address) ([]market.Position, error) {
	type holding struct{ marketID, tokenID, outcome string }
	l := wholeList[market.Position, holding]{endpoint: upstream.EndpointPositions, name: "positions", read: (*wire.Row).Position,
		key: func(p *market.Position) holding { return holding{p.MarketID, p.TokenID, p.Outcome} }}
	return rest.WithBackoff(c.Client, l.endpoint, c.AccountKey(call, a), func() ([]market.Position, error) {
		var before []market.Position
		for range maxReads {
			rows, moved, err := l.readAll(ctx, c.reading(call), a)
			if err != nil || !moved || slices.EqualFunc(before, rows, sameHolding) {
				market.NumberPositions(rows)
				return rows, err
			}
			before = rows
		}
		return nil, rest.UnknownForm(l.endpoint, "the list changes while it is read")
	})
}

func sameHolding(a, b market.Position) bool {
	return a.MarketID == b.MarketID && a.TokenID == b.TokenID && a.Outcome == b.Outcome && a.Size.Cmp(b.Size) == 0 &&
		(a.AvgPrice == b.AvgPrice || a.AvgPrice != nil && b.AvgPrice != nil && a.AvgPrice.Cmp(*b.AvgPrice) == 0)
}

// Orders returns all active orders of an account, each order once. If it cannot return all orders, it returns an error.
func (c *Client) Orders(ctx context.Context, call upstream.Call, a market.Address) ([]market.Order, error) {
	l := wholeList[market.Order, string]{endpoint: upstream.EndpointOrders, name: "orders", read: (*wire.Row).Order, unique: true,
		key: func(o *market.Order) string { return o.OrderID }}
	return rest.WithBackoff(c.Client, l.endpoint, c.AccountKey(call, a), func() ([]market.Order, error) {
		rows, _, err := l.readAll(ctx, c.reading(call), a)
		return rows, err
	})
}

// Trades returns one page of an account's trades, newest first. Unreadable rows are reported in LeftOut; if all are, the error is
// UPSTREAM_BAD_RESPONSE. Rows that do not match the filter are dropped. If the venue ignores the limit, the page may be longer.
func (c *Client) Trades(ctx context.Context, call upstream.Call, a market.Address, q queries.Trades) (*queries.TradePage, error) {
	const e = upstream.EndpointTrades
	if q.MarketID != "" {
		if err := rest.CheckID(e, q.MarketID); err != nil {
			return nil, err
		}
	}
	p, err := c.reading(call).readPage(ctx, e, a, func(to *rest.Query) {
		to.Set("marketId", q.MarketID).Instant("from", q.From).Instant("to", q.To)
	}, q.Limit, q.Page, "trades")
	if err != nil {
		return nil, err
	}
	defer func() { c.Report(e, p.drift) }()
	trades, bad := rest.ReadRows(p.Rows, p.drift.Add, (*wire.Row).UserTrade)
	if len(trades) == 0 && len(bad) > 0 {
		return nil, rest.UnknownForm(e, bad.WhyEmpty())
	}
	trades = p.numbering.NumberTrades(trades)
	kept := slices.DeleteFunc(trades, func(trade market.Trade) bool {
		return q.MarketID != "" && trade.MarketID != q.MarketID || queries.IsOutside(trade.Timestamp, q.From, q.To)
	})
	slices.SortStableFunc(kept, func(a, b market.Trade) int { return b.Timestamp.Compare(a.Timestamp) })
	return &queries.TradePage{Trades: kept, Next: p.nextToken(), Total: p.total, LeftOut: bad.LeftOut(e)}, nil
}

// History returns one page of an account's history, newest first. It treats unreadable rows, filters and the limit as Trades does.
func (c *Client) History(ctx context.Context, call upstream.Call, a market.Address, q queries.History) (*queries.HistoryPage, error) {
	const e = upstream.EndpointHistory
	kinds := make([]string, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = string(k)
	}
	p, err := c.reading(call).readPage(ctx, e, a, func(to *rest.Query) {
		to.List("type", kinds).Instant("from", q.From).Instant("to", q.To)
	}, q.Limit, q.Page, "history", "trades")
	if err != nil {
		return nil, err
	}
	defer func() { c.Report(e, p.drift) }()
	onlyTrades := p.Object.Member("trades").Kind() == wire.List
	records, bad := rest.ReadRows(p.Rows, p.drift.Add, func(r *wire.Row) market.HistoryRecord { return readRecord(r, onlyTrades) })
	if len(records) == 0 && len(bad) > 0 {
		return nil, rest.UnknownForm(e, bad.WhyEmpty())
	}
	records = p.numbering.NumberRecords(records)
	kept := slices.DeleteFunc(records, func(h market.HistoryRecord) bool {
		return len(q.Kinds) > 0 && !slices.Contains(q.Kinds, h.Kind) || queries.IsOutside(h.Timestamp, q.From, q.To)
	})
	slices.SortStableFunc(kept, func(a, b market.HistoryRecord) int { return b.Timestamp.Compare(a.Timestamp) })
	return &queries.HistoryPage{Records: kept, Next: p.nextToken(), Total: p.total, LeftOut: bad.LeftOut(e)}, nil
}

// readRecord reads a row of history. If onlyTrades is true, the row is in a list of trades, so a row without a type is a trade.
func readRecord(r *wire.Row, onlyTrades bool) market.HistoryRecord {
	kind, side := r.Text(fieldType), r.Text(wire.FieldSide)
	if kind == "" && onlyTrades {
		kind = string(market.HistoryTrade)
	}
	h := r.Record()
	h.ID, h.Kind, h.KindRaw, h.Price = r.ID(fieldRecordID), market.ParseHistoryKind(kind), kind, r.Decimal(wire.FieldPrice)
	if side != "" {
		h.Side = market.ParseSide(side)
	}
	return h
}
