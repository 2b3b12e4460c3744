package polymarket

import (
	"context"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// MarketTrades returns one page of the trades of a market, each with the taker's token and side. Polymarket cannot filter by token.
// So if q has a token, the page may be short although there is a next page. If q.MarketID is not a condition id, or q.TokenID is not
// in an order book, the page is empty.
func (d *Driver) MarketTrades(ctx context.Context, call upstream.Call, q queries.MarketTrades) (*queries.TradePage, error) {
	const e = upstream.EndpointMarketTrades
	if !isCondition(q.MarketID) || q.TokenID != "" && !isToken(q.TokenID) {
		return &queries.TradePage{}, rest.CheckID(e, q.MarketID)
	}
	rq := &rest.Request{Endpoint: e, Keys: 1}
	id := conditionID(q.MarketID)
	rq.Query.Set("condition", id).Set("taker_only", "true").Set("filter_type", "TOKENS").Set("filter_amount", leastSize)
	if q.TokenID != "" && q.Limit <= recordsPage {
		q.Limit = min(2*q.Limit, recordsPage) // about half of the rows are trades of the market's other token
	}
	p, err := readRecords(ctx, call, d, rq, queries.Bound{}, queries.Bound{}, q.Limit, q.Page, func(r *wire.Row) market.Trade {
		t := readTrade(r)
		if !strings.EqualFold(t.MarketID, id) {
			r.Fail(wire.FieldMarketID, "is the id of another market")
		}
		return t
	})
	if err != nil {
		return nil, err
	}
	p.rows = p.at.Numbering.NumberTrades(p.rows)
	for i := range p.rows {
		p.rows[i].TradeID = publicID(&p.rows[i])
	}
	kept := slices.DeleteFunc(p.rows, func(t market.Trade) bool { return q.TokenID != "" && t.TokenID != q.TokenID })
	return &queries.TradePage{Trades: kept, Next: p.at.after(p.next), LeftOut: p.bad.LeftOut(e)}, nil
}

// publicID returns the id that the stream gives to a trade. Without a transaction, this id depends on the exact time, which REST
// rounds to seconds. So publicID returns "" for a trade without a transaction.
func publicID(t *market.Trade) string {
	if t.TransactionHash == "" {
		return ""
	}
	return tradeID(*t)
}
